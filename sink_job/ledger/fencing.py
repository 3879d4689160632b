"""Who owns the ledger, asked before a failure is reported (P4)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from sink_job.api.errors import LedgerFenced, SinkError
from sink_job.ledger.state import LedgerState
from sink_job.ledger.store import Ledger


@contextlib.contextmanager
def ownership_checked_first(ledger: Ledger, state: Callable[[], LedgerState]) -> Iterator[None]:
    """Turns a failure inside into LedgerFenced where another driver has claimed the ledger after `state`: what that one
    removed, completed or committed fails here in any words. A store that does not answer the question leaves the
    failure as it is."""
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
