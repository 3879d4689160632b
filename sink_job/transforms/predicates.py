"""The records that a transform applies to (`when`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sink_job.api.sections.transforms_section import Predicate
from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.arrays import Mask
from sink_job.records.fields import MISSING, segments
from sink_job.transforms.json_values import is_null, opened
from sink_job.transforms.typed_values import TypedValue

_WORDS: Final = {None: "null", True: "true", False: "false"}


class RecordPredicate:
    """The conditions of one `when`."""

    def __init__(self, spec: Predicate, *, is_json: bool) -> None:
        """`is_json`: values are JSON, in which null is a tombstone, too."""
        self._spec = spec
        self._is_json = is_json
        self._topic = None if spec.topic is None else re.compile(spec.topic)
        self._path = None if spec.field is None else segments(spec.field)
        self._values = None if spec.values is None else frozenset(spec.values)

    def common(self, topic: str, headers: pa.ListArray | None, size: int) -> Mask:
        """A mask of the records of a batch for which the conditions on topic and header hold."""
        if self._topic is not None and not self._topic.fullmatch(topic):
            return np.zeros(size, np.bool_)
        if self._spec.header is None:
            return np.ones(size, np.bool_)
        assert headers is not None, "the columns of the batch are those that the settings need"
        return _with_header(headers, self._spec.header)

    def without_value(self, topic: str, headers: pa.ListArray | None, size: int) -> Mask:
        """A mask of the records that a condition on topic and header alone chooses."""
        common = self.common(topic, headers, size)
        return ~common if self._spec.negated else common

    def applies(self, value: object, *, common: bool) -> bool:
        """Whether the transform applies to a record with this value. `common`: the conditions on topic and header
        hold. Raises InvalidValue if a field is needed and the value is not JSON."""
        return (common and self._holds(value)) is not self._spec.negated

    def _holds(self, value: object) -> bool:
        value = value.value if isinstance(value, TypedValue) else value
        if self._spec.tombstone is not None and self._is_tombstone(value) is not self._spec.tombstone:
            return False
        if self._path is None:
            return True
        found = _at(value, self._path)
        if self._values is None:
            return found is not MISSING
        return _text(found) in self._values

    def _is_tombstone(self, value: object) -> bool:
        return is_null(value) if self._is_json else value is None


def _with_header(headers: pa.ListArray, name: str) -> Mask:
    mask = np.zeros(len(headers), np.bool_)
    rows = arrow_columns.numbers(pc.list_parent_indices(headers))
    found = arrow_columns.truths(pc.fill_null(pc.equal(headers.flatten().field("key"), name), False))
    mask[rows[found]] = True
    return mask


def _at(value: object, path: Sequence[str]) -> object:
    """The value of a nested field, read; MISSING without it."""
    found = None if value is None else opened(value)
    for name in path:
        if not isinstance(found, dict) or name not in found:
            return MISSING
        found = opened(found[name])
    return found


def _text(value: object) -> str | None:
    """A value as in `values`; None for one that has no text."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    return repr(value) if isinstance(value, int | float) else None
