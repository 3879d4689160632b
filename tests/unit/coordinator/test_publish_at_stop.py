"""A driver that publishes its open objects when it is stopped: deletionPolicy Publish in a deleted namespace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sink_job.api.errors import TransientError
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.context import StopCondition
from sink_job.coordinator.coordinator import Coordinator
from sink_job.engine.types import Cancelled
from tests.support.memory_sink import MemorySinkFixture, error_of
from tests.support.synthetic_log import InlineEngine, SyntheticLog

LOG = SyntheticLog(records=13, partitions=3)
FOREVER = StopCondition()


class EndingEngine(InlineEngine):
    """Spark whose executors are deleted with the namespace after `rounds` rounds, when the driver is stopped too."""

    rounds = 2
    error: type[Exception] = Cancelled
    stop: Any = None

    def run(self, **given: Any) -> dict[TopicPartition, bytes]:
        if self.rounds == 0:
            self.stop()
            raise self.error("the executors are gone")
        self.rounds -= 1
        return super().run(**given)


@pytest.fixture
def sink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemorySinkFixture:
    return MemorySinkFixture(tmp_path, monkeypatch)


def stopped(sink: MemorySinkFixture, error: type[Exception] = Cancelled, *, publish: bool = True) -> Coordinator:
    """A driver that is stopped in its third round."""
    engine = EndingEngine(LOG)
    driver = sink.driver(LOG, goal=FOREVER, engine=engine)
    engine.error, engine.stop = error, driver.publish_and_stop if publish else driver.stop
    return driver


def open_objects(sink: MemorySinkFixture) -> int:
    state = sink.ledger_access().ledger.load()
    return sum(len(p.open) for p in state.partitions.values()) + len(state.pending)


@pytest.mark.parametrize("error", [Cancelled, TransientError])
def test_open_objects_are_published_without_executors(sink: MemorySinkFixture, error: type[Exception]) -> None:
    driver = stopped(sink, error)
    driver.run()
    assert sink.offsets() == {f"topics/log/partition={n}/log+{n}+0000000000.json": [0, 1, 2, 3] for n in range(3)}
    assert open_objects(sink) == 0
    assert sink.orphans() == []
    assert driver.progress.report().final().published


def test_without_publication_objects_stay_open(sink: MemorySinkFixture) -> None:
    driver = stopped(sink, publish=False)
    driver.run()
    assert sink.offsets() == {}
    assert open_objects(sink) == 3
    assert not driver.progress.report().final().published


def test_the_next_driver_continues_after_the_published_records(sink: MemorySinkFixture) -> None:
    stopped(sink).run()
    sink.run(LOG)
    copied = sorted(offset for offsets in sink.offsets().values() for offset in offsets)
    assert copied == sorted([*range(13)] * 3)


def test_an_object_that_has_to_be_rebuilt_stays_open_for_the_next_driver(sink: MemorySinkFixture) -> None:
    driver = stopped(sink)
    stop = driver.publish_and_stop

    def stop_and_lose_staged_data() -> None:
        for key in [key for key in sink.s3.objects if "/staging/" in key]:
            del sink.s3.objects[key]
        stop()

    driver.context.engine.stop = stop_and_lose_staged_data  # type: ignore[attr-defined]
    assert isinstance(error_of(driver.run), TransientError)
    assert not driver.progress.report().final().published
    sink.run(LOG)
    copied = sorted(offset for offsets in sink.offsets().values() for offset in offsets)
    assert copied == sorted([*range(13)] * 3)
