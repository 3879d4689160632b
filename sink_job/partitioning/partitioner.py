"""Partitioners: which path (S3 directory) each record of a batch goes to, and each record's time (SEMANTICS section 5).

Work is done per distinct value, day and bucket; per record only what columns of numbers and dictionaries do in C.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from sink_job.api.date_pattern import PatternElement, pattern_elements
from sink_job.api.enums import PartitionerType, TimestampExtractor
from sink_job.api.spec import ObjectSettings
from sink_job.partitioning.batch import REJECTED, REJECTED_PATH
from sink_job.partitioning.date_format import compile_pieces
from sink_job.partitioning.field_values import Codes, Rejections, elements
from sink_job.partitioning.time_zones import DAY, HOUR, Times, ranked, zone
from sink_job.partitioning.timestamp_extractor import TimeBuckets, field_times, kafka_times

Mask = npt.NDArray[np.bool_]
Fields = Mapping[str, Sequence[object]]

_MAX_TEXTS: Final = 100_000


class PathColumns(NamedTuple):
    """A batch's paths: `codes` index into `paths` (or are REFUSED, REFUSED_PATH); `times` are None without a time
    partitioner; `refused` are (row, what is wrong), ascending."""

    codes: Codes
    paths: list[str]
    times: Times | None
    rejected: Rejections


@dataclass(frozen=True)
class PathPartitioner:
    """What finds the paths of one sink's records."""

    type: PartitionerType
    delimiter: str
    names: tuple[str, ...]
    extractor: TimestampExtractor
    timestamp_field: str
    _time: TimePathFormatter | None

    @classmethod
    def of(cls, shaping: ObjectSettings) -> PathPartitioner:
        """The partitioner that the settings ask for. Raises ValueError for what the spec should have refused."""
        settings, delimiter = shaping.partitioner, shaping.s3.directory_delimiter
        return cls(
            type=settings.type,
            delimiter=delimiter,
            names=tuple(settings.fields or ()) if settings.type.uses_fields else (),
            extractor=settings.timestamp_extractor,
            timestamp_field=settings.timestamp_field,
            _time=TimePathFormatter.of(shaping) if settings.type.uses_time else None,
        )

    @property
    def fields(self) -> tuple[str, ...]:
        """Dotted names of the fields of the value that `paths_of` needs."""
        by_field = self._time and self.extractor is TimestampExtractor.RECORD_FIELD
        return tuple(dict.fromkeys((*self.names, *((self.timestamp_field,) if by_field else ()))))

    @property
    def needs_timestamp(self) -> bool:
        """Whether `paths_of` needs Kafka's timestamps."""
        return self._time is not None and self.extractor is TimestampExtractor.RECORD

    @property
    def needs_clock(self) -> bool:
        """Whether paths depend on the round's clock."""
        return self._time is not None and self.extractor is TimestampExtractor.WALLCLOCK

    def time_path(self, clock: int) -> str | None:
        """The time element of paths at this clock (milliseconds); None where paths have none."""
        if self._time is None:
            return None
        return self._time.of_times(np.array([clock], np.int64))[1][0]

    def partition(
        self,
        n: int,
        now: int,
        *,
        partition: int,
        timestamps: Times | None = None,
        fields: Fields | None = None,
        skip: Mask | None = None,
    ) -> PathColumns:
        """The paths of `n` records of one Kafka partition.

        `now` is the round's clock and `timestamps` Kafka's (milliseconds, -1 none); `fields` hold a value per record,
        MISSING where the record lacks it; rows of `skip` are refused already and become REFUSED. A record without a
        time is REFUSED, one whose path cannot be made otherwise REFUSED_PATH.
        """
        codes = np.zeros(n, np.int32)
        if self._time is None and not self.names:
            if skip is not None:
                codes[skip] = REJECTED
            return PathColumns(codes, [f"partition={partition}"], None, [])
        work = _Batch(n, fields or {}, skip)
        times = self._times(work, now, timestamps)
        by_field = [work.elements(name, self.delimiter) for name in self.names]
        if len(work.rows):
            combined = _combine([*by_field, *self._time_labels(work, times)], work.rows, self.delimiter)
            work.codes[work.rows], paths = combined
        else:
            paths = []
        return PathColumns(work.codes, paths, times, sorted(work.refused))

    def _times(self, work: _Batch, now: int, timestamps: Times | None) -> Times | None:
        if self._time is None:
            return None
        if self.extractor is TimestampExtractor.WALLCLOCK:
            return np.full(work.n, now, np.int64)
        times = np.zeros(work.n, np.int64)
        if self.extractor is TimestampExtractor.RECORD:
            if timestamps is None:
                raise ValueError("extractor Record needs Kafka's timestamps")
            found, refused = kafka_times(timestamps[work.rows])
        else:
            found, refused = field_times(self.timestamp_field, work.values(self.timestamp_field))
        times[work.rows] = found
        work.refuse(refused, REJECTED)
        return times

    def _time_labels(self, work: _Batch, times: Times | None) -> list[_Labels]:
        if self._time is None or times is None:
            return []
        slots, labels = self._time.of_times(times[work.rows])
        codes = np.zeros(work.n, np.int32)
        codes[work.rows] = slots
        return [_Labels(codes, labels)]


