"""The first task of a new Python worker: all that it needs was imported before the fork."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest

from sink_job.api.topic_partition import TopicPartition
from sink_job.codecs.modules import task_modules
from sink_job.coordinator.context import StopCondition
from sink_job.coordinator.coordinator import Coordinator
from sink_job.engine.types import Columns, ProcessorFactory, Range
from sink_job.spark.daemon import MODULES_VARIABLE
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import InlineEngine, SyntheticLog

pytestmark = pytest.mark.data

_WORKER = """
import pickle, sys
from sink_job.spark.daemon import preload
preload()
before = set(sys.modules)
factory, tasks = pickle.load(sys.stdin.buffer)
processor = factory()
for member, task_input, batches in tasks:
    processor(member, task_input, iter(batches))
processor.close()
print(*sorted(set(sys.modules) - before))
"""


@dataclass
class RecordingEngine(InlineEngine):
    """Keeps the first job, and how a worker gets it."""

    job: bytes = b""

    def run(
        self,
        *,
        ranges: Mapping[TopicPartition, Range],
        idle: Sequence[TopicPartition],
        inputs: Mapping[TopicPartition, bytes],
        columns: Columns,
        factory: ProcessorFactory,
    ) -> dict[TopicPartition, bytes]:
        tasks = [(tp, inputs[tp], [*self._read(tp, r, columns)]) for tp, r in ranges.items()]
        self.job = self.job or pickle.dumps((factory, tasks))
        return super().run(ranges=ranges, idle=idle, inputs=inputs, columns=columns, factory=factory)


def test_the_first_task_of_a_worker_imports_nothing(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(records=15)
    driver = sink_fixture.driver(log, StopCondition(until_caught_up=True), flush_size=10, paths=True)
    engine = RecordingEngine(log)
    Coordinator(driver.sink, replace(driver.context, engine=engine), driver.stop_condition, driver.progress).run()
    environment = os.environ | {MODULES_VARIABLE: " ".join(task_modules(driver.sink.spec.format))}
    command = [sys.executable, "-c", _WORKER]
    worker = subprocess.run(command, input=engine.job, env=environment, capture_output=True, check=False)
    assert (worker.returncode, worker.stdout, worker.stderr) == (0, b"\n", b"")
