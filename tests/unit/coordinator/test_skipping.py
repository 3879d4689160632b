"""Offsets that Kafka has dropped before they were read are skipped; what was read is never read again for that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sink_job.api.errors import DataLoss
from sink_job.api.parser import load_sink
from sink_job.ledger.store import Ledger
from tests.support.memory_sink import MemorySinkFixture, error_of
from tests.support.sink_fixture import manifest
from tests.support.synthetic_log import InlineEngine, SyntheticLog

FIRST = "topics/log/partition=0/log+0+0000000000.json"


class Retention(InlineEngine):
    """Once `runs`, each of the next five jobs finds that the log has lost one more record."""

    runs = False

    def run(self, **given: Any) -> dict[Any, bytes]:
        if self.runs and self.log.starts_at < 5:
            object.__setattr__(self.log, "starts_at", self.log.starts_at + 1)
        return super().run(**given)


@pytest.fixture
def sink_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemorySinkFixture:
    sink_fixture = MemorySinkFixture(tmp_path, monkeypatch)
    given = manifest("archive", "http://127.0.0.1:9", flush_size=5, max_records=10, spec={"onDataLoss": "Continue"})
    sink_fixture.sink = load_sink(given)
    return sink_fixture


def test_a_round_that_is_recorded_is_not_read_again_when_an_object_of_it_cannot_be_rebuilt(
    sink_fixture: MemorySinkFixture,
) -> None:
    log = SyntheticLog(records=20)
    engine = Retention(log)

    def upload_is_gone(call: str, key: str) -> None:
        if (call, key) == ("complete", FIRST) and not engine.runs:
            engine.runs = True
            sink_fixture.s3.uploads = {
                name: upload for name, upload in sink_fixture.s3.uploads.items() if upload.key != key
            }

    with sink_fixture.faults(upload_is_gone):
        assert isinstance(error_of(lambda: sink_fixture.run(log, engine=engine, snapshot_every=100)), DataLoss)
    store: Any = sink_fixture.s3
    ledger = Ledger(store, sink_fixture.root, "reader")
    reached = [
        change.state.next
        for number in range(1, ledger.load().number + 1)
        for change in ledger.record(number).partitions.values()
    ]
    assert reached == sorted(reached)
    sink_fixture.run(log)
    lost = [line.lost for line in ledger.published(ledger.load()) if line.lost]
    assert [(each.first, each.offsets.count) for each in lost] == [(0, 5)]
    assert sink_fixture.offsets() == {
        f"topics/log/partition=0/log+0+{first:010d}.json": list(range(first, first + 5)) for first in (5, 10, 15)
    }


def test_the_skipped_offsets_are_logged_from_the_first_to_the_last(
    sink_fixture: MemorySinkFixture, caplog: pytest.LogCaptureFixture
) -> None:
    sink_fixture.run(SyntheticLog(records=5))
    sink_fixture.run(SyntheticLog(records=20, starts_at=8))
    assert "log-0: Kafka has deleted offsets 5 to 7: they are lost; resuming after them" in caplog.messages


def test_a_partition_that_was_added_without_a_driver_is_read_from_its_start(sink_fixture: MemorySinkFixture) -> None:
    """`startingOffsets` applies to the first start of a sink alone."""
    kafka = {"bootstrapServers": "127.0.0.1:9", "topics": ["log"], "groupId": "group", "startingOffsets": "Latest"}
    given = manifest("archive", "http://127.0.0.1:9", flush_size=5, max_records=10, spec={"kafka": kafka})
    sink_fixture.sink = load_sink(given)
    sink_fixture.run(SyntheticLog(records=5))
    sink_fixture.run(SyntheticLog(records=10, partitions=2))
    assert sink_fixture.offsets() == {
        "topics/log/partition=0/log+0+0000000005.json": [5, 6, 7, 8, 9],
        "topics/log/partition=1/log+1+0000000000.json": [0, 1, 2, 3, 4],
        "topics/log/partition=1/log+1+0000000005.json": [5, 6, 7, 8, 9],
    }
