"""Takeover of a ledger from a running driver."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from sink_job.api.errors import LedgerFenced
from sink_job.ledger.state import KafkaIdentity, LedgerState, Record
from sink_job.ledger.store import Ledger
from sink_job.ledger.takeover import take_over
from sink_job.ledger.transitions import apply
from tests.support.memory_s3 import MemoryS3


class Rival:
    """A running driver that appends records."""

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


def test_a_driver_that_appends_a_record_during_each_listing_is_fenced(s3: MemoryS3, rival: Rival) -> None:
    active = [True]

    def fault(call: str, key: str) -> None:
        if call == "list" and key.endswith("snapshot/") and active[0]:
            active[0] = False  # not for the rival's own calls
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(s3, "fault", lambda *_: None)
                try:
                    rival.appends()
                except LedgerFenced:
                    return
            active[0] = True

    s3.fault = fault
    ledger = newcomer(s3)
    state = take_over(ledger, lambda state: claim_of(state, ledger.attempt))
    assert state.epoch == state.number > rival.state.number
    with pytest.raises(LedgerFenced):
        rival.appends()


def test_records_after_a_state_are_read_without_a_listing(s3: MemoryS3, rival: Rival) -> None:
    ledger = newcomer(s3)
    state = ledger.load()
    rival.appends()
    rival.appends()
    calls: list[str] = []
    s3.fault = lambda call, key: calls.append(call)
    assert ledger.catch_up(state) == rival.state
    assert "list" not in calls


def test_a_deleted_next_record_leads_to_a_new_listing(s3: MemoryS3, rival: Rival) -> None:
    ledger = newcomer(s3)
    state = ledger.load()
    for _ in range(3):
        rival.appends()
    rival.state = rival.ledger.snapshot(rival.state)
    rival.appends()
    rival.state = rival.ledger.snapshot(rival.state)
    assert ledger.catch_up(state).number == rival.state.number


def test_a_claim_with_the_number_of_a_deleted_record_is_not_read_as_that_record(s3: MemoryS3, rival: Rival) -> None:
    """Two suspended drivers have read the same state. One claims a number that was deleted meanwhile. The other one
    reads that claim in place of the record, and all later records."""
    old_state = newcomer(s3).load()
    suspended = [newcomer(s3), newcomer(s3)]

    def claim(state: LedgerState) -> Record:
        if state == old_state and rival.state == old_state:
            rival.appends(kafka=KafkaIdentity("cluster", {"log": "its id"}))
            rival.state = rival.ledger.snapshot(rival.state)
            rival.appends()
            rival.state = rival.ledger.snapshot(rival.state)
            suspended[0].append(claim_of(old_state, suspended[0].attempt))
        return claim_of(state, suspended[1].attempt)

    state = take_over(suspended[1], claim)
    assert state.kafka == rival.state.kafka
    assert rival.state.number < state.number == state.epoch


def test_a_driver_that_loses_every_attempt_is_fenced(s3: MemoryS3, rival: Rival) -> None:
    def claim(state: LedgerState) -> Record:
        rival.appends()
        return claim_of(state, "newcomer")

    with pytest.raises(LedgerFenced, match="in each of 50 attempts another driver appended a record first"):
        take_over(newcomer(s3), claim)
