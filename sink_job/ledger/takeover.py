"""Takes over a ledger: appends the claim that fences every other driver, and notices one that was fenced (P4).

The ledger's objects and uploads are not touched before the claim is confirmed as the head of the ledger.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from sink_job.api.errors import LedgerFenced, SinkError
from sink_job.ledger.state import LedgerState, Record
from sink_job.ledger.store import Ledger
from sink_job.ledger.transitions import apply

CLAIM_ATTEMPTS = 50


def take_over(ledger: Ledger, claim: Callable[[LedgerState], Record]) -> LedgerState:
    """Claims the ledger and returns its state with the claim applied.

    `claim` returns the record that follows a state. If another driver appends a record at the same time, the claim is
    tried again, also when `claim` raised: the other driver may have caused the error. A running driver appends two
    records per round, so the next attempt reads the following records without a listing.
    Raises LedgerFenced after `CLAIM_ATTEMPTS` lost attempts.
    """
    state = ledger.load()
    for _ in range(CLAIM_ATTEMPTS):
        try:
            record = _claimed(ledger, claim, state)
            ledger.append(record)
        except LedgerFenced:
            state = ledger.catch_up(state)
            continue
        if ledger.is_head(record.number, state):
            return apply(state, record)
        state = ledger.load()
    raise LedgerFenced(
        f"the ledger {ledger.s3.url_of(ledger.root)} could not be claimed: in each of {CLAIM_ATTEMPTS} attempts "
        "another driver appended a record first. Run one driver per sink."
    )


def _claimed(ledger: Ledger, claim: Callable[[LedgerState], Record], state: LedgerState) -> Record:
    with ownership_checked_first(ledger, lambda: state):
        return claim(state)


@contextlib.contextmanager
def ownership_checked_first(ledger: Ledger, state: Callable[[], LedgerState]) -> Iterator[None]:
    """Converts an error in the block into LedgerFenced if another driver has claimed the ledger after `state`.

    Any request can fail after the other driver has removed, completed or committed something. If the ownership check
    itself fails, the original error is raised.
    """
    try:
        yield
    except LedgerFenced:
        raise
    except Exception as failure:
        try:
            ledger.check_owner(state())
        except LedgerFenced as fenced:
            raise fenced from failure
        except SinkError:
            pass
        raise
