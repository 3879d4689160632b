"""The objects of one topic-partition in a task attempt: those that the ledger has open, and those that the task writes.

Their writers are created when an object gets its first row or closes. The schemas of all of them are stored and read
together, because each alone costs a round trip to the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sink_job.api.topic_partition import TopicPartition
from sink_job.connect.schema import Schema
from sink_job.formats.spill_buffer import SpillPool
from sink_job.ledger.state import ClosedObject, OpenObject
from sink_job.rotation.types import Append, Close, CloseReason, ObjectId, OpenObjectState
from sink_job.s3.checksums import combine_all
from sink_job.writer.object_writer import ObjectWriter, ObjectWriters
from sink_job.writer.row_slices import RowSlice
from sink_job.writer.size_limits import EncodedSize
from sink_job.writer.task_attempt import TaskAttempt


class TaskObjects:
    """The open and closed objects of one topic-partition."""

    def __init__(
        self, attempt: TaskAttempt, tp: TopicPartition, spill: SpillPool, inherited: Iterable[OpenObject]
    ) -> None:
        """`inherited` are the objects that the ledger has open before this task."""
        self._attempt = attempt
        self._tp = tp
        self._new_writers = ObjectWriters(attempt, tp, spill)
        self._inherited = {o.id: o for o in inherited}
        self._writers: dict[ObjectId, ObjectWriter] = {}
        self._closed: list[tuple[OpenObjectState, ObjectWriter]] = []
        self.reasons: list[CloseReason] = []
        """Why the closed objects closed, in the order of closing."""
        self._stored_schemas: set[str | None] = set()

    def load_schemas(self, steps: Sequence[Append | Close], schemas: Mapping[str, Schema]) -> None:
        """Stores and reads the schemas that the steps need. New schemas are stored in the order of their first records,
        so that field ids do not depend on the sizes of batches."""
        pipeline = self._attempt.pipeline
        appended = sorted((step for step in steps if isinstance(step, Append)), key=_first_row)
        targets = dict.fromkeys(step.target for step in appended)
        opened = [id_ for id_ in targets if id_ not in self._writers and id_ not in self._inherited]
        new = [id_ for id_ in opened if id_.schema not in self._stored_schemas]
        pipeline.keep_schemas(self._tp.topic, new, schemas)
        self._stored_schemas.update(id_.schema for id_ in new)
        closed = (o.id for step in steps if isinstance(step, Close) for o in step.objects)
        used = dict.fromkeys((*targets, *closed))
        pipeline.prefetch_schemas(id_ for id_ in used if id_ not in self._writers and id_ in self._inherited)

    def append(self, target: ObjectId, rows: RowSlice, breaks: Sequence[int]) -> None:
        """Writes rows to an object; see `ObjectWriter.append`. `load_schemas` has its schema."""
        self._writer(target, int(rows.offsets[0])).append(rows, breaks)

    def close(self, objects: Iterable[OpenObjectState], reason: CloseReason = CloseReason.OTHER) -> None:
        """Sends the last parts of objects that the rotation has closed."""
        for state in objects:
            writer = self._writer(state.id, state.first)
            writer.finish()
            self._inherited.pop(state.id, None)
            self._closed.append((state, writer))
            self.reasons.append(reason)
            del self._writers[state.id]

    def encoded(self) -> dict[ObjectId, EncodedSize]:
        """The encoded sizes of the open objects."""
        inherited = {id_: EncodedSize.of(o) for id_, o in self._inherited.items() if id_ not in self._writers}
        return inherited | {id_: writer.encoded for id_, writer in self._writers.items()}

    def _writer(self, target: ObjectId, first: int) -> ObjectWriter:
        if target not in self._writers:
            previous = self._inherited.get(target)
            settings = self._attempt.settings.settings_record
            assert previous is None or previous.settings == settings, (
                "an object is written under one number of settings"
            )
            self._writers[target] = self._new_writers.new(target, previous.first if previous else first, previous)
        return self._writers[target]

    def closed_objects(self, path_clock: int, breaks: Sequence[int]) -> tuple[ClosedObject, ...]:
        """The closed objects as the ledger stores them. Waits for their parts, and raises the errors of the requests.
        `breaks`: no source range contains one of these offsets, which ascend."""
        return tuple(self._closed_object(state, writer, path_clock, breaks) for state, writer in self._closed)

    def _closed_object(
        self, state: OpenObjectState, writer: ObjectWriter, path_clock: int, breaks: Sequence[int]
    ) -> ClosedObject:
        upload, parts = writer.result()
        assert upload is not None, "a closed object has sent its last part"
        return ClosedObject(
            key=writer.key,
            topic=self._tp.topic,
            partition=self._tp.partition,
            path=state.path,
            first=state.first,
            last=state.last,
            bytes=sum(p.size for p in parts),
            crc=combine_all((p.crc, p.size) for p in parts),
            upload=upload,
            parts=parts,
            sources=writer.sources(path_clock, breaks),
            offsets=writer.offsets,
            settings=self._attempt.settings.settings_record,
            schema=state.schema,
        )

    def stage(
        self, states: Mapping[ObjectId, OpenObjectState], path_clock: int, breaks: Sequence[int]
    ) -> tuple[OpenObject, ...]:
        """Stages the remainders of the open objects `states`; returns them as the ledger stores them. `breaks`: see
        `closed_objects`. Raises the errors of the requests."""
        objects = []
        for id_, state in states.items():
            previous = self._inherited.get(id_)
            writer = self._writers.get(id_)
            if writer is None:
                assert previous is not None, "an open object was inherited or written to"
                objects.append(previous)
                continue
            objects.append(
                writer.to_open_object(
                    state,
                    settings=self._attempt.settings.settings_record,
                    sources=writer.sources(path_clock, breaks),
                    remainder=writer.stage(self._attempt.staging),
                )
            )
        return tuple(objects)

    def uploaded(self) -> tuple[int, int]:
        """The number and the bytes of the parts that were sent."""
        return self._new_writers.uploads.parts, self._new_writers.uploads.bytes

    def started_uploads(self) -> tuple[tuple[str, str], ...]:
        """Key and upload id of the uploads that this task has started, after all requests have ended."""
        return self._new_writers.started_uploads()


def _first_row(step: Append) -> int:
    return int(step.rows.start or 0) if isinstance(step.rows, slice) else int(step.rows[0])
