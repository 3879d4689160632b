"""The writer of one topic-partition over several rounds, with a store in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pyarrow as pa

from sink_job.api.enums import OnNullValue
from sink_job.api.sections.job_sections import ErrorsSpec
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.converters.base import SchemaTable, ValueConverter
from sink_job.formats.spill_buffer import SpillPool
from sink_job.ledger.staging import StagingReader, StagingWriter
from sink_job.ledger.state import ClosedObject, OpenObject, PartitionDelta, PartitionState, RotationRange, SourceRange
from sink_job.ledger.transitions import diff, patch
from sink_job.s3 import S3Client, S3Settings, UploadedPart
from sink_job.s3.request_body import Body, ChunkedBody
from sink_job.tasks.parameters import RoundParameters
from sink_job.tasks.write import TaskInput, TaskResult
from sink_job.writer.partition_writer import PartitionWriter
from sink_job.writer.record_pipeline import RecordPipeline
from sink_job.writer.schema_stores import SchemaStores
from sink_job.writer.task_attempt import TaskAttempt

TP = TopicPartition("log", 0)


class MemoryStore:
    """Parts and staging objects in memory."""

    bucket = "bucket"
    settings = S3Settings(bucket="bucket")
    url_of = staticmethod(settings.url_of)

    def __init__(self) -> None:
        self.staged: dict[str, bytes] = {}

    def put(self, key: str, body: Sequence[bytes]) -> None:
        self.staged[key] = b"".join(body)

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        return self.staged[key][offset : offset + length]

    def create_upload(self, key: str, *, temporary: bool = False, locked: bool = True) -> str:
        return f"upload of {key}"

    def upload_part(self, key: str, upload: str, number: int, body: Body) -> UploadedPart:
        chunks = ChunkedBody(body)
        crc = chunks.crc64nvme()
        return UploadedPart(number=number, etag=f"{crc:x}", crc=crc, size=len(chunks))


@dataclass
class OnePartition:
    """Rounds of one topic-partition by the sink's own writer; what is kept between them is what the ledger keeps."""

    object_settings: ObjectSettings
    number: int = 1
    state: PartitionState = field(default_factory=lambda: PartitionState.start(0))
    named: list[ClosedObject] = field(default_factory=list)
    rotations: list[RotationRange] = field(default_factory=list)
    changes: list[PartitionDelta] = field(default_factory=list)
    store: S3Client = field(default_factory=lambda: cast("S3Client", MemoryStore()))
    converter: ValueConverter | None = None
    """In place of the converter of the settings."""
    tolerant: bool = False
    registered: SchemaTable | None = None

    @property
    def pipeline(self) -> RecordPipeline:
        pipeline = RecordPipeline.of(self.object_settings, ErrorsSpec(), SchemaStores(self.registered))
        return pipeline if self.converter is None else replace(pipeline, converter=self.converter)

    def round(self, now: int, values: Sequence[bytes], *, close: bool = False, skip: Sequence[int] = ()) -> TaskResult:
        """A round at the clock `now` over these records, without those at the offsets `skip`."""
        unused: Any = None
        given = RoundParameters(
            s3=unused,
            root="",
            settings_json=self.object_settings.model_dump_json(),
            settings_record=self.number,
            tolerant=self.tolerant,
            on_null=OnNullValue.FAIL,
            epoch=1,
            round=len(self.changes) + 1,
            now=now,
            budget=1 << 20,
            threads=1,
            part_buffers=1,
        )
        staging = StagingWriter(self.store, f"staging/{len(self.changes)}")
        share = SimpleNamespace(
            settings=given,
            object_settings=self.object_settings,
            pipeline=self.pipeline,
            s3=self.store,
            staging=staging,
            staged=StagingReader(self.store),
            request_counts=lambda: ({}, 0),
        )
        end = self.state.next + len(values)
        with SpillPool(given.budget) as spool:
            task = TaskInput(self.state, end, close, tuple(skip))
            writer = PartitionWriter(cast("TaskAttempt", share), TP, task, spool)
            result = writer.run(self.batches(self.state.next, values))
        staging.flush()
        change = msgspec.json.decode(msgspec.json.encode(diff(self.state, result.state)), type=PartitionDelta)
        self.changes.append(change)
        self.state = patch(self.state, change)
        assert self.state == result.state
        self.named += result.closed
        self.rotations += result.rotations
        return result

    def batches(self, first: int, values: Sequence[bytes]) -> Iterator[pa.RecordBatch]:
        """The records from the offset `first` on."""
        return batches(first, values)

    @property
    def objects(self) -> list[ClosedObject | OpenObject]:
        return [*self.named, *self.state.open]

    def seen(self) -> list[tuple[SourceRange, ...]]:
        return [o.sources for o in self.objects]


def batches(first: int, values: Sequence[bytes]) -> Iterator[pa.RecordBatch]:
    for at in range(0, len(values), 3):
        chosen = values[at : at + 3]
        yield pa.RecordBatch.from_pydict(
            {
                "offset": pa.array(range(first + at, first + at + len(chosen)), pa.int64()),
                "value": pa.array(chosen, pa.binary()),
                "timestamp": pa.array([0] * len(chosen), pa.int64()),
            }
        )
