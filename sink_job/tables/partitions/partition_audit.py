"""Whether the partition of a file can be that of all its rows, by the bounds in its manifest. Pure.

Readers skip files by their partitions, so a wrong one makes rows disappear from a filtered query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import PartitionField
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import DayTransform, HourTransform, IdentityTransform
from pyiceberg.types import PrimitiveType

from sink_job.tables.partitions.object_partitions import path_columns


@dataclass(frozen=True)
class FilePartition:
    """The values of columns that only paths have, by the names in paths, and what is wrong with the values of columns
    of the rows; empty: nothing."""

    texts: Mapping[str, str | None]
    problem: str = ""


class PartitionReader:
    """Reads the partitions of the files of a table."""

    def __init__(self, table: TableMetadata) -> None:
        self._schema = table.schema()
        self._specs = {each.spec_id: each for each in table.partition_specs}
        known = self._schema.field_ids
        self._paths = {number: name for name, number in path_columns(table).items() if number in known}

    @property
    def names(self) -> frozenset[str]:
        """The names in paths that are columns of the table."""
        return frozenset(self._paths.values())

    def read(self, file: DataFile) -> FilePartition:
        """The partition of a file."""
        texts: dict[str, str | None] = {}
        problems: list[str] = []
        for at, field in enumerate(self._specs[file.spec_id].fields):
            value = file.partition[at]
            if field.source_id in self._paths and isinstance(field.transform, IdentityTransform):
                texts[self._paths[field.source_id]] = value
            elif (problem := self._problem(field, value, file)) is not None:
                problems.append(problem)
        return FilePartition(texts, "; ".join(problems))

    def _problem(self, field: PartitionField, value: Any, file: DataFile) -> str | None:
        number = field.source_id
        if number not in self._schema.field_ids:
            return None
        kind = self._schema.find_type(number)
        if not isinstance(kind, PrimitiveType) or not isinstance(
            field.transform, (IdentityTransform, HourTransform, DayTransform)
        ):
            return None
        nulls, count = file.null_value_counts.get(number), file.value_counts.get(number)
        if nulls is not None and count and (nulls == count if value is not None else nulls < count):
            return f"field {field.name} is {value!r}, and {nulls:,} of {count:,} values are null"
        if nulls and value is not None:
            return f"field {field.name} is {value!r}, and {nulls:,} values are null"
        low, high = file.lower_bounds.get(number), file.upper_bounds.get(number)
        if value is None or low is None or high is None:
            return None
        of = field.transform.transform(kind)
        bounds = of(from_bytes(kind, low)), of(from_bytes(kind, high))
        if _fits(value, *bounds):
            return None
        return f"field {field.name} is {value!r}, and the bounds of its column are {bounds[0]!r} and {bounds[1]!r}"


def _fits(value: Any, low: Any, high: Any) -> bool:
    """Whether bounds are those of one value. Bounds of texts may be shortened."""
    if isinstance(value, str):
        is_high = high == value or (len(high) < len(value) and high > value)
        return value.startswith(low) and is_high
    return bool(low == value == high)
