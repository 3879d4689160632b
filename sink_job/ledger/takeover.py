"""Taking over a ledger: the claim that fences every other driver, and the clean-up after it (P4, P10).

Nothing is done on the ledger's behalf before the claim is its head: no upload aborted, no object completed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from sink_job.api.errors import LedgerFenced
from sink_job.ledger.fencing import ownership_checked_first
from sink_job.ledger.state import LedgerState, Record, apply
from sink_job.ledger.store import Ledger

CLAIM_ATTEMPTS = 50

_log = logging.getLogger(__name__)


def take_over(ledger: Ledger, claim: Callable[[LedgerState], Record]) -> LedgerState:
    """Claims the ledger and returns its state, the claim applied.

    `claim` makes the record that follows a state. Whoever appends a record at the same time makes this one try again,
    also where `claim` raises: what it found may be what the other one has made since. A driver that is at work appends
    two records a round, so the next try follows without a listing.
    Raises LedgerFenced when others keep winning.
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
        f"other drivers appended to s3://{ledger.s3.bucket}/{ledger.root} each of the {CLAIM_ATTEMPTS} times that this "
        "one tried to claim it. Run one driver per sink."
    )


def _claimed(ledger: Ledger, claim: Callable[[LedgerState], Record], state: LedgerState) -> Record:
    with ownership_checked_first(ledger, lambda: state):
        return claim(state)
