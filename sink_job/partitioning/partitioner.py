"""Partitioners: the path (S3 directory) and the time of each record of a batch (docs/semantics.md).

Python code runs once per distinct value, day and time bucket. The work per record is done by NumPy and dictionaries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from sink_job.api.enums import PartitionerType, SchemaNamePosition, TimestampExtractor
from sink_job.api.sections.record_fields import FieldReference
from sink_job.api.spec import ObjectSettings
from sink_job.api.units.date_pattern import PatternElement, pattern_elements
from sink_job.arrow.arrays import Codes, Indices, Integers, Mask, Times
from sink_job.partitioning.date_format import compile_elements
from sink_job.partitioning.time_buckets import TimeBuckets
from sink_job.partitioning.time_zones import DAY, HOUR, ranked, zone
from sink_job.partitioning.timestamp_extractor import field_times, kafka_times
from sink_job.records.batch import REJECTED, REJECTED_PATH
from sink_job.records.fields import Rejections, elements, safe

Fields = Mapping[str, Sequence[object]]

_MAX_TEXTS: Final = 100_000


class SchemaNames(NamedTuple):
    """The names of the schemas of a batch. `codes`: index of each record's schema in `names`, -1 for a record without a
    schema. `names`: None for a schema without a name."""

    codes: Codes
    names: Sequence[str | None]


class PathColumns(NamedTuple):
    """The paths of a batch.

    `codes`: index of each record's path in `paths`, or REJECTED or REJECTED_PATH.
    `paths`: the distinct paths.
    `times`: ms since the epoch; None without a time partitioner.
    `rejected`: (row, reason) of each rejected row, ascending.
    """

    codes: Codes
    paths: list[str]
    times: Times | None
    rejected: Rejections


@dataclass(frozen=True)
class PathPartitioner:
    """The partitioner of a sink."""

    type: PartitionerType
    delimiter: str
    names: tuple[FieldReference, ...]
    extractor: TimestampExtractor
    timestamp_field: FieldReference
    schema_name: SchemaNamePosition
    _time: TimePathFormatter | None

    @classmethod
    def of(cls, object_settings: ObjectSettings) -> PathPartitioner:
        """The partitioner of the settings. Raises ValueError for settings that the spec's validation rejects."""
        settings, delimiter = object_settings.partitioner, object_settings.s3.directory_delimiter
        return cls(
            type=settings.type,
            delimiter=delimiter,
            names=tuple(map(FieldReference.of, settings.fields or ())) if settings.type.uses_fields else (),
            extractor=settings.timestamp_extractor,
            timestamp_field=FieldReference.of(settings.timestamp_field),
            schema_name=settings.schema_name,
            _time=TimePathFormatter.of(object_settings) if settings.type.uses_time else None,
        )

    @property
    def fields(self) -> tuple[FieldReference, ...]:
        """The fields that `partition` needs."""
        by_field = self._time and self.extractor is TimestampExtractor.RECORD_FIELD
        return tuple(dict.fromkeys((*self.names, *((self.timestamp_field,) if by_field else ()))))

    @property
    def needs_timestamp(self) -> bool:
        """Whether `partition` needs Kafka's timestamps."""
        return self._time is not None and self.extractor is TimestampExtractor.RECORD

    @property
    def needs_clock(self) -> bool:
        """Whether paths depend on the clock of the round."""
        return self._time is not None and self.extractor is TimestampExtractor.WALLCLOCK

    def time_path(self, clock: int) -> str | None:
        """The time element of paths at `clock` (ms since the epoch); None if paths have none."""
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
        schema_names: SchemaNames | None = None,
        skip: Mask | None = None,
    ) -> PathColumns:
        """The paths of `n` records of one Kafka partition.

        `now`: the clock of the round, in ms since the epoch.
        `timestamps`: Kafka's timestamps in ms; -1 means none.
        `fields`: for each of `self.fields`, by its text, one value per record, MISSING where the record lacks it.
        `schema_names`: the name of each record's schema; None if no record has a schema.
        `skip`: a mask of the rows that have been rejected already. They become REJECTED.

        A record without a time becomes REJECTED. A record whose path is invalid for another reason becomes
        REJECTED_PATH. Raises ValueError if required timestamps are absent.
        """
        codes = np.zeros(n, np.int32)
        default = f"partition={partition}"
        if self._time is None and not self.names and self.schema_name is SchemaNamePosition.NONE:
            if skip is not None:
                codes[skip] = REJECTED
            return PathColumns(codes, [default], None, [])
        builder = _PathColumnsBuilder(n, fields or {}, skip)
        times = self._times(builder, now, timestamps)
        by_field = [builder.elements(name, self.delimiter) for name in self.names]
        if len(builder.rows):
            parts = [*by_field, *self._time_labels(builder, times)] or [_Labels(codes, [default])]
            combined = _combine(self._with_schema_names(parts, schema_names, n), builder.index, self.delimiter)
            builder.codes[builder.index], paths = combined
        else:
            paths = []
        return PathColumns(builder.codes, paths, times, sorted(builder.rejected))

    def _times(self, builder: _PathColumnsBuilder, now: int, timestamps: Times | None) -> Times | None:
        if self._time is None:
            return None
        if self.extractor is TimestampExtractor.WALLCLOCK:
            return np.full(builder.n, now, np.int64)
        times = np.zeros(builder.n, np.int64)
        if self.extractor is TimestampExtractor.RECORD:
            if timestamps is None:
                raise ValueError("extractor Record needs Kafka's timestamps")
            found, rejected = kafka_times(timestamps[builder.index])
        else:
            name = self.timestamp_field.text
            found, rejected = field_times(name, builder.values(name))
        times[builder.index] = found
        builder.reject(rejected, REJECTED)
        return times

    def _with_schema_names(self, parts: list[_Labels], names: SchemaNames | None, n: int) -> list[_Labels]:
        """The parts of the paths of all `n` rows, with the element for the name of the schema."""
        if self.schema_name is SchemaNamePosition.NONE:
            return parts
        part = self._schema_labels(names or SchemaNames(np.full(n, -1, np.int32), []))
        return [part, *parts] if self.schema_name is SchemaNamePosition.PREFIX else [*parts, part]

    def _schema_labels(self, names: SchemaNames) -> _Labels:
        texts = ["null" if name is None else safe(name, self.delimiter) for name in (*names.names, None)]
        codes = np.where(names.codes < 0, len(names.names), names.codes).astype(np.int32)
        return _Labels(codes, [f"schema_name={text}" for text in texts])

    def _time_labels(self, builder: _PathColumnsBuilder, times: Times | None) -> list[_Labels]:
        if self._time is None or times is None:
            return []
        indexes, labels = self._time.of_times(times[builder.index])
        codes = np.zeros(builder.n, np.int32)
        codes[builder.index] = indexes
        return [_Labels(codes, labels)]


