"""Tasks of one topic-partition with a store in memory: as Spark runs them, with their inputs and results as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from sink_job.api.enums import OnNullValue
from sink_job.api.parser import load_sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.codecs.formats import with_library
from sink_job.ledger.offset_checksum import checksum
from sink_job.ledger.state import ClosedObject, OpenObject, PartitionState
from sink_job.tasks.parameters import RoundParameters
from sink_job.tasks.rebuild import RebuildInput, RebuildResult
from sink_job.tasks.write import TaskInput, TaskResult
from sink_job.writer import task_attempt
from sink_job.writer.object_rebuilder import RebuildTask
from sink_job.writer.partition_writer import WriteTask
from sink_job.writer.row_slices import RowSlice
from tests.support.memory_s3 import MemoryS3
from tests.support.sink_fixture import manifest
from tests.support.synthetic_log import CLOCK_MS, SyntheticLog

TP = TopicPartition("log", 0)


class Tasks:
    """The tasks of a sink that reads `log`. `given` are settings of its manifest, by default five records an object."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, log: SyntheticLog, **given: Any) -> None:
        self.memory = MemoryS3()
        monkeypatch.setattr(task_attempt, "connect", lambda settings: self.memory)
        self.log = log
        sink = load_sink(manifest("archive", "http://127.0.0.1:9", **({"flush_size": 5} | given)))
        self.object_settings = with_library(sink.object_settings())
        self.state = PartitionState.start(0)
        self.rounds = 0

    def parameters(self, **changes: Any) -> RoundParameters:
        """The parameters of another round."""
        self.rounds += 1
        nothing: Any = None
        made = RoundParameters(
            s3=nothing,
            root="topics/_s3sink/log/",
            settings_json=self.object_settings.model_dump_json(),
            settings_record=1,
            tolerant=False,
            on_null=OnNullValue.FAIL,
            epoch=1,
            round=self.rounds,
            now=CLOCK_MS,
            budget=1 << 20,
            threads=2,
            part_buffers=2,
        )
        return replace(made, **changes)

    def write(self, end: int, *, close: bool = False, **parameters: Any) -> TaskResult:
        """The result of the records up to `end`; its state is that of the next task unless something is lost."""
        task, start = WriteTask(self.parameters(**parameters)), self.state.next
        given = msgspec.msgpack.encode(TaskInput(self.state, end, close))
        result = msgspec.msgpack.decode(task(TP, given, self.log.batches(TP, start, end)), type=TaskResult)
        task.close()
        if result.lost is None:
            self.state = result.state
        return result

    def rebuild(
        self,
        *,
        closed: Sequence[ClosedObject] = (),
        open: Sequence[OpenObject] = (),  # noqa: A002 - as in RebuildInput
        partial: bool = False,
    ) -> RebuildResult:
        """The result of a rebuild of these objects from the log."""
        task = RebuildTask(self.parameters())
        rebuild_input = RebuildInput(tuple(closed), tuple(open), partial)
        start, end = rebuild_input.offset_range()
        batches = self.log.batches(TP, max(start, self.log.starts_at), end)
        result = msgspec.msgpack.decode(task(TP, msgspec.msgpack.encode(rebuild_input), batches), type=RebuildResult)
        task.close()
        return result

    def content(self, o: ClosedObject) -> list[int]:
        """The offsets in an object whose upload is not completed yet."""
        parts = self.memory.uploads[o.upload].parts
        lines = b"".join(parts[part.number] for part in o.parts).splitlines()
        return [msgspec.json.decode(line)["offset"] for line in lines]


def rows_of(rows: Sequence[bytes], first: int = 0) -> RowSlice:
    """Rows at the offsets from `first` on."""
    offsets = np.arange(first, first + len(rows), dtype=np.int64)
    ends = np.cumsum([len(row) for row in rows], dtype=np.int64)
    return RowSlice(memoryview(b"".join(rows)), ends, offsets, checksum(offsets))
