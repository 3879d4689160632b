"""Ownership check before an error is reported (P4)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from sink_job.api.errors import LedgerFenced, SinkError
from sink_job.ledger.state import LedgerState
from sink_job.ledger.store import Ledger


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
