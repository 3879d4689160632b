"""What a command does with a ledger that it has claimed: it fences drivers, publishes, records and cleans up."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sink_job.api.errors import (
    ClockSkew,
    ConfigurationError,
    LedgerFenced,
    ObjectConflict,
    OwnershipConflict,
    TransientError,
)
from sink_job.coordinator.context import StopCondition
from sink_job.ledger.ownership import Owner
from sink_job.ledger.session import LedgerAccess, LedgerSession, changed, lost_upload_error
from sink_job.ledger.state import LedgerState, PartitionState
from sink_job.ledger.transitions import diff
from tests.support.memory_sink import MemorySinkFixture, error_of
from tests.support.store_faults import FIRST, LOG, OBJECTS, fail, pending
from tests.support.synthetic_log import CLOCK_MS

LEFT_OPEN = StopCondition(until_caught_up=True)


@pytest.fixture
def sink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemorySinkFixture:
    return MemorySinkFixture(tmp_path, monkeypatch)


def session(sink: MemorySinkFixture, **given: Any) -> LedgerSession:
    access = sink.ledger_access()
    fields = {name: getattr(access, name) for name in ("s3", "root", "owner", "attempt", "clock")}
    return LedgerSession(LedgerAccess(**(fields | given)))


def test_a_session_claims_the_ledger_and_fences_the_driver(sink: MemorySinkFixture) -> None:
    loop = sink.driver(LOG).start()
    try:
        one = session(sink)
        assert one.state.epoch == loop.state.epoch + 1
        assert one.ledger.record(one.state.number).kind == "claim"
        with pytest.raises(LedgerFenced):
            loop.run()
    finally:
        loop.close()


def test_a_command_that_a_driver_has_fenced_records_nothing(sink: MemorySinkFixture) -> None:
    one = session(sink)
    sink.run(LOG)
    number = one.state.number
    with pytest.raises(LedgerFenced):
        one.record(acknowledged=())
    assert one.state.number == number
    assert sink.offsets() == OBJECTS


def test_an_error_of_a_fenced_command_is_reported_as_such(sink: MemorySinkFixture) -> None:
    one = session(sink)

    def block() -> None:
        with one.ownership_checked():
            raise TransientError("an effect of the other driver")

    assert isinstance(error_of(block), TransientError)
    sink.run(LOG)
    assert isinstance(error_of(block), LedgerFenced)


@pytest.mark.parametrize("skew", [-3_600_000, 3_600_000])
def test_a_skewed_clock_ends_the_command_before_its_claim(sink: MemorySinkFixture, skew: int) -> None:
    sink.run(LOG)
    sink.s3.check_access = lambda: None  # type: ignore[method-assign]
    before = dict(sink.s3.objects)
    with pytest.raises(ClockSkew):
        session(sink, store_clock=lambda: CLOCK_MS + skew)
    assert sink.s3.objects == before


def test_the_ledger_of_another_sink_is_not_claimed(sink: MemorySinkFixture) -> None:
    sink.run(LOG)
    before = dict(sink.s3.objects)
    with pytest.raises(OwnershipConflict):
        session(sink, owner=Owner("function", "default", "other", "default.log"))
    assert sink.s3.objects == before


def test_closed_objects_become_visible_and_are_acknowledged_once(sink: MemorySinkFixture) -> None:
    pending(sink)
    one = session(sink)
    assert one.state.pending.keys() == {FIRST}
    assert one.publish() == 1
    assert one.state.pending == {}
    assert sink.offsets() == {FIRST: OBJECTS[FIRST]}
    number = one.state.number
    assert one.ledger.record(number).acknowledged == (FIRST,)
    assert (one.publish(), one.state.number) == (0, number)


def test_a_lost_object_ends_the_command_which_names_how_to_rebuild_it(sink: MemorySinkFixture) -> None:
    pending(sink)
    sink.s3.uploads.clear()
    one = session(sink)
    with pytest.raises(
        ConfigurationError, match=rf"1 closed objects .* s3://archive/{re.escape(FIRST)}\. Run the sink once"
    ):
        one.publish()
    assert one.state.pending.keys() == {FIRST}
    sink.run(LOG)
    assert sink.offsets() == OBJECTS


def test_another_object_at_the_key_is_not_overwritten(sink: MemorySinkFixture) -> None:
    pending(sink)
    sink.s3.put(FIRST, b"of another program")
    with pytest.raises(ObjectConflict):
        session(sink).publish()
    assert sink.s3.get(FIRST) == b"of another program"


def without_open(state: LedgerState) -> dict[str, Any]:
    """The changes that discard the open objects."""
    emptied = {name: msgspec.structs.replace(p, open=()) for name, p in state.partitions.items()}
    return {"partitions": {name: diff(state.partitions[name], p) for name, p in emptied.items()}}


def test_discarded_objects_leave_neither_uploads_nor_staged_data(sink: MemorySinkFixture) -> None:
    sink.run(LOG, goal=LEFT_OPEN)
    assert sink.orphans()
    one = session(sink)
    assert one.state.staged()
    one.discard_open(**without_open(one.state))
    assert one.state.staged() == set()
    assert sink.orphans() == []


def test_a_discard_that_is_interrupted_after_its_record_is_completed_by_the_next_clean_up(
    sink: MemorySinkFixture,
) -> None:
    sink.run(LOG, goal=LEFT_OPEN)
    one = session(sink)
    with sink.faults(fail("delete", "/staging/", TransientError)), pytest.raises(TransientError):
        one.discard_open(**without_open(one.state))
    assert sink.orphans()
    session(sink).clean_up()
    assert sink.orphans() == []


def test_a_discard_without_open_objects_writes_no_intent(sink: MemorySinkFixture) -> None:
    sink.run(LOG)
    one = session(sink)
    puts: list[str] = []
    sink.s3.fault = lambda call, key: puts.append(key) if call == "put" else None
    one.discard_open()
    assert not [key for key in puts if "/intent/" in key]


def test_the_clock_of_a_command_is_never_before_that_of_the_ledger(sink: MemorySinkFixture) -> None:
    sink.run(LOG)
    one = session(sink, clock=lambda: CLOCK_MS - 50_000)
    assert one.state.clock == CLOCK_MS
    one.record()
    assert one.state.clock == CLOCK_MS


def test_the_partitions_that_differ_are_those_that_changed_or_are_new() -> None:
    start, later = PartitionState.start(0), PartitionState.start(5)
    before = LedgerState(partitions={"a-0": start, "a-1": start})
    assert changed(before, {"a-0": start, "a-1": later, "a-2": start}) == {"a-1": later, "a-2": start}


def test_many_lost_objects_are_counted_and_the_first_is_named() -> None:
    message = str(lost_upload_error("archive", [f"k{number}" for number in range(1234, 0, -1)]))
    assert message.startswith("1,234 closed objects of the ledger were lost")
    assert "The first is s3://archive/k1." in message
