"""Hosts whose clock is wrong, and ledgers whose clock is ahead of it: against a real store."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from sink_job.api.errors import ClockSkew
from sink_job.coordinator.context import StopCondition
from sink_job.ledger.state import Record
from sink_job.ledger.store import Ledger
from tests.support.crash_points import EndedError
from tests.support.sink_fixture import Place
from tests.support.synthetic_log import CLOCK_MS, FunctionLog

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
    """A world in which the host's clock is compared with the store's, which is at `clock`."""
    return {"store_clock": clock if callable(clock) else lambda: clock}


def objects(place: Place) -> dict[str, list[int]]:
    """The visible objects, and the offsets in each."""
    return {key: place.offsets(key) for key in place.bodies()}


def test_the_store_says_what_time_it_is_without_being_asked(place: Place) -> None:
    place.s3.check_access()
    before = place.s3.meter.snapshot()
    shown = place.s3.clock_ms()
    assert place.s3.meter.snapshot().requests == before.requests
    assert shown is not None
    assert abs(shown - place.s3.server_now_ms()) < 60_000


@pytest.mark.parametrize("apart", [YEAR, -YEAR])
def test_a_driver_whose_clock_is_wrong_writes_nothing(place: Place, apart: int) -> None:
    with pytest.raises(ClockSkew):
        place.run(FunctionLog(records=15), ALL, flush_size=10, clock=lambda: NOON + apart, world=compared(NOON))
    assert list(place.s3.list("")) == []


def test_a_driver_whose_clock_goes_wrong_ends_before_the_next_round(place: Place) -> None:
    clock = [NOON]

    class Jumping(FunctionLog):
        def batches(self, *given: Any) -> Any:
            clock[0] = NOON + YEAR
            return super().batches(*given)

    with pytest.raises(ClockSkew):
        place.run(
            Jumping(records=30),
            ALL,
            flush_size=10,
            max_records=10,
            clock=lambda: clock[0],
            world=compared(NOON),
        )
    assert list(objects(place).values()) == [list(range(10))]
    place.run(FunctionLog(records=30), ALL, flush_size=10, clock=lambda: NOON, world=compared(NOON))
    assert list(objects(place).values()) == [list(range(n, n + 10)) for n in (0, 10, 20)]


@pytest.mark.parametrize("command", ["discard", "reset"])
def test_a_command_on_a_host_whose_clock_is_wrong_changes_nothing(place: Place, command: str) -> None:
    log = FunctionLog(records=15)
    place.run(log, SOON, flush_size=10)
    before = place.records()
    given: dict[str, Any] = {"clock": lambda: CLOCK_MS + YEAR, "store_clock": lambda: CLOCK_MS}
    run = place.discard if command == "discard" else partial(place.reset, log, "Latest")
    with pytest.raises(ClockSkew):
        run(**given)
    assert place.records() == before


def test_a_ledger_that_a_wrong_clock_has_set_ahead_is_set_back_at_the_next_start(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    place.run(FunctionLog(records=5), SOON, spec=HOURLY, clock=lambda: NOON + YEAR)
    place.run(FunctionLog(records=10), SOON, spec=HOURLY, clock=lambda: NOON, world=compared(NOON))
    assert (
        "the ledger's clock was at 2024-11-14T12:00:00Z, 31536000 s ahead of this host's and the store's" in caplog.text
    )
    later = NOON + HOUR
    place.run(FunctionLog(records=15), SOON, spec=HOURLY, clock=lambda: later, world=compared(later))
    later += HOUR
    place.run(FunctionLog(records=15), SOON, spec=HOURLY, clock=lambda: later, world=compared(later))
    assert objects(place) == {
        PATH.format(2023, 15, 12, 5): list(range(5, 10)),
        PATH.format(2023, 15, 13, 10): list(range(10, 15)),
        PATH.format(2024, 14, 12, 0): list(range(5)),
    }
    assert [v.findings for v in place.verify(FunctionLog(records=15), spec=HOURLY)] == [()]


def test_without_a_store_that_confirms_the_hosts_clock_rounds_wait_at_the_ledgers(place: Place) -> None:
    place.run(FunctionLog(records=5), SOON, spec=HOURLY, clock=lambda: NOON + YEAR)
    place.run(FunctionLog(records=10), ALL, spec=HOURLY, clock=lambda: NOON)
    assert list(objects(place).values()) == [list(range(10))]


def test_a_driver_that_ends_between_closing_and_setting_back_leaves_the_rest_to_the_next(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.run(FunctionLog(records=5), SOON, spec=HOURLY, clock=lambda: NOON + YEAR)

    append = Ledger.append

    def ends(ledger: Ledger, record: Record) -> None:
        if record.sets_clock_back:
            raise EndedError
        append(ledger, record)

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "append", ends)
        with pytest.raises(EndedError):
            place.run(FunctionLog(records=10), SOON, spec=HOURLY, clock=lambda: NOON, world=compared(NOON))
    place.run(FunctionLog(records=10), ALL, spec=HOURLY, clock=lambda: NOON, world=compared(NOON))
    assert objects(place) == {
        PATH.format(2023, 15, 12, 5): list(range(5, 10)),
        PATH.format(2024, 14, 12, 0): list(range(5)),
    }


def test_leftovers_that_are_lost_while_the_ledger_is_ahead_are_made_again_before_it_is_set_back(place: Place) -> None:
    place.run(FunctionLog(records=5), SOON, spec=HOURLY, clock=lambda: NOON + YEAR)
    place.delete_staging()
    place.run(FunctionLog(records=10), ALL, spec=HOURLY, clock=lambda: NOON, world=compared(NOON))
    assert objects(place) == {
        PATH.format(2023, 15, 12, 5): list(range(5, 10)),
        PATH.format(2024, 14, 12, 0): list(range(5)),
    }


def test_a_ledger_that_was_set_back_is_read_alike_from_records_and_from_snapshots(place: Place) -> None:
    given: dict[str, Any] = {"spec": HOURLY, "max_records": 1}
    place.run(FunctionLog(records=3), SOON, clock=lambda: NOON + YEAR, world={"snapshot_every": 2}, **given)
    world = {**compared(NOON), "snapshot_every": 2}
    place.run(FunctionLog(records=9), SOON, clock=lambda: NOON, world=world, **given)
    later = NOON + HOUR
    place.run(FunctionLog(records=9), SOON, clock=lambda: later, world=compared(later), **given)
    assert objects(place) == {
        PATH.format(2023, 15, 12, 3): list(range(3, 9)),
        PATH.format(2024, 14, 12, 0): list(range(3)),
    }
