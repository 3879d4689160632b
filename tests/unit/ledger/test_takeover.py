"""Taking a ledger over from a driver that is at work."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from sink_job.api.errors import LedgerFenced
from sink_job.ledger.state import KafkaIdentity, LedgerState, Record, apply
from sink_job.ledger.store import Ledger
from sink_job.ledger.takeover import take_over
from tests.support.memory_s3 import MemoryS3


class Rival:
    """A driver at work: its records follow each other however the store is asked."""

    def __init__(self, s3: MemoryS3) -> None:
        store: Any = s3
        self.ledger = Ledger(store, "ledger-of/", uuid.uuid4().hex)
        self.state = take_over(self.ledger, lambda state: claim_of(state, self.ledger.attempt))

    def appends(self, kafka: KafkaIdentity | None = None) -> None:
        record = Record(self.state.number + 1, self.state.epoch, self.ledger.attempt, "round", clock=0, kafka=kafka)
        self.ledger.append(record)
        self.state = apply(self.state, record)


def claim_of(state: LedgerState, attempt: str) -> Record:
    return Record(state.number + 1, state.number + 1, attempt, "claim", clock=0, settings="{}")


@pytest.fixture
def s3() -> MemoryS3:
    return MemoryS3()


@pytest.fixture
def rival(s3: MemoryS3) -> Rival:
    return Rival(s3)


def newcomer(s3: MemoryS3) -> Ledger:
    store: Any = s3
    return Ledger(store, "ledger-of/", uuid.uuid4().hex)


def test_a_driver_that_appends_a_record_during_each_listing_is_fenced_all_the_same(s3: MemoryS3, rival: Rival) -> None:
    working = [True]

    def fault(call: str, key: str) -> None:
        if call == "list" and key.endswith("snapshot/") and working[0]:
            working[0] = False  # the rival's own calls are not counted
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(s3, "fault", lambda *_: None)
                try:
                    rival.appends()
                except LedgerFenced:
                    return
            working[0] = True

    s3.fault = fault
    ledger = newcomer(s3)
    state = take_over(ledger, lambda state: claim_of(state, ledger.attempt))
    assert state.epoch == state.number > rival.state.number
    with pytest.raises(LedgerFenced):
        rival.appends()


def test_records_that_were_appended_since_a_state_are_read_without_a_listing(s3: MemoryS3, rival: Rival) -> None:
    ledger = newcomer(s3)
    state = ledger.load()
    rival.appends()
    rival.appends()
    calls: list[str] = []
    s3.fault = lambda call, key: calls.append(call)
    assert ledger.catch_up(state) == rival.state
    assert "list" not in calls


def test_where_the_next_record_was_dropped_everything_is_listed_again(s3: MemoryS3, rival: Rival) -> None:
    ledger = newcomer(s3)
    state = ledger.load()
    for _ in range(3):
        rival.appends()
    rival.state = rival.ledger.snapshot(rival.state)
    rival.appends()
    rival.state = rival.ledger.snapshot(rival.state)
    assert ledger.catch_up(state).number == rival.state.number


def test_a_claim_that_fell_into_a_dropped_number_is_not_taken_for_the_record_that_was_there(
    s3: MemoryS3, rival: Rival
) -> None:
    """Two drivers have read the same state and sleep. One claims a number that was dropped meanwhile; the other one
    finds that claim where the record was, and all records behind it."""
    both = newcomer(s3).load()
    sleepers = [newcomer(s3), newcomer(s3)]

    def claim(state: LedgerState) -> Record:
        if state == both and rival.state == both:
            rival.appends(kafka=KafkaIdentity("cluster", {"log": "its id"}))
            rival.state = rival.ledger.snapshot(rival.state)
            rival.appends()
            rival.state = rival.ledger.snapshot(rival.state)
            sleepers[0].append(claim_of(both, sleepers[0].attempt))
        return claim_of(state, sleepers[1].attempt)

    state = take_over(sleepers[1], claim)
    assert state.kafka == rival.state.kafka
    assert rival.state.number < state.number == state.epoch


def test_whoever_loses_every_try_is_fenced(s3: MemoryS3, rival: Rival) -> None:
    def claim(state: LedgerState) -> Record:
        rival.appends()
        return claim_of(state, "newcomer")

    with pytest.raises(LedgerFenced, match="each of the 50 times that this one tried to claim it"):
        take_over(newcomer(s3), claim)
