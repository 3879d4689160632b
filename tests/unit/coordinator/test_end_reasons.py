"""Why a driver or a command ends: the ledger says who owns it before any other failure is reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sink_job.api.errors import (
    DataLoss,
    LedgerFenced,
    ObjectConflict,
    OwnershipConflict,
    SinkError,
    TransientError,
)
from sink_job.api.sections.operator_sections import OffsetResetSpec
from sink_job.coordinator.context import StopCondition
from sink_job.ledger.ownership import Owner, claim_ledger
from sink_job.ledger.state import LedgerState, Record
from sink_job.ledger.store import Ledger
from sink_job.ledger.transitions import apply
from sink_job.maintenance.discard_open import discard_open
from sink_job.maintenance.offset_reset import OffsetResetter
from sink_job.s3 import Conflict, S3Outcome
from tests.support.memory_s3 import MemoryS3
from tests.support.memory_sink import MemorySinkFixture, error_of
from tests.support.synthetic_log import FileConsumerGroup, InlineEngine, SyntheticLog

LOG = SyntheticLog(records=12)
FIRST = "topics/log/partition=0/log+0+0000000000.json"
NEW_LEDGER = StopCondition(until_caught_up=True, publish_open=True, start_new_ledger=True)
OBJECTS = {
    f"topics/log/partition=0/log+0+{first:010d}.json": list(range(first, min(first + 5, 12))) for first in (0, 5, 10)
}


@pytest.fixture
def sink_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemorySinkFixture:
    return MemorySinkFixture(tmp_path, monkeypatch)


class Once:
    """A fault: at the first of these requests `happens` is called, then the request is done."""

    def __init__(self, call: str, key: str, happens: Callable[[str], object]) -> None:
        self._call = call
        self._key = key
        self._happens = happens
        self._done = False

    def __call__(self, call: str, key: str) -> None:
        if not self._done and call == self._call and self._key in key:
            self._done = True
            self._happens(key)


def fail(call: str, key: str, error: type[SinkError]) -> Callable[[str, str], None]:
    """A fault: each of these requests is answered with the error."""

    def fault(asked: str, at: str) -> None:
        if asked == call and key in at:
            raise error(f"{asked} {at}: by the test")

    return fault


def stored_then(monkeypatch: pytest.MonkeyPatch, s3: MemoryS3, key: str, error: type[SinkError]) -> None:
    """The first put of `key` is done and answered with the error."""
    put = s3.put

    def first(at: str, body: Any, **given: Any) -> Any:
        done = put(at, body, **given)
        if key in at:
            monkeypatch.setattr(s3, "put", put)
            raise error(f"{at}: by the test")
        return done

    monkeypatch.setattr(s3, "put", first)


# -- its own record --------------------------------------------------------------------------------------------------


def test_a_driver_whose_record_was_stored_before_the_outage_is_not_fenced_by_it(
    sink_fixture: MemorySinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_then(monkeypatch, sink_fixture.s3, f"/ledger/{4:020d}", TransientError)
    error = error_of(lambda: sink_fixture.run(LOG))
    assert type(error) is TransientError
    sink_fixture.run(LOG)
    assert sink_fixture.offsets() == OBJECTS


def ledger(s3: MemoryS3, attempt: str) -> Ledger:
    store: Any = s3
    return Ledger(store, "sink/", attempt)


def record(number: int, attempt: str) -> Record:
    return Record(number=number, epoch=number, attempt=attempt, kind="claim", clock=0)


@pytest.mark.parametrize("above", [["ours", "theirs"], [None, "theirs"], ["theirs"]], ids=str)
def test_a_record_of_another_attempt_anywhere_above_the_state_fences(above: list[str | None]) -> None:
    s3 = MemoryS3()
    state = LedgerState()
    for number, attempt in enumerate(["ours", *above], 1):
        if attempt is not None:
            ledger(s3, attempt).append(record(number, attempt))
        if number == 1:
            state = apply(state, record(1, "ours"))
    with pytest.raises(LedgerFenced, match="attempt theirs"):
        ledger(s3, "ours").check_owner(state)


@pytest.mark.parametrize("above", [[], ["ours"]], ids=str)
def test_without_a_record_of_another_attempt_no_driver_is_fenced(above: list[str]) -> None:
    s3 = MemoryS3()
    for number, attempt in enumerate(["ours", *above], 1):
        ledger(s3, attempt).append(record(number, attempt))
    ledger(s3, "ours").check_owner(apply(LedgerState(), record(1, "ours")))
    ledger(s3, "ours").check_head(apply(LedgerState(), record(1, "ours")))


# -- a failure of a fenced driver ------------------------------------------------------------------------------------


def gone_from_kafka(engine: InlineEngine, group: FileConsumerGroup) -> None:
    engine.log = group.log = replace(LOG, starts_at=12)


def test_a_fenced_driver_does_not_report_data_loss_of_what_the_other_one_has_published(
    sink_fixture: MemorySinkFixture,
) -> None:
    engine, group = InlineEngine(LOG), FileConsumerGroup(LOG, sink_fixture.group)

    def meanwhile(key: str) -> None:
        sink_fixture.run(LOG)
        sink_fixture.s3.delete([FIRST])
        gone_from_kafka(engine, group)

    with sink_fixture.faults(Once("complete", FIRST, meanwhile)):
        error = error_of(lambda: sink_fixture.run(LOG, engine=engine, admin=group))
    assert isinstance(error, LedgerFenced)
    assert isinstance(error.__cause__, DataLoss)


def test_a_failure_is_reported_as_it_is_where_the_store_does_not_say_who_owns_the_ledger(
    sink_fixture: MemorySinkFixture,
) -> None:
    engine, group = InlineEngine(LOG), FileConsumerGroup(LOG, sink_fixture.group)

    def meanwhile(key: str) -> None:
        sink_fixture.run(LOG)
        sink_fixture.s3.delete([FIRST])
        gone_from_kafka(engine, group)
        sink_fixture.s3.fault = fail("list", "/ledger/", TransientError)

    with sink_fixture.faults(Once("complete", FIRST, meanwhile)):
        error = error_of(lambda: sink_fixture.run(LOG, engine=engine, admin=group))
    assert isinstance(error, DataLoss)


def test_a_failure_of_the_owner_is_reported_as_it_is(sink_fixture: MemorySinkFixture) -> None:
    sink_fixture.s3.put(FIRST, b"of another program")
    assert isinstance(error_of(lambda: sink_fixture.run(LOG, goal=NEW_LEDGER)), ObjectConflict)


def pending(sink_fixture: MemorySinkFixture) -> None:
    """A ledger that names an object which is not visible."""
    with sink_fixture.faults(fail("complete", FIRST, TransientError)):
        assert isinstance(error_of(lambda: sink_fixture.run(LOG)), TransientError)


def test_a_fenced_discard_does_not_report_as_lost_what_the_driver_has_published(
    sink_fixture: MemorySinkFixture,
) -> None:
    pending(sink_fixture)

    def meanwhile(key: str) -> None:
        sink_fixture.run(LOG)
        sink_fixture.s3.delete([FIRST])

    with sink_fixture.faults(Once("complete", FIRST, meanwhile)):
        assert isinstance(error_of(lambda: discard_open(sink_fixture.ledger_access())), LedgerFenced)


def test_a_fenced_reset_does_not_report_as_lost_what_the_driver_has_published(sink_fixture: MemorySinkFixture) -> None:
    pending(sink_fixture)
    request = OffsetResetSpec.model_validate({"nonce": "n", "to": "Earliest", "onExisting": "NewPrefix"})

    def meanwhile(key: str) -> None:
        sink_fixture.run(LOG)
        sink_fixture.s3.delete([FIRST])

    resetter = OffsetResetter(
        sink_fixture.sink, sink_fixture.ledger_access(), FileConsumerGroup(LOG, sink_fixture.group), request
    )
    with sink_fixture.faults(Once("complete", FIRST, meanwhile)):
        assert isinstance(error_of(resetter.run), LedgerFenced)


# -- a 409 that persists ---------------------------------------------------------------------------------------------


def test_a_conflict_over_the_drivers_own_record_is_a_success(
    sink_fixture: MemorySinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_then(monkeypatch, sink_fixture.s3, f"/ledger/{4:020d}", Conflict)
    sink_fixture.run(LOG)
    assert sink_fixture.offsets() == OBJECTS


def test_a_conflict_over_the_record_of_another_driver_fences(sink_fixture: MemorySinkFixture) -> None:
    def meanwhile(key: str) -> None:
        sink_fixture.run(LOG)
        raise Conflict(key, key)

    with sink_fixture.faults(Once("put", f"/ledger/{4:020d}", meanwhile)):
        assert isinstance(error_of(lambda: sink_fixture.run(LOG)), LedgerFenced)
    assert sink_fixture.offsets() == OBJECTS


@pytest.mark.parametrize("file", ["/ledger/", "/snapshot/", "owner.json", "/topics/log/json.json"])
def test_a_conflict_over_nothing_is_worth_trying_again(sink_fixture: MemorySinkFixture, file: str) -> None:
    with sink_fixture.faults(fail("put", file, Conflict)):
        error = error_of(lambda: sink_fixture.run(LOG))
    assert isinstance(error, TransientError)
    assert not isinstance(error, S3Outcome)
    sink_fixture.run(LOG)
    assert sink_fixture.offsets() == OBJECTS


@pytest.mark.parametrize("file", ["/snapshot/", "owner.json", "/topics/log/json.json"])
def test_a_conflict_over_what_the_driver_has_written_itself_is_a_success(
    sink_fixture: MemorySinkFixture, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    stored_then(monkeypatch, sink_fixture.s3, file, Conflict)
    sink_fixture.run(LOG)
    assert sink_fixture.offsets() == OBJECTS


def test_a_conflict_over_the_place_of_another_sink_is_rejected() -> None:
    store = MemoryS3()
    s3: Any = store
    claim_ledger(s3, "sink/", Owner("c", "n", "one", "id"))
    store.fault = fail("put", "owner.json", Conflict)
    with pytest.raises(OwnershipConflict, match="belongs to S3Sink n/one"):
        claim_ledger(s3, "sink/", Owner("c", "n", "other", "id"))


# -- the first start -------------------------------------------------------------------------------------------------


def test_of_drivers_that_start_a_sink_at_once_none_takes_the_others_objects_for_a_lost_ledger(
    sink_fixture: MemorySinkFixture,
) -> None:
    with sink_fixture.faults(Once("list", "topics/log/", lambda key: sink_fixture.run(SyntheticLog(records=8)))):
        sink_fixture.run(LOG)
    found = sorted(offset for offsets in sink_fixture.offsets().values() for offset in offsets)
    assert found == list(range(12))


# -- uploads of a rebuild --------------------------------------------------------------------------------------------


class Vanishing:
    """A fault: the upload of each of the first `times` parts is gone when the part arrives."""

    def __init__(self, s3: MemoryS3, times: int) -> None:
        self._s3 = s3
        self.left = times

    def __call__(self, call: str, key: str) -> None:
        if call == "upload_part" and key == FIRST and self.left:
            self.left -= 1
            self._s3.uploads.clear()


def test_an_upload_that_disappears_during_a_rebuild_gets_another_attempt(sink_fixture: MemorySinkFixture) -> None:
    pending(sink_fixture)
    sink_fixture.s3.uploads.clear()
    with sink_fixture.faults(vanishing := Vanishing(sink_fixture.s3, 3)):
        sink_fixture.run(LOG)
    assert vanishing.left == 0
    assert sink_fixture.offsets() == OBJECTS
    assert sink_fixture.orphans() == []


def test_uploads_that_keep_vanishing_are_worth_trying_again_later_and_nothing_is_left(
    sink_fixture: MemorySinkFixture,
) -> None:
    pending(sink_fixture)
    sink_fixture.s3.uploads.clear()
    with sink_fixture.faults(Vanishing(sink_fixture.s3, 1_000)):
        error = error_of(lambda: sink_fixture.run(LOG))
    assert type(error) is TransientError
    assert "disappear during rebuilds" in str(error)
    assert sink_fixture.s3.uploads == {}
    sink_fixture.run(LOG)
    assert sink_fixture.offsets() == OBJECTS


def test_uploads_of_an_attempt_are_aborted_if_kafka_no_longer_holds_all_records(
    sink_fixture: MemorySinkFixture,
) -> None:
    pending(sink_fixture)
    sink_fixture.s3.uploads.clear()
    holed = replace(LOG, gaps=frozenset({3}))
    assert isinstance(error_of(lambda: sink_fixture.run(holed)), DataLoss)
    assert sink_fixture.s3.uploads == {}


def test_staged_remainders_that_keep_vanishing_end_the_driver(sink_fixture: MemorySinkFixture) -> None:
    def fault(call: str, key: str) -> None:
        if call == "get_range":
            sink_fixture.s3.delete([key])

    with sink_fixture.faults(fault):
        error = error_of(lambda: sink_fixture.run(LOG))
    assert type(error) is TransientError
    assert "its open objects were rebuilt 5 times" in str(error)
    sink_fixture.run(LOG)
    assert sink_fixture.offsets() == OBJECTS