class _Labels(NamedTuple):
    codes: Codes
    labels: list[str]


class _PathColumnsBuilder:
    """Collects the paths of a batch: the `rows` that have not been rejected, the rejections, and the codes of all
    rows."""

    def __init__(self, n: int, fields: Fields, skip: Mask | None) -> None:
        self.n = n
        self.codes = np.zeros(n, np.int32)
        self.rejected: Rejections = []
        self.rows = np.arange(n) if skip is None else np.flatnonzero(~skip)
        if skip is not None:
            self.codes[skip] = REJECTED
        self._fields = fields

    @property
    def index(self) -> slice | Indices:
        """`rows` as an index of columns. All rows are a slice, which copies nothing."""
        return slice(None) if len(self.rows) == self.n else self.rows

    def values(self, name: str) -> Sequence[object]:
        """The values of the field `name` in `rows`."""
        values = self._fields[name]
        return values if len(self.rows) == self.n else [values[row] for row in self.rows.tolist()]

    def reject(self, rejected: Rejections, code: int) -> None:
        """Removes rows. The row numbers in `rejected` are indexes into `rows`."""
        if not rejected:
            return
        indexes = [index for index, _ in rejected]
        removed = self.rows[indexes]
        self.rejected += zip(removed.tolist(), (reason for _, reason in rejected), strict=True)
        self.codes[removed] = code
        self.rows = np.delete(self.rows, indexes)

    def elements(self, field: FieldReference, delimiter: str) -> _Labels:
        """The path elements of a field. Removes the rows where it is invalid."""
        codes = np.zeros(self.n, np.int32)
        values = self.values(field.text)
        codes[self.rows], labels, rejected = elements(field.text, values, delimiter=delimiter, label=field.label)
        self.reject(rejected, REJECTED_PATH)
        return _Labels(codes, labels)


