"""Reads JSON texts, and of each one only the fields that are asked for.

For the fields asked for a type is made that has them and nothing else: the rest of a record is checked and passed over
without being built.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final, Union

import msgspec
import pyarrow as pa

from sink_job.partitioning.field_values import MISSING

_OTHERS: Final = (None, bool, int, float, str, list)
"""What may stand where an object is looked for."""


class Extraction:
    """Reads texts with some fields in view, dotted where nested."""

    def __init__(self, fields: tuple[str, ...]) -> None:
        self._paths = {name: name.split(".") for name in fields}
        self._tree = _Node()
        for path in self._paths.values():
            self._tree.add(path)
        self._sound = msgspec.json.Decoder(msgspec.Raw)
        self._wanted: Any = msgspec.json.Decoder(self._tree.type()) if fields else self._sound

    def read_lines(self, lines: pa.BinaryArray) -> list[object] | None:
        """The records in `lines`, which end in a newline each; None when a text is wrong, or when there are more or
        fewer texts than lines."""
        _, _, data = lines.buffers()
        try:  # by one view: each text found would ask Arrow's buffer for one of its own
            found: list[object] = self._wanted.decode_lines(memoryview(data))
        except (msgspec.DecodeError, RecursionError):
            return None
        return found if len(found) == len(lines) else None

    def read(self, value: bytes) -> object:
        """The record in one text. Raises ValueError with what is wrong."""
        try:
            self._sound.decode(value)
        except msgspec.DecodeError as wrong:
            raise ValueError(f"the value is not JSON: {_said(wrong)}") from None
        except RecursionError:
            raise ValueError("the value is JSON nested too deeply") from None
        try:
            return self._wanted.decode(value)
        except msgspec.DecodeError as wrong:
            raise ValueError(f"a field needed from the value cannot be read: {_said(wrong)}") from None

    def columns(self, records: Sequence[object]) -> dict[str, list[object]]:
        """For each field its value in each of `records`, which this object has read; MISSING where there is none.

        A field of null is null.
        """
        return {name: self._column(records, path) for name, path in self._paths.items()}

    def _column(self, records: Sequence[object], path: Sequence[str]) -> list[object]:
        values, node = list(records), self._tree
        for depth, segment in enumerate(path):
            values = node.step(values, segment, None if depth else MISSING)
            node = node.children[segment]
        return values


class _Node:
    """A place in the tree of fields: its children, and the type that reads them."""

    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        self._is_field = False
        self._struct: type | None = None
        self._attributes: dict[str, str] = {}

    def add(self, path: Sequence[str]) -> None:
        """Adds the field at `path`; an empty one is this place itself."""
        if not path:
            self._is_field = True
        else:
            self.children.setdefault(path[0], _Node()).add(path[1:])

    def type(self) -> Any:
        """A type that takes whatever may stand here: wholly where it is a field, else its children alone."""
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
        """Like `type`, for a place that may be missing."""
        found = self.type()
        return found if found is Any else found | msgspec.UnsetType

    def step(self, values: Sequence[object], name: str, of_null: object) -> list[object]:
        """The child `name` of each of `values`; `of_null` is that of null."""
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


def _said(wrong: msgspec.DecodeError) -> str:
    return str(wrong).removeprefix("JSON is malformed: ")
