"""The timestamp extractors, which determine a record's time, and the time buckets of paths (docs/semantics.md).

All functions work on columns. The time zone is evaluated once per day and time bucket, not once per record.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.arrays import Times
from sink_job.partitioning import iso8601
from sink_job.records.fields import Rejections, shortened, unexpected_type

LIMIT: Final = 2**62
"""Times at or above this limit (146 million years) are rejected, because sums with them would overflow."""
_DIGITS: Final = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_PLAIN: Final = r"^(000[1-9]|00[1-9]\d|0[1-9]\d\d|[1-9]\d{3})-\d\d-\d\dT\d\d:\d\d:\d\dZ$"


def kafka_times(timestamps: Times) -> tuple[Times, Rejections]:
    """The times of the extractor Record: Kafka's timestamps in ms since the epoch. -1 means none and is rejected."""
    if not len(timestamps) or (int(timestamps.min()) >= 0 and int(timestamps.max()) < LIMIT):
        return timestamps, []
    missing = [(int(row), "the record has no Kafka timestamp") for row in np.flatnonzero(timestamps == -1)]
    beyond = (timestamps <= -LIMIT) | (timestamps >= LIMIT)  # not np.abs: the absolute value of -2**63 overflows
    out_of_range = [(int(row), "the Kafka timestamp is out of range") for row in np.flatnonzero(beyond)]
    return timestamps, sorted(missing + out_of_range)


def field_times(name: str, values: Sequence[object]) -> tuple[Times, Rejections]:
    """The times of the extractor RecordField, from the values of the field `name`; 0 for a rejected row."""
    kinds = set(map(type, values))
    uniform = _integers(values) if kinds == {int} else _texts(values) if kinds == {str} else None
    if uniform is not None:
        return uniform, []
    times = np.zeros(len(values), np.int64)
    rejected: Rejections = []
    parsed: dict[object, int] = {}
    for row, value in enumerate(values):
        try:
            if isinstance(value, str):
                time = parsed.get(value)
                times[row] = parsed.setdefault(value, _time(value)) if time is None else time
            else:
                times[row] = _time(value)
        except ValueError as error:
            rejected.append((row, f'field "{name}" {error}'))
    return times, rejected


def _integers(values: Sequence[object]) -> Times | None:
    try:
        times = np.array(values, np.int64)
    except OverflowError:
        return None
    return times if abs(int(times.min())) < LIMIT and abs(int(times.max())) < LIMIT else None


def _texts(values: Sequence[object]) -> Times | None:
    """The times of texts like 2024-05-01T10:00:00Z, parsed as a column. None if a text has another form."""
    texts = arrow_columns.texts([str(value) for value in values])
    if not pc.all(pc.match_substring_regex(texts, _PLAIN)).as_py():
        return None
    try:
        parsed = texts.cast(pa.timestamp("ms", "UTC"))
    except pa.ArrowInvalid:
        return None
    return arrow_columns.numbers(parsed.cast(pa.int64()))


def _time(value: object) -> int:
    """The time of one value. Raises ValueError with the reason, which follows the name of the field in a message."""
    if isinstance(value, str):
        time = _text_time(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        time = value
    else:
        raise ValueError(unexpected_type(type(value), "milliseconds or ISO 8601"))
    if abs(time) >= LIMIT:
        raise ValueError("holds a time out of range")
    return time


def _text_time(text: str) -> int:
    """The time of a text. Digits that fit into 64 bits are milliseconds, so a year without a month is not a date."""
    if _DIGITS.fullmatch(text) and -(2**63) <= int(text) < 2**63:
        return int(text)
    try:
        return iso8601.parse(text)
    except ValueError as error:
        raise ValueError(f"holds {shortened(text)!r}: {error}") from None
