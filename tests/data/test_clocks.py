"""Hosts with a wrong clock, and ledgers whose clock is ahead of the host's, with a real store."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from sink_job.api.errors import ClockSkew
from sink_job.coordinator.context import StopCondition
from sink_job.ledger.state import Record
from sink_job.ledger.store import Ledger
from tests.support.crash_points import SimulatedCrash
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import CLOCK_MS, SyntheticLog

pytestmark = pytest.mark.data

SOON = StopCondition(until_caught_up=True)
ALL = StopCondition(until_caught_up=True, publish_open=True)
NOON, HOUR, YEAR = 1_700_049_600_000, 3_600_000, 31_536_000_000
HOURLY = {
    "partitioner": {"type": "Hourly", "timezone": "UTC"},
    "rotation": {"scheduleInterval": "1h", "maxOpenTime": "2h"},
}
PATH = "topics/log/year={}/month=11/day={}/hour={}/log+0+{:010d}.json"


def compared(clock: int | Callable[[], int]) -> dict[str, Any]:
    """Context fields that compare the host's clock with the store's, which is at `clock` (ms)."""
    return {"store_clock": clock if callable(clock) else lambda: clock}


def objects(sink_fixture: SinkFixture) -> dict[str, list[int]]:
    """The visible objects, and the offsets in each."""
    return {key: sink_fixture.offsets(key) for key in sink_fixture.contents()}


def test_the_stores_clock_is_read_from_its_replies(sink_fixture: SinkFixture) -> None:
    sink_fixture.s3.check_access()
    before = sink_fixture.s3.meter.snapshot()
    shown = sink_fixture.s3.clock_ms()
    assert sink_fixture.s3.meter.snapshot().requests == before.requests
    assert shown is not None
    assert abs(shown - sink_fixture.s3.server_now_ms()) < 60_000


@pytest.mark.parametrize("apart", [YEAR, -YEAR])
def test_a_driver_with_a_wrong_clock_writes_nothing(sink_fixture: SinkFixture, apart: int) -> None:
    with pytest.raises(ClockSkew):
        sink_fixture.run(
            SyntheticLog(records=15), ALL, flush_size=10, clock=lambda: NOON + apart, context=compared(NOON)
        )
    assert list(sink_fixture.s3.list("")) == []


def test_a_driver_ends_before_the_next_round_when_its_clock_becomes_wrong(sink_fixture: SinkFixture) -> None:
    clock = [NOON]

    class Jumping(SyntheticLog):
        def batches(self, *given: Any) -> Any:
            clock[0] = NOON + YEAR
            return super().batches(*given)

    with pytest.raises(ClockSkew):
        sink_fixture.run(
            Jumping(records=30),
            ALL,
            flush_size=10,
            max_records=10,
            clock=lambda: clock[0],
            context=compared(NOON),
        )
    assert list(objects(sink_fixture).values()) == [list(range(10))]
    sink_fixture.run(SyntheticLog(records=30), ALL, flush_size=10, clock=lambda: NOON, context=compared(NOON))
    assert list(objects(sink_fixture).values()) == [list(range(n, n + 10)) for n in (0, 10, 20)]


@pytest.mark.parametrize("command", ["discard", "reset"])
def test_a_command_on_a_host_with_a_wrong_clock_changes_nothing(sink_fixture: SinkFixture, command: str) -> None:
    log = SyntheticLog(records=15)
    sink_fixture.run(log, SOON, flush_size=10)
    before = sink_fixture.records()
    given: dict[str, Any] = {"clock": lambda: CLOCK_MS + YEAR, "store_clock": lambda: CLOCK_MS}
    run = sink_fixture.discard if command == "discard" else partial(sink_fixture.reset, log, "Latest")
    with pytest.raises(ClockSkew):
        run(**given)
    assert sink_fixture.records() == before


def test_a_ledger_clock_that_is_ahead_is_set_back_at_the_next_start(
    sink_fixture: SinkFixture, caplog: pytest.LogCaptureFixture
) -> None:
    sink_fixture.run(SyntheticLog(records=5), SOON, spec=HOURLY, clock=lambda: NOON + YEAR)
    sink_fixture.run(SyntheticLog(records=10), SOON, spec=HOURLY, clock=lambda: NOON, context=compared(NOON))
    assert (
        "the ledger's clock was at 2024-11-14T12:00:00Z, 31536000 s ahead of this host's and the store's" in caplog.text
    )
    later = NOON + HOUR
    sink_fixture.run(SyntheticLog(records=15), SOON, spec=HOURLY, clock=lambda: later, context=compared(later))
    later += HOUR
    sink_fixture.run(SyntheticLog(records=15), SOON, spec=HOURLY, clock=lambda: later, context=compared(later))
    assert objects(sink_fixture) == {
        PATH.format(2023, 15, 12, 5): list(range(5, 10)),
        PATH.format(2023, 15, 13, 10): list(range(10, 15)),
        PATH.format(2024, 14, 12, 0): list(range(5)),
    }
    assert [v.findings for v in sink_fixture.verify(SyntheticLog(records=15), spec=HOURLY)] == [()]


def test_rounds_keep_the_ledgers_clock_if_the_store_does_not_confirm_the_hosts(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=5), SOON, spec=HOURLY, clock=lambda: NOON + YEAR)
    sink_fixture.run(SyntheticLog(records=10), ALL, spec=HOURLY, clock=lambda: NOON)
    assert list(objects(sink_fixture).values()) == [list(range(10))]


def test_the_next_driver_sets_the_clock_back_after_a_crash_behind_the_close(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink_fixture.run(SyntheticLog(records=5), SOON, spec=HOURLY, clock=lambda: NOON + YEAR)

    append = Ledger.append

    def ends(ledger: Ledger, record: Record) -> None:
        if record.sets_clock_back:
            raise SimulatedCrash
        append(ledger, record)

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "append", ends)
        with pytest.raises(SimulatedCrash):
            sink_fixture.run(SyntheticLog(records=10), SOON, spec=HOURLY, clock=lambda: NOON, context=compared(NOON))
    sink_fixture.run(SyntheticLog(records=10), ALL, spec=HOURLY, clock=lambda: NOON, context=compared(NOON))
    assert objects(sink_fixture) == {
        PATH.format(2023, 15, 12, 5): list(range(5, 10)),
        PATH.format(2024, 14, 12, 0): list(range(5)),
    }


def test_lost_staged_remainders_are_rebuilt_before_the_ledgers_clock_is_set_back(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=5), SOON, spec=HOURLY, clock=lambda: NOON + YEAR)
    sink_fixture.delete_staging()
    sink_fixture.run(SyntheticLog(records=10), ALL, spec=HOURLY, clock=lambda: NOON, context=compared(NOON))
    assert objects(sink_fixture) == {
        PATH.format(2023, 15, 12, 5): list(range(5, 10)),
        PATH.format(2024, 14, 12, 0): list(range(5)),
    }


def test_after_a_clock_was_set_back_records_and_snapshots_give_the_same_state(sink_fixture: SinkFixture) -> None:
    given: dict[str, Any] = {"spec": HOURLY, "max_records": 1}
    sink_fixture.run(SyntheticLog(records=3), SOON, clock=lambda: NOON + YEAR, context={"snapshot_every": 2}, **given)
    context = {**compared(NOON), "snapshot_every": 2}
    sink_fixture.run(SyntheticLog(records=9), SOON, clock=lambda: NOON, context=context, **given)
    later = NOON + HOUR
    sink_fixture.run(SyntheticLog(records=9), SOON, clock=lambda: later, context=compared(later), **given)
    assert objects(sink_fixture) == {
        PATH.format(2023, 15, 12, 3): list(range(3, 9)),
        PATH.format(2024, 14, 12, 0): list(range(3)),
    }
