"""From a batch of Kafka records to encoded rows with paths: converter, null policy, partitioner, output format.

The tasks of a round, rebuilds, `verify --deep` and the simulator all use it.
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
from sink_job.partitioning.object_keys import MAX_KEY_BYTES, object_key, padded
from sink_job.partitioning.partitioner import PathColumns, PathPartitioner
from sink_job.rotation.policy import RotationPolicy

MAX_DIGITS = 64
"""Maximum number of digits of an offset in a key: 19, or the maximum pad width."""


class RejectedRow(NamedTuple):
    """A record that is a data error (docs/semantics.md, section 8): its row in the batch, its offset, and the
    reason."""

    row: int
    offset: int
    message: str


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """A batch that is ready for rotation. `encoded` contains one row of the object's body for each of `rows`; the row
    of a rejected record is undefined. `errors` are ascending; with tolerance None the sink stops before the first one.
    `ignored` is the number of null values that the policy drops."""

    rows: Rows
    encoded: pa.BinaryArray
    errors: list[RejectedRow]
    ignored: int


@dataclass(frozen=True)
class RecordPipeline:
    """The settings of a sink, applied to its records."""

    shaping: ObjectSettings
    rotation_policy: RotationPolicy
    partitioner: PathPartitioner
    converter: ValueConverter
    format: RowEncoder
    compression: Compression
    on_null: enums.OnNullValue

    @classmethod
    def of(cls, shaping: ObjectSettings, errors: ErrorsSpec) -> RecordPipeline:
        """Raises ValueError for settings that the spec should have rejected."""
        if errors.on_null_value is enums.OnNullValue.WRITE:
            raise ValueError("onNullValue Write is not supported yet")
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
        """Whether paths depend on the round clock."""
        return self.partitioner.needs_clock

    def path_clock(self, previous: int | None, now: int) -> int | None:
        """The clock to record for the paths of a round at clock `now`, in milliseconds; None where no path depends on
        the clock. It stays at `before`, the topic-partition's path clock so far, while that gives the same time path:
        the offset ranges of such rounds are recorded as one."""
        if not self.needs_clock:
            return None
        if previous is not None and self.partitioner.time_path(previous) == self.partitioner.time_path(now):
            return previous
        return now

    def key(self, tp: TopicPartition, path: str, first: int) -> str:
        """The key of the object of `tp` under `path` whose first offset is `first`."""
        return object_key(self.shaping, tp.topic, path, tp.partition, first)

    def prepare(self, batch: pa.RecordBatch, now: int, tp: TopicPartition) -> PreparedBatch:
        """Converts a batch of `tp` and computes its paths; `now` is the round clock in ms.

        `batch` contains `offset: int64` and `value: binary`, and `timestamp: int64` (ms, -1: none) if `columns` asks
        for it.
        """
        offsets = arrow_columns.numbers(batch.column("offset"))
        converted = self.converter.convert(batch.column("value"))
        rejected, ignored = self._nulls(converted)
        paths = self._paths(batch, now, tp, converted, rejected)
        codes = paths.codes
        rejected = [*rejected, *paths.rejected, *self._too_long(tp, paths.paths, codes, offsets)]
        encoded = self._encoded(converted)
        return PreparedBatch(
            rows=Rows(
                offsets=offsets,
                codes=codes,
                paths=paths.paths,
                times=paths.times,
                sizes=np.diff(arrow_columns.bounds(encoded)).astype(np.int64),
            ),
            encoded=encoded,
            errors=[RejectedRow(row, int(offsets[row]), message) for row, message in sorted(rejected)],
            ignored=ignored,
        )

    def _nulls(self, converted: Converted) -> tuple[Rejections, int]:
        """The records that are rejected before paths are computed, and the number of dropped null values."""
        if converted.nulls is None:
            return converted.rejected, 0
        rows = np.flatnonzero(converted.nulls).tolist()
        if self.on_null is enums.OnNullValue.IGNORE:
            return converted.rejected, len(rows)
        return [*converted.rejected, *((row, "the value is null, and errors.onNullValue is Fail") for row in rows)], 0

    def _paths(
        self, batch: pa.RecordBatch, now: int, tp: TopicPartition, converted: Converted, rejected: Rejections
    ) -> PathColumns:
        skip: npt.NDArray[np.bool_] | None = None
        if rejected or converted.nulls is not None:
            skip = np.zeros(len(batch), np.bool_) if converted.nulls is None else converted.nulls.copy()
            skip[[row for row, _ in rejected]] = True
        timestamps = arrow_columns.numbers(batch.column("timestamp")) if self.partitioner.needs_timestamp else None
        return self.partitioner.partition(
            len(batch), now, partition=tp.partition, timestamps=timestamps, fields=converted.fields, skip=skip
        )

    def _too_long(
        self, tp: TopicPartition, paths: list[str], codes: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64]
    ) -> Rejections:
        """Rejects the records that would be the first of an object whose key is longer than S3 allows."""
        available = MAX_KEY_BYTES - len(self.key(tp, "", 0).encode()) + len(self._padded(0))
        rejected: Rejections = []
        for code, path in enumerate(paths):
            if len(path) * 4 + MAX_DIGITS <= available:
                continue
            digits = available - len(path.encode())
            if len(self._padded(0)) > digits:
                rows = np.flatnonzero(codes == code)
            elif digits < MAX_DIGITS:
                rows = np.flatnonzero((codes == code) & (offsets >= 10**digits))
            else:
                continue
            codes[rows] = REJECTED_PATH
            rejected += [(row, f"its object's key would be longer than {MAX_KEY_BYTES} bytes") for row in rows.tolist()]
        return rejected

    def _padded(self, offset: int) -> str:
        return padded(self.shaping, offset)

    def _encoded(self, converted: Converted) -> pa.BinaryArray:
        if converted.lines is not None and isinstance(self.format, JsonLines):
            return converted.lines
        return self.format.encode(converted.values)


def _compression(shaping: ObjectSettings) -> Compression:
    match shaping.format.compression:
        case enums.CompressionCodec.NONE:
            return Uncompressed()
        case enums.CompressionCodec.GZIP:
            return Gzip(shaping.format.gzip_level)
    raise ValueError(f"compression {shaping.format.compression} is not supported yet")
