"""The records of a batch as columns: offsets, paths, times, sizes and schemas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sink_job.arrow.arrays import Codes, Indices, Integers, Offsets

REJECTED: Final = -1
"""Code of a row without any effect: rejected by the converter or the null policy, or without a time."""
REJECTED_PATH: Final = -2
"""Code of a row without a valid path. Its time still counts for `last_time` and `interval_start`; it closes no
object."""

DEAD_LETTERS: Final = "/dead-letters"
"""Path of the dead-letter object of a topic-partition (`errors.deadLetters.prefix`). No other path begins with a
slash."""

NO_SCHEMA: Final = -1
"""Schema code of a record without a schema."""

ANY_SCHEMA: Final = -2
"""Schema code of a record without a value that has the schema of the record before it (`NullRecords`)."""


SchemaCheck = Callable[[str, str], bool]
"""(schema of the open object, schema of the record) -> whether the record closes the object. Both are ids, and the
record is one of the batch."""

ProjectedSizes = Callable[[str, Indices], Integers]
"""(id of a schema, rows of the batch) -> the sizes of these records in bytes, projected to the schema. Called only for
records that do not close an object with this schema."""


class NullRecords(NamedTuple):
    """What the records with ANY_SCHEMA become (`errors.onNullValue: Write`): records with the schema of the last record
    before them that has a value. `schema`: their schema code if there is none. `size`: the bytes that they have more
    under another schema than that one."""

    schema: int
    size: int


@dataclass(frozen=True, slots=True)
class Rows:
    """The records of a batch as columns, in the order of their offsets.

    `offsets`: Kafka's offsets.
    `codes`: index of each record's path in `paths`, or REJECTED or REJECTED_PATH.
    `paths`: the distinct paths.
    `times`: ms since the epoch; None without a time partitioner.
    `sizes`: bytes; None if no rule depends on sizes.
    `schemas`: index of each record's schema in `schema_ids`, NO_SCHEMA or ANY_SCHEMA; None if no record has a schema.
    `schema_ids`: the ids of the distinct schemas.
    `nulls`: None if no record can have ANY_SCHEMA.
    `closes`: whether a record closes an open object with another schema; None: it always does.
    `projected_sizes`: None if records are written as they came.
    """

    offsets: Offsets
    codes: Codes
    paths: list[str]
    times: Integers | None = None
    sizes: Integers | None = None
    schemas: Codes | None = None
    schema_ids: list[str] = field(default_factory=list)
    nulls: NullRecords | None = None
    closes: SchemaCheck | None = None
    projected_sizes: ProjectedSizes | None = None

    def __len__(self) -> int:
        return len(self.offsets)

    def between(self, start: int, end: int) -> Rows:
        """The rows from `start` to `end` (exclusive), not copied."""
        return Rows(
            offsets=self.offsets[start:end],
            codes=self.codes[start:end],
            paths=self.paths,
            times=None if self.times is None else self.times[start:end],
            sizes=None if self.sizes is None else self.sizes[start:end],
            schemas=None if self.schemas is None else self.schemas[start:end],
            schema_ids=self.schema_ids,
            nulls=self.nulls,
            closes=self.closes,
            projected_sizes=self._from(start),
        )

    def _from(self, start: int) -> ProjectedSizes | None:
        """`projected_sizes` for the rows from `start` on."""
        sizes = self.projected_sizes
        return None if sizes is None else lambda schema, rows: sizes(schema, rows + start)
