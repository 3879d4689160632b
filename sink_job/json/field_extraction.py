"""Parses JSON texts and extracts only the requested fields.

The decoder is built for a type that has the requested fields alone. It checks the rest of a record and skips it without
creating Python objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final, Union

import msgspec
import pyarrow as pa

from sink_job.arrow import columns as arrow_columns
from sink_job.connect.json_decoder import decode_reason
from sink_job.records.fields import MISSING, segments

_OTHERS: Final = (None, bool, int, float, str, list)
"""The types that a value may have where an object is expected."""


class _AnyObject(msgspec.Struct, gc=False):
    """Any JSON object. Its members are checked and skipped, as those of `msgspec.Raw`, and it is cheaper to create."""


_OBJECTS: Final = msgspec.json.Decoder(_AnyObject)


class Extraction:
    """Parses texts and extracts `fields`. The name of a nested field is dotted; the empty name is the whole value."""

    def __init__(self, fields: tuple[str, ...]) -> None:
        self._paths = {name: segments(name) for name in fields}
        self._tree = _Node()
        for path in self._paths.values():
            self._tree.add(path)
        self._validator = msgspec.json.Decoder(msgspec.Raw)
        self._decoder: Any = msgspec.json.Decoder(self._tree.type()) if fields else self._validator

    @property
    def has_fields(self) -> bool:
        """Whether any field is extracted."""
        return bool(self._paths)

    def read_lines(self, lines: pa.BinaryArray, *, are_objects: bool = False) -> list[object] | None:
        """The records in `lines`, each of which ends with a newline. None if a text is invalid, or if the number of
        texts differs from the number of lines. `are_objects`: no line starts with a JSON text of another type."""
        bounds, (_, _, data) = arrow_columns.bounds(lines), lines.buffers()
        view = memoryview(data)[bounds[0] : bounds[-1]]
        decoder: Any = _OBJECTS if are_objects and not self._paths else self._decoder
        try:  # one view for all texts: without it, the decoder requests a view of Arrow's buffer for each text
            found: list[object] = decoder.decode_lines(view)
        except (msgspec.DecodeError, RecursionError):
            return None
        return found if len(found) == len(lines) else None

    def read(self, value: bytes) -> object:
        """The record in one text. Raises ValueError with the reason if it is invalid."""
        try:
            self._validator.decode(value)
        except msgspec.DecodeError as error:
            raise ValueError(f"the value is not JSON: {decode_reason(error, value)}") from None
        except RecursionError:
            raise ValueError("the value is JSON nested too deeply") from None
        try:
            return self._decoder.decode(value)
        except msgspec.DecodeError as error:
            raise ValueError(f"a required field of the value cannot be read: {decode_reason(error, value)}") from None

    def columns(self, records: Sequence[object]) -> dict[str, list[object]]:
        """For each field its value in each of `records`, MISSING where the record lacks it.

        `records` are results of `read` or `read_lines`. A nested field of null is null.
        """
        return {name: self._column(records, path) for name, path in self._paths.items()}

    def _column(self, records: Sequence[object], path: Sequence[str]) -> list[object]:
        values, node = list(records), self._tree
        for depth, segment in enumerate(path):
            values = node.step(values, segment, None if depth else MISSING)
            node = node.children[segment]
        return values


class _Node:
    """A node in the tree of fields: its children, and the type that decodes them."""

    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        self._is_field = False
        self._struct: type | None = None
        self._attributes: dict[str, str] = {}

    def add(self, path: Sequence[str]) -> None:
        """Adds the field at `path`. The empty path is this node."""
        if not path:
            self._is_field = True
        else:
            self.children.setdefault(path[0], _Node()).add(path[1:])

    def type(self) -> Any:
        """The type for decoding this node: any value if it is a field, else its children only."""
        if self._is_field or any(set(name) & {'"', "\\"} for name in self.children):
            return Any
        self._attributes = {name: f"f{number}" for number, name in enumerate(self.children)}
        self._struct = msgspec.defstruct(
            "Fields",
            [(self._attributes[name], child.optional(), MISSING) for name, child in self.children.items()],
            rename={attribute: name for name, attribute in self._attributes.items()},
            gc=False,
        )
        return Union[(self._struct, *_OTHERS)]

    def optional(self) -> Any:
        """Like `type`, for a node that may be missing."""
        found = self.type()
        return found if found is Any else found | msgspec.UnsetType

    def step(self, values: Sequence[object], name: str, of_null: object) -> list[object]:
        """The child `name` of each of `values`; for null it is `of_null`."""
        if self._struct is not None and set(map(type, values)) == {self._struct}:
            return list(map(attrgetter(self._attributes[name]), values))
        return [self._child(value, name, of_null) for value in values]

    def _child(self, value: object, name: str, of_null: object) -> object:
        if value is None:
            return of_null
        if isinstance(value, dict):
            return value.get(name, MISSING)
        if self._struct is not None and isinstance(value, self._struct):
            return getattr(value, self._attributes[name])
        return MISSING
