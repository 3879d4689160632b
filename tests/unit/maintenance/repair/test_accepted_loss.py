"""`s3sink repair --accept-loss`: what it records, what it leaves alone, kills at each request, and a running driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from msgspec.structs import replace

from sink_job.api.errors import LedgerFenced, TransientError
from sink_job.coordinator.context import StopCondition
from sink_job.ledger.state import LedgerState, LostObject
from sink_job.maintenance.repair.accepted_loss import AcceptedLosses, accept_losses
from sink_job.maintenance.repair.damage import Suspect
from sink_job.maintenance.repair.results import RepairOutcome, RepairReport, Source
from sink_job.verify.results import PartitionResult
from tests.support.repair_sink import KEYS, WRITES, RepairFixture
from tests.support.synthetic_log import SyntheticLog

FIRST, SECOND, THIRD = KEYS
LEFT = SyntheticLog(records=12, starts_at=3)
"""Kafka no longer holds the first records of the first object."""


class Killed(BaseException):
    """The process is killed at this request."""


def delete(fixture: RepairFixture) -> None:
    fixture.sink.s3.delete([FIRST])


def truncate(fixture: RepairFixture) -> None:
    fixture.sink.s3.put(FIRST, fixture.right[FIRST][:-7])


def accept(fixture: RepairFixture, log: SyntheticLog = LEFT, *, dry_run: bool = False) -> RepairReport:
    return fixture.repair(log=log, accepts=True, dry_run=dry_run)


def state(fixture: RepairFixture) -> LedgerState:
    return fixture.sink.ledger_access().ledger.load()


def result(fixture: RepairFixture) -> PartitionResult:
    (found,) = fixture.evidence().results()
    return found


@pytest.mark.parametrize("damage", [delete, truncate])
def test_an_accepted_loss_is_no_damage_any_more(
    repaired: RepairFixture, damage: Callable[[RepairFixture], None]
) -> None:
    damage(repaired)
    before = repaired.objects()
    report = accept(repaired)
    (lost,) = report.objects
    assert (lost.key, lost.outcome, report.exit_code) == (FIRST, RepairOutcome.LOSS_ACCEPTED, 0)
    assert "those at offsets 0 to 2 would be lost" in lost.message
    assert report.record == state(repaired).number
    assert repaired.objects() == before
    found = result(repaired)
    assert (found.findings, found.lost, found.records) == ((), 5, 7)
    again = repaired.repair()
    assert (again.objects, again.accepted, again.exit_code) == ((), 1, 0)


def test_what_can_be_restored_is_restored_and_the_rest_is_recorded(repaired: RepairFixture) -> None:
    repaired.sink.s3.delete(KEYS)
    report = accept(repaired)
    assert [o.outcome for o in report.objects] == [
        RepairOutcome.LOSS_ACCEPTED,
        RepairOutcome.RESTORED,
        RepairOutcome.RESTORED,
    ]
    assert (result(repaired).findings, result(repaired).lost) == ((), 5)


def test_an_object_that_this_version_cannot_write_byte_for_byte_can_be_recorded_as_lost(
    repaired: RepairFixture,
) -> None:
    delete(repaired)
    (lost,) = accept(repaired, SyntheticLog(records=12, value_bytes=90)).objects
    assert lost.outcome is RepairOutcome.LOSS_ACCEPTED
    assert "writes other bytes for them" in lost.message
    assert result(repaired).findings == ()


def writes_of(fixture: RepairFixture, run: Callable[[], RepairReport]) -> list[str]:
    requests: list[tuple[str, str]] = []
    with fixture.sink.faults(lambda call, key: requests.append((call, key))):
        run()
    return [key for call, key in requests if call in WRITES]


def test_without_a_loss_the_ledger_is_not_claimed(repaired: RepairFixture) -> None:
    delete(repaired)
    number = state(repaired).number
    assert accept(repaired, repaired.log).exit_code == 0
    assert state(repaired).number == number
    assert writes_of(repaired, lambda: accept(repaired)) == []


def test_a_dry_run_accepts_nothing(repaired: RepairFixture) -> None:
    delete(repaired)
    assert writes_of(repaired, lambda: accept(repaired, dry_run=True)) == []
    assert accept(repaired, dry_run=True).exit_code == 5


def test_a_named_object_is_restored_after_its_loss_was_accepted(repaired: RepairFixture) -> None:
    delete(repaired)
    accept(repaired)
    assert [o.outcome for o in repaired.repair([FIRST]).objects] == [RepairOutcome.RESTORED]
    found = result(repaired)
    assert (found.findings, found.lost, found.records) == ((), 0, 12)


def test_a_loss_is_recorded_once(repaired: RepairFixture) -> None:
    delete(repaired)
    record = accept(repaired).record
    again = repaired.repair([FIRST], log=LEFT, accepts=True)
    assert [o.outcome for o in again.objects] == [RepairOutcome.LOSS_ACCEPTED]
    assert (record is not None, again.record) == (True, None)
    assert [each.key for each in lost_of(repaired)] == [FIRST]


def lost_of(fixture: RepairFixture) -> list[LostObject]:
    ledger = fixture.sink.ledger_access().ledger
    return [line.lost for line in ledger.published(ledger.load()) if line.lost]


def test_a_loss_stays_recorded_over_snapshots_and_later_rounds(repaired: RepairFixture) -> None:
    delete(repaired)
    accept(repaired)
    more = SyntheticLog(records=60, starts_at=3)
    repaired.sink.run(more)
    assert state(repaired).lost == ()
    (found,) = repaired.evidence(more).results()
    assert (found.findings, found.lost, found.records) == ((), 5, 55)


def test_an_object_that_another_process_has_restored_meanwhile_is_not_lost(repaired: RepairFixture) -> None:
    delete(repaired)
    restored: list[bool] = []

    def restore(call: str, key: str) -> None:
        if call == "put" and "/ledger/" in key and not restored:
            restored.append(True)
            with repaired.sink.faults(lambda *_: None):
                assert repaired.repair().exit_code == 0

    with repaired.sink.faults(restore):
        report = accept(repaired)
    (o,) = report.objects
    assert (o.outcome, o.source, report.record) == (RepairOutcome.RESTORED, Source.ANOTHER_RUN, None)
    assert result(repaired).lost == 0


def test_a_running_driver_is_fenced_and_the_next_one_continues(repaired: RepairFixture) -> None:
    delete(repaired)
    more = SyntheticLog(records=60, starts_at=3)
    done: list[RepairReport] = []
    claim = state(repaired).number + 1
    is_called: list[bool] = []

    def meanwhile(call: str, key: str) -> None:
        if call == "put" and "/ledger/" in key and int(key.rpartition("/")[2][:20]) > claim and not is_called:
            is_called.append(True)
            with repaired.sink.faults(lambda *_: None):
                done.append(accept(repaired, more))

    with repaired.sink.faults(meanwhile), pytest.raises(LedgerFenced):
        repaired.sink.run(more, goal=StopCondition(until_caught_up=True, publish_open=True))
    assert [o.outcome for o in done[0].objects] == [RepairOutcome.LOSS_ACCEPTED]
    repaired.sink.run(more)
    (found,) = repaired.evidence(more).results()
    assert (found.findings, found.lost, found.records) == ((), 5, 55)


def at_each_request(fixture: RepairFixture, act: Callable[[], None], log: SyntheticLog = LEFT) -> Iterator[int]:
    """Accepts the loss once for each request; `act` is called before this request."""
    before = fixture.saved()
    total = 0

    def counted(call: str, key: str) -> None:
        nonlocal total
        total += 1

    with fixture.sink.faults(counted):
        accept(fixture, log)
    for number in range(total):
        fixture.restore(before)
        seen = 0

        def fault(call: str, key: str, number: int = number) -> None:
            nonlocal seen
            seen += 1
            if seen == number + 1:
                act()

        with fixture.sink.faults(fault):
            yield number


def test_a_command_killed_at_any_request_has_recorded_all_losses_or_none(repaired: RepairFixture) -> None:
    repaired.sink.s3.delete([FIRST, SECOND])
    log = SyntheticLog(records=12, starts_at=8)

    def kill() -> None:
        raise Killed

    tried = 0
    for _ in at_each_request(repaired, kill, log):
        tried += 1
        with pytest.raises(Killed):
            accept(repaired, log)
        with repaired.sink.faults(lambda call, key: None):
            assert len(lost_of(repaired)) in (0, 2)
            assert accept(repaired, log).exit_code == 0
            assert (result(repaired).findings, result(repaired).lost) == ((), 10)
            assert len(lost_of(repaired)) == 2
    assert tried > 20


def test_two_commands_at_once_record_a_loss_once(repaired: RepairFixture) -> None:
    delete(repaired)

    def other() -> None:
        with repaired.sink.faults(lambda call, key: None):
            assert accept(repaired).exit_code == 0

    for _ in at_each_request(repaired, other):
        with suppress(LedgerFenced):
            accept(repaired)
        with repaired.sink.faults(lambda call, key: None):
            assert len(lost_of(repaired)) == 1
            assert (result(repaired).findings, result(repaired).lost) == ((), 5)


def suspect_of(fixture: RepairFixture) -> Suspect:
    return Suspect(fixture.evidence().objects[FIRST], 1)


def test_after_an_offset_reset_nothing_is_recorded(repaired: RepairFixture) -> None:
    delete(repaired)
    with pytest.raises(TransientError, match="generation 1 meanwhile; no loss was recorded"):
        accept_losses(repaired.sink.ledger_access(), 7, [suspect_of(repaired)])
    assert lost_of(repaired) == []


def test_an_object_in_whose_place_the_sink_has_a_later_one_is_left_out(repaired: RepairFixture) -> None:
    delete(repaired)
    suspect = suspect_of(repaired)
    earlier = Suspect(replace(suspect.o, record=suspect.o.record - 1), 1)
    assert accept_losses(repaired.sink.ledger_access(), 1, [earlier]) == AcceptedLosses()
    assert lost_of(repaired) == []