class _Labels(NamedTuple):
    codes: Codes
    labels: list[str]


class _Batch:
    """What is left of a batch while its paths are made: `rows` that are not refused, and the codes of all."""

    def __init__(self, n: int, fields: Fields, skip: Mask | None) -> None:
        self.n = n
        self.codes = np.zeros(n, np.int32)
        self.refused: Rejections = []
        self.rows = np.arange(n) if skip is None else np.flatnonzero(~skip)
        if skip is not None:
            self.codes[skip] = REJECTED
        self._fields = fields

    def values(self, name: str) -> Sequence[object]:
        values = self._fields[name]
        return values if len(self.rows) == self.n else [values[row] for row in self.rows.tolist()]

    def refuse(self, refused: Rejections, code: int) -> None:
        """Takes rows out; those of `refused` are places in `rows`."""
        if not refused:
            return
        places = [place for place, _ in refused]
        gone = self.rows[places]
        self.refused += zip(gone.tolist(), (why for _, why in refused), strict=True)
        self.codes[gone] = code
        self.rows = np.delete(self.rows, places)

    def elements(self, name: str, delimiter: str) -> _Labels:
        codes = np.zeros(self.n, np.int32)
        codes[self.rows], labels, refused = elements(name, self.values(name), delimiter=delimiter)
        self.refuse(refused, REJECTED_PATH)
        return _Labels(codes, labels)


def _combine(parts: Sequence[_Labels], rows: npt.NDArray[np.intp], delimiter: str) -> tuple[Codes, list[str]]:
    """The paths made of the parts' labels, each once, and the place of each of `rows` among them."""
    codes, labels = parts[0].codes[rows].astype(np.int64), parts[0].labels
    for part in parts[1:]:
        width = len(part.labels)
        codes, distinct = ranked(codes * width + part.codes[rows])
        pairs = (divmod(int(code), width) for code in distinct)
        labels = [f"{labels[left]}{delimiter}{part.labels[right]}" for left, right in pairs]
    return _once(codes, labels)


def _once(codes: npt.NDArray[np.int64], labels: list[str]) -> tuple[Codes, list[str]]:
    """Gives equal labels, such as that of 1 and "1", one code."""
    places: dict[str, int] = {}
    mapped = np.array([places.setdefault(label, len(places)) for label in labels], np.int32)
    return (codes.astype(np.int32) if len(places) == len(labels) else mapped[codes]), list(places)


class TimePathFormatter:
    """The time element of paths; keeps the texts of buckets that it has met."""

    def __init__(self, buckets: TimeBuckets, text: Callable[[int], str]) -> None:
        self._buckets = buckets
        self._text = text
        self._texts: dict[int, str] = {}

    @classmethod
    def of(cls, shaping: ObjectSettings) -> TimePathFormatter:
        settings, delimiter = shaping.partitioner, shaping.s3.directory_delimiter
        where = zone(settings.timezone or "UTC")
        match settings.type:
            case PartitionerType.DAILY:
                duration, found = DAY, _calendar(delimiter)[:-2]
            case PartitionerType.HOURLY:
                duration, found = HOUR, _calendar(delimiter)
            case _:
                if not (settings.duration and settings.path_format):
                    raise ValueError(f"partitioner {settings.type} needs duration and pathFormat")
                duration, found = settings.duration, without_trailing(pattern_elements(settings.path_format), delimiter)
        return cls(TimeBuckets(where, duration), compile_pieces(found, zone=where, locale=settings.locale))

    def of_times(self, times: Times) -> tuple[npt.NDArray[np.intp], list[str]]:
        """The texts of the buckets that `times` fall into, and the place of each time's among them."""
        slots, starts = self._buckets.of(times)
        return slots, [self._text_of(start) for start in starts]

    def _text_of(self, start: int) -> str:
        text = self._texts.get(start)
        if text is None:
            if len(self._texts) >= _MAX_TEXTS:
                self._texts.clear()
            text = self._texts[start] = self._text(start)
        return text


def _calendar(delimiter: str) -> list[PatternElement]:
    """The pattern of Hourly, that of Daily and two pieces more: made here so that no delimiter is read as a letter."""
    names = (("year=", "YYYY"), (f"{delimiter}month=", "MM"), (f"{delimiter}day=", "dd"), (f"{delimiter}hour=", "HH"))
    return [
        part
        for name, letters in names
        for part in (PatternElement(name, literal=True), PatternElement(letters, literal=False))
    ]


def without_trailing(found: Sequence[PatternElement], delimiter: str) -> list[PatternElement]:
    """The pieces of a pattern without one delimiter at its end."""
    *front, last = found
    if not (last.literal and last.text.endswith(delimiter)):
        return list(found)
    return [*front, PatternElement(last.text.removesuffix(delimiter), literal=True)]
