"""From a batch of Kafka records to what the cutter and the objects need: converter, null policy, paths, format.

The one place where these meet, for the tasks of a round, the rebuilding of objects and the simulator alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sink_job.api import enums
from sink_job.api.job_sections import ErrorsSpec
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.converters import Converted, ValueConverter, converter_for
from sink_job.engine.types import Columns
from sink_job.formats import RowEncoder, row_encoder
from sink_job.formats.compression import Compression, Gzip, Uncompressed
from sink_job.formats.json_lines import JsonLines
from sink_job.partitioning import arrow_columns
from sink_job.partitioning.batch import REJECTED_PATH, Rows
from sink_job.partitioning.field_values import Rejections
from sink_job.partitioning.object_keys import MAX_KEY_BYTES, extension, object_key, padded
from sink_job.partitioning.partitioner import PathColumns, PathPartitioner
from sink_job.rotation.policy import RotationPolicy

MAX_DIGITS = 64
"""Digits that an offset in a key may have: 19, or the greatest pad width."""


class RejectedRow(NamedTuple):
    """A record that is a data error (SEMANTICS section 8): its row in the batch, its offset, and what is wrong."""

    row: int
    offset: int
    message: str


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """A batch, ready for the cutter: `framed` holds a row of the object's body for each of `rows`, without meaning
    where a row is refused. `errors` are ascending; with tolerance None the sink stops before the first. `ignored`
    counts the nulls that the policy drops."""

    rows: Rows
    encoded: pa.BinaryArray
    errors: list[RejectedRow]
    ignored: int


@dataclass(frozen=True)
class RecordPipeline:
    """What a sink's settings make of its records."""

    shaping: ObjectSettings
    rotation_policy: RotationPolicy
    partitioner: PathPartitioner
    converter: ValueConverter
    format: RowEncoder
    compression: Compression
    on_null: enums.OnNullValue

    @classmethod
    def of(cls, shaping: ObjectSettings, errors: ErrorsSpec) -> RecordPipeline:
        """Raises ValueError for settings that the spec should have refused."""
        if errors.on_null_value is enums.OnNullValue.WRITE:
            raise ValueError("onNullValue Write is not built yet")
        partitioner = PathPartitioner.of(shaping)
        return cls(
            shaping=shaping,
            rotation_policy=RotationPolicy.of(shaping),
            partitioner=partitioner,
            converter=converter_for(shaping.format.converter, partitioner.fields),
            format=row_encoder(shaping.format),
            compression=_compression(shaping),
            on_null=errors.on_null_value,
        )

    @property
    def columns(self) -> Columns:
        """The Kafka columns that `prepare` needs beside offset and value."""
        return Columns(timestamp=self.partitioner.needs_timestamp)

    @property
    def needs_clock(self) -> bool:
        """Whether the round's clock decides on paths."""
        return self.partitioner.needs_clock

    def path_clock(self, before: int | None, now: int) -> int | None:
        """The clock to record for the paths of a round at clock `now`, in milliseconds; None where no path depends on
        the clock. It stays at `before`, the topic-partition's path clock so far, while that gives the same time path:
        the offset ranges of such rounds are recorded as one."""
        if not self.needs_clock:
            return None
        if before is not None and self.partitioner.time_path(before) == self.partitioner.time_path(now):
            return before
        return now

    @property
    def extension(self) -> str:
        """What keys end in."""
        return extension(self.shaping)

    def key(self, tp: TopicPartition, path: str, first: int) -> str:
        """The key of the object of `tp` under `path` that begins with the offset `first`."""
        return object_key(self.shaping, tp.topic, path, tp.partition, first)

    def prepare(self, batch: pa.RecordBatch, now: int, tp: TopicPartition) -> PreparedBatch:
        """Converts a batch of `tp` and finds its paths; `now` is the round's clock in milliseconds.

        `batch` holds `offset: int64` and `value: binary`, and `timestamp: int64` (milliseconds, -1 none) if asked for.
        """
        offsets = arrow_columns.numbers(batch.column("offset"))
        converted = self.converter.convert(batch.column("value"))
        refused, ignored = self._nulls(converted)
        placed = self._paths(batch, now, tp, converted, refused)
        codes = placed.codes
        refused = [*refused, *placed.rejected, *self._too_long(tp, placed.paths, codes, offsets)]
        framed = self._framed(converted)
        return PreparedBatch(
            rows=Rows(
                offsets=offsets,
                codes=codes,
                paths=placed.paths,
                times=placed.times,
                sizes=np.diff(arrow_columns.bounds(framed)).astype(np.int64),
            ),
            encoded=framed,
            errors=[RejectedRow(row, int(offsets[row]), message) for row, message in sorted(refused)],
            ignored=ignored,
        )

    def _nulls(self, converted: Converted) -> tuple[Rejections, int]:
        """What is refused before the paths, and how many nulls are dropped."""
        if converted.nulls is None:
            return converted.rejected, 0
        rows = np.flatnonzero(converted.nulls).tolist()
        if self.on_null is enums.OnNullValue.IGNORE:
            return converted.rejected, len(rows)
        return [*converted.rejected, *((row, "the value is null, and errors.onNullValue is Fail") for row in rows)], 0

    def _paths(
        self, batch: pa.RecordBatch, now: int, tp: TopicPartition, converted: Converted, refused: Rejections
    ) -> PathColumns:
        skip: npt.NDArray[np.bool_] | None = None
        if refused or converted.nulls is not None:
            skip = np.zeros(len(batch), np.bool_) if converted.nulls is None else converted.nulls.copy()
            skip[[row for row, _ in refused]] = True
        timestamps = arrow_columns.numbers(batch.column("timestamp")) if self.partitioner.needs_timestamp else None
        return self.partitioner.partition(
            len(batch), now, partition=tp.partition, timestamps=timestamps, fields=converted.fields, skip=skip
        )

    def _too_long(
        self, tp: TopicPartition, paths: list[str], codes: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64]
    ) -> Rejections:
        """Refuses the records with which an object would begin whose key is longer than S3 allows."""
        room = MAX_KEY_BYTES - len(self.key(tp, "", 0).encode()) + len(self._padded(0))
        refused: Rejections = []
        for code, path in enumerate(paths):
            if len(path) * 4 + MAX_DIGITS <= room:
                continue
            digits = room - len(path.encode())
            if len(self._padded(0)) > digits:
                rows = np.flatnonzero(codes == code)
            elif digits < MAX_DIGITS:
                rows = np.flatnonzero((codes == code) & (offsets >= 10**digits))
            else:
                continue
            codes[rows] = REJECTED_PATH
            refused += [(row, f"its object's key would be longer than {MAX_KEY_BYTES} bytes") for row in rows.tolist()]
        return refused

    def _padded(self, offset: int) -> str:
        return padded(self.shaping, offset)

    def _framed(self, converted: Converted) -> pa.BinaryArray:
        if converted.lines is not None and isinstance(self.format, JsonLines):
            return converted.lines
        return self.format.encode(converted.values)


def _compression(shaping: ObjectSettings) -> Compression:
    match shaping.format.compression:
        case enums.CompressionCodec.NONE:
            return Uncompressed()
        case enums.CompressionCodec.GZIP:
            return Gzip(shaping.format.gzip_level)
    raise ValueError(f"compression {shaping.format.compression} is not built yet")