def _combine(parts: Sequence[_Labels], rows: slice | Indices, delimiter: str) -> tuple[Codes, list[str]]:
    """The index of the path of each of `rows`, and the distinct paths, joined from the labels of `parts`.

    >>> years, fields = _Labels(np.array([0, 0, 1]), ["2025", "2026"]), _Labels(np.array([1, 0, 1]), ["k=a", "k=b"])
    >>> codes, paths = _combine([years, fields], np.arange(3), "/")
    >>> codes.tolist(), paths
    ([1, 0, 2], ['2025/k=a', '2025/k=b', '2026/k=b'])
    """
    codes, labels = parts[0].codes[rows].astype(np.int64), parts[0].labels
    for part in parts[1:]:
        width = len(part.labels)
        # one number for each pair of a left and a right label; only pairs that occur get a text
        codes, distinct = ranked(codes * width + part.codes[rows])
        pairs = (divmod(int(code), width) for code in distinct)
        labels = [f"{labels[left]}{delimiter}{part.labels[right]}" for left, right in pairs]
    return _once(codes, labels)


def _once(codes: Integers, labels: list[str]) -> tuple[Codes, list[str]]:
    """Merges the codes of equal labels, such as those of 1 and "1"."""
    indexes: dict[str, int] = {}
    mapped = np.array([indexes.setdefault(label, len(indexes)) for label in labels], np.int32)
    return (codes.astype(np.int32) if len(indexes) == len(labels) else mapped[codes]), list(indexes)


class TimePathFormatter:
    """The time element of paths. Caches the texts of time buckets."""

    def __init__(self, buckets: TimeBuckets, text: Callable[[int], str]) -> None:
        self._buckets = buckets
        self._text = text
        self._texts: dict[int, str] = {}

    @classmethod
    def of(cls, object_settings: ObjectSettings) -> TimePathFormatter:
        """The formatter of a time partitioner's settings. Raises ValueError for incomplete settings."""
        settings, delimiter = object_settings.partitioner, object_settings.s3.directory_delimiter
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
        return cls(TimeBuckets(where, duration), compile_elements(found, zone=where, locale=settings.locale))

    def of_times(self, times: Times) -> tuple[Indices, list[str]]:
        """For each of `times` (ms since the epoch) the index of its text, and the texts of all time buckets."""
        indexes, starts = self._buckets.of(times)
        return indexes, [self._text_of(start) for start in starts]

    def _text_of(self, start: int) -> str:
        text = self._texts.get(start)
        if text is None:
            if len(self._texts) >= _MAX_TEXTS:
                self._texts.clear()
            text = self._texts[start] = self._text(start)
        return text


def _calendar(delimiter: str) -> list[PatternElement]:
    """The pattern of Hourly. Without its last two elements it is the pattern of Daily.

    It is built from elements, because a delimiter in a pattern text could be read as a pattern letter.
    """
    names = (("year=", "YYYY"), (f"{delimiter}month=", "MM"), (f"{delimiter}day=", "dd"), (f"{delimiter}hour=", "HH"))
    return [
        part
        for name, letters in names
        for part in (PatternElement(name, literal=True), PatternElement(letters, literal=False))
    ]


def without_trailing(found: Sequence[PatternElement], delimiter: str) -> list[PatternElement]:
    """The elements of a pattern, without a delimiter at its end."""
    *front, last = found
    if not (last.literal and last.text.endswith(delimiter)):
        return list(found)
    return [*front, PatternElement(last.text.removesuffix(delimiter), literal=True)]
