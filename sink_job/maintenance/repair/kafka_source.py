"""Uploads the recorded bytes of objects from Kafka, as a rebuild does (P2): the recorded source ranges, settings, round
clocks and the ledger's schemas. The checksum of the bytes decides whether the upload is used.

No claim and no intent is needed: the uploads are at keys that no driver needs any more, and `run_marks` has them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec

from sink_job.api.enums import Tolerance
from sink_job.api.errors import DataLoss
from sink_job.api.sections.job_sections import ErrorsSpec
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.codecs.formats import with_library
from sink_job.codecs.required_columns import task_columns
from sink_job.engine.kafka_admin import KafkaAdmin
from sink_job.engine.types import Engine, Range
from sink_job.ledger.state import ClosedObject
from sink_job.maintenance.repair.damage import Suspect
from sink_job.maintenance.repair.kafka_plan import (
    Job,
    KafkaLogs,
    jobs,
    reason_not_held,
    reason_not_selected,
    reason_of_other_bytes,
)
from sink_job.maintenance.repair.replacement import RecordedBytes
from sink_job.s3 import S3Client, S3Settings, UploadedPart
from sink_job.tasks.parameters import RoundParameters
from sink_job.tasks.rebuild import RebuildInput, RebuildResult
from sink_job.verify.evidence import Evidence
from sink_job.writer.object_rebuilder import RebuildTask

THREADS = 4
PART_BUFFERS = 2


@dataclass(frozen=True)
class KafkaReader:
    """Kafka's admin client, and an engine that reads records."""

    admin: KafkaAdmin
    engine: Engine


@dataclass
class KafkaUploads:
    """The result for each key: an upload, or the reason why the object is not restorable. A key in neither has to be
    tried again."""

    content: dict[str, RecordedBytes] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class KafkaSource:
    """Writes objects of one ledger again. `budget`: bytes that a task buffers before it spills them."""

    s3: S3Client
    settings: S3Settings
    evidence: Evidence
    errors: ErrorsSpec
    now: int
    budget: int = 64 << 20

    def reasons(self, admin: KafkaAdmin, suspects: Collection[Suspect]) -> dict[str, str]:
        """Why Kafka cannot restore objects, by key; the others may be restorable."""
        live = self.evidence.live
        held = sorted({s.o.topic_partition for s in suspects} & set(live))
        logs = KafkaLogs(admin.beginning_offsets(held), admin.end_offsets(held)) if held else KafkaLogs({}, {})
        found = ((s.o.key, reason_not_held(s.o, live, logs)) for s in suspects)
        return {key: reason for key, reason in found if reason is not None}

    def upload(self, reader: KafkaReader, suspects: Sequence[Suspect]) -> KafkaUploads:
        """Uploads the objects whose records Kafka holds. Raises the errors of the engine."""
        found = KafkaUploads(reasons=self.reasons(reader.admin, suspects))
        for job in jobs(s for s in suspects if s.o.key not in found.reasons):
            try:
                self._run(reader.engine, job, found)
            except DataLoss:  # retention has deleted records since the check
                of_job = {o.key for objects in job.objects.values() for o in objects}
                found.reasons |= self.reasons(reader.admin, [s for s in suspects if s.o.key in of_job])
        return found

    def _run(self, engine: Engine, job: Job, found: KafkaUploads) -> None:
        """Runs the job until each of its objects is uploaded or has a reason; those with a lost upload have neither."""
        object_settings = self.evidence.settings_of_claims[job.settings]
        factory = partial(RebuildTask, self._parameters(job, object_settings))
        left = job.objects
        while left:
            inputs = {tp: RebuildInput(closed=tuple(objects)) for tp, objects in left.items()}
            raw = engine.run(
                ranges={tp: Range(*each.offset_range()) for tp, each in inputs.items()},
                idle=(),
                inputs={tp: msgspec.msgpack.encode(each) for tp, each in inputs.items()},
                columns=task_columns(object_settings),
                factory=factory,
            )
            results = {tp: msgspec.msgpack.decode(result, type=RebuildResult) for tp, result in raw.items()}
            left = self._collect(left, results, object_settings, found)

    def _collect(
        self,
        tried: Mapping[TopicPartition, list[ClosedObject]],
        results: Mapping[TopicPartition, RebuildResult],
        object_settings: ObjectSettings,
        found: KafkaUploads,
    ) -> dict[TopicPartition, list[ClosedObject]]:
        """Adds the results; returns the objects to try without the ones that lack records."""
        left: dict[TopicPartition, list[ClosedObject]] = {}
        for tp, result in results.items():
            if result.lost is not None:
                self._abort(result.started_uploads)
            elif result.missing:
                self._abort(result.started_uploads)
                lacking = {(each.path, each.first, each.last): each for each in result.missing}
                for o in tried[tp]:
                    if (missing := lacking.get((o.path, o.first, o.last))) is not None:
                        found.reasons[o.key] = reason_not_selected(missing)
                    else:
                        left.setdefault(tp, []).append(o)
            else:
                for o, rebuilt in zip(tried[tp], result.closed, strict=True):
                    self._compare(o, rebuilt, object_settings, found)
        return left

    def _compare(
        self, o: ClosedObject, rebuilt: ClosedObject, object_settings: ObjectSettings, found: KafkaUploads
    ) -> None:
        if (rebuilt.key, rebuilt.bytes, rebuilt.crc) == (o.key, o.bytes, o.crc):
            parts = [UploadedPart(p.number, p.etag, p.crc, p.size) for p in rebuilt.parts]
            found.content[o.key] = RecordedBytes(rebuilt.upload, parts)
            return
        self.s3.abort(rebuilt.key, rebuilt.upload)
        installed = with_library(object_settings).library
        found.reasons[o.key] = reason_of_other_bytes(o, rebuilt, object_settings.library, installed)

    def _abort(self, uploads: Iterable[tuple[str, str]]) -> None:
        for key, upload in uploads:
            self.s3.abort(key, upload)

    def _parameters(self, job: Job, object_settings: ObjectSettings) -> RoundParameters:
        state = self.evidence.current.state
        return RoundParameters(
            s3=self.settings,
            root=self.evidence.root,
            settings_json=object_settings.model_dump_json(),
            settings_record=job.settings,
            tolerant=self.errors.tolerance is Tolerance.ALL,
            on_null=self.errors.on_null_value,
            epoch=state.epoch,
            round=state.number,
            now=self.now,
            budget=self.budget,
            threads=THREADS,
            part_buffers=PART_BUFFERS,
            generation=job.generation,
        )
