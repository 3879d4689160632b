"""A record's time (the timestamp extractors) and the stretch of time, the bucket, that its path stands for.

SEMANTICS section 5. Columns in, columns out; the time zone is asked once per day and bucket, not per record.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sink_job.partitioning import arrow_columns, iso8601
from sink_job.partitioning.field_values import Rejections, shortened, wrong_kind
from sink_job.partitioning.time_zones import Times, Zone, ranked

LIMIT: Final = 2**62
"""Times from here on, 146 million years away, are refused: sums with them would not fit."""
_DIGITS: Final = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_PLAIN: Final = r"^(000[1-9]|00[1-9]\d|0[1-9]\d\d|[1-9]\d{3})-\d\d-\d\dT\d\d:\d\d:\d\dZ$"


def kafka_times(timestamps: Times) -> tuple[Times, Rejections]:
    """The times of extractor Record: Kafka's own, where -1 is none."""
    missing = [(int(row), "the record has no Kafka timestamp") for row in np.flatnonzero(timestamps == -1)]
    beyond = (timestamps <= -LIMIT) | (timestamps >= LIMIT)  # not np.abs: -2**63 has no positive counterpart
    far = [(int(row), "the Kafka timestamp is out of range") for row in np.flatnonzero(beyond)]
    return timestamps, sorted(missing + far)


def field_times(name: str, values: Sequence[object]) -> tuple[Times, Rejections]:
    """The times of extractor RecordField, from the values of the field `name`; 0 where it is refused."""
    kinds = set(map(type, values))
    quick = _integers(values) if kinds == {int} else _texts(values) if kinds == {str} else None
    if quick is not None:
        return quick, []
    times = np.zeros(len(values), np.int64)
    refused: Rejections = []
    known: dict[object, int] = {}
    for row, value in enumerate(values):
        try:
            if isinstance(value, str):
                time = known.get(value)
                times[row] = known.setdefault(value, _time(value)) if time is None else time
            else:
                times[row] = _time(value)
        except ValueError as wrong:
            refused.append((row, f'field "{name}" {wrong}'))
    return times, refused


def _integers(values: Sequence[object]) -> Times | None:
    try:
        times = np.array(values, np.int64)
    except OverflowError:
        return None
    return times if abs(int(times.min())) < LIMIT and abs(int(times.max())) < LIMIT else None


def _texts(values: Sequence[object]) -> Times | None:
    """Plain texts like 2024-05-01T10:00:00Z, all at once; None when there are others among them."""
    texts = arrow_columns.texts([str(value) for value in values])
    if not pc.all(pc.match_substring_regex(texts, _PLAIN)).as_py():
        return None
    try:
        parsed = texts.cast(pa.timestamp("ms", "UTC"))
    except pa.ArrowInvalid:
        return None
    return arrow_columns.numbers(parsed.cast(pa.int64()))


def _time(value: object) -> int:
    """Raises ValueError with what is wrong about the value, to be read behind the name of its field."""
    if isinstance(value, str):
        time = _text_time(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        time = value
    else:
        raise ValueError(wrong_kind(type(value), "milliseconds or ISO 8601"))
    if abs(time) >= LIMIT:
        raise ValueError("holds a time out of range")
    return time


def _text_time(text: str) -> int:
    """Digits are milliseconds unless they do not fit into 64 bits; a year alone is therefore not a date."""
    if _DIGITS.fullmatch(text) and -(2**63) <= int(text) < 2**63:
        return int(text)
    try:
        return iso8601.parse(text)
    except ValueError as wrong:
        raise ValueError(f"holds {shortened(text)!r}: {wrong}") from None


@dataclass(frozen=True)
class TimeBuckets:
    """The stretches of `duration` milliseconds that time paths stand for, counted on the zone's clock."""

    zone: Zone
    duration: int

    def of(self, times: Times) -> tuple[npt.NDArray[np.intp], list[int]]:
        """The distinct buckets' starts (instants), and for each of `times` its place among them.

        Local time is divided with truncation toward zero, as the connector does: before 1970 a bucket starts at its
        end. The repeated hour of a clock change falls into one bucket. `times` must not be empty.
        """
        local = times + self.zone.offsets(times)
        numbers = local // self.duration
        if int(local.min()) < 0:
            numbers += (local < 0) & (numbers * self.duration != local)
        slots, distinct = ranked(numbers)
        return slots, [self.zone.to_utc(int(number) * self.duration) for number in distinct]
