"""The elements `name=value` of the paths of objects, and the columns of their rows with these values. Pure.

The text of a value in a path is not always its only one: `a/b` and `a%2Fb` are both `a%2Fb` in a path, and null and the
text null are both `null`. So no value of a row is made from a path. A column that only the path has has the text as it
is in the path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sink_job.api.enums import PartitionerType, TimestampExtractor
from sink_job.api.sections.record_fields import FieldReference, FieldSource
from sink_job.api.spec import ObjectSettings
from sink_job.envelope.schema import VALUE
from sink_job.partitioning.time_zones import HOUR

_TIMESTAMP: Final = "timestamp"
"""The column of an envelope with Kafka's timestamp."""


@dataclass(frozen=True)
class TimeColumn:
    """The column with the time of a path, and whether a path has one hour or less of it."""

    name: str
    is_hourly: bool


@dataclass(frozen=True)
class PathLayout:
    """How paths of objects with the same settings are read. `columns`: by the name in a path, the column of the field
    in the rows, with dots for nested ones. `time`: None if the paths have no time, or rows no column with it."""

    delimiter: str = "/"
    columns: Mapping[str, str] = field(default_factory=dict)
    time: TimeColumn | None = None

    def column(self, name: str) -> str:
        """The column of the rows for a name in a path, if they have it."""
        return self.columns.get(name, name)


def layout_of(settings: ObjectSettings) -> PathLayout:
    """The layout of the paths of objects with these settings."""
    partitioner = settings.partitioner
    names = partitioner.fields or () if partitioner.type.uses_fields else ()
    found = [FieldReference.of(each) for each in names]
    columns = {each.label: _column(each, settings) or each.label for each in found}
    return PathLayout(settings.s3.directory_delimiter, columns, _time_column(settings))


def path_values(path: str, layout: PathLayout) -> dict[str, str]:
    """The names in a path and their texts, in their order. A name that is in it twice has none.

    >>> path_values("k=a=b/year=2026/05", PathLayout())
    {'k': 'a=b', 'year': '2026'}
    """
    pairs = [_pair(each, layout) for each in path.split(layout.delimiter) if "=" in each]
    counts = Counter(name for name, _ in pairs)
    return {name: text for name, text in pairs if name and counts[name] == 1}


def _pair(element: str, layout: PathLayout) -> tuple[str, str]:
    """The name of a field may contain `=`."""
    known = [name for name in layout.columns if element.startswith(f"{name}=")]
    if known:
        name = max(known, key=len)
        return name, element[len(name) + 1 :]
    name, _, text = element.partition("=")
    return name, text


def _column(reference: FieldReference, settings: ObjectSettings) -> str | None:
    """The column of a field in the rows; None if they never have it."""
    if reference.source is FieldSource.VALUE:
        return f"{VALUE}.{reference.name}" if settings.format.envelope else reference.name
    if reference.source is FieldSource.HEADER or not settings.format.envelope:
        return None
    return reference.label


def _time_column(settings: ObjectSettings) -> TimeColumn | None:
    partitioner = settings.partitioner
    if not partitioner.type.uses_time:
        return None
    name: str | None = None
    if partitioner.timestamp_extractor is TimestampExtractor.RECORD_FIELD:
        name = _column(FieldReference.of(partitioner.timestamp_field), settings)
    elif partitioner.timestamp_extractor is TimestampExtractor.RECORD and settings.format.envelope:
        name = _TIMESTAMP
    return None if name is None else TimeColumn(name, _is_hourly(settings))


def _is_hourly(settings: ObjectSettings) -> bool:
    partitioner = settings.partitioner
    if partitioner.type in (PartitionerType.HOURLY, PartitionerType.DAILY):
        return partitioner.type is PartitionerType.HOURLY
    return (partitioner.duration or HOUR) <= HOUR
