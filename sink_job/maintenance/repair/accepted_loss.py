"""`s3sink repair --accept-loss`: one ledger record that lists objects as lost whose bytes no source has.

The command claims the ledger, which fences a running driver: so no driver appends the same number, and the next one
reads the record. Nothing at the keys of the objects is changed, so a command that is killed has recorded all losses or
none. An object that has its recorded bytes again later is no loss: the bucket decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sink_job.api.errors import TransientError
from sink_job.ledger.data_loss import accepted_losses
from sink_job.ledger.session import LedgerAccess, LedgerSession
from sink_job.ledger.state import LostObject
from sink_job.maintenance.repair.damage import Suspect
from sink_job.maintenance.repair.inspection import inspect


@dataclass(frozen=True)
class AcceptedLosses:
    """The keys of the objects that the ledger records as lost now, and of those that another process has restored
    meanwhile. `record` is the number of the record that lists the losses; None if an earlier one lists all of them."""

    keys: frozenset[str] = frozenset()
    restored: frozenset[str] = frozenset()
    record: int | None = None


def accept_losses(access: LedgerAccess, generation: int, lost: Sequence[Suspect]) -> AcceptedLosses:
    """Claims the ledger and records these published objects as lost. An object that is as recorded by now, and one
    whose key the sink uses for a later object, is left out.

    Raises TransientError if the ledger is no longer in `generation`, and the errors of `LedgerSession`.
    """
    session = LedgerSession(access)
    with session.ownership_checked():
        return _record(session, generation, lost)


def _record(session: LedgerSession, generation: int, lost: Sequence[Suspect]) -> AcceptedLosses:
    state = session.state
    if state.generation != generation:
        raise TransientError(
            f"{session.ledger.url}: an offset reset has started generation {state.generation} meanwhile; no loss was "
            "recorded. Repeat this command: it examines the objects of the ended generation by the new state"
        )
    lines = session.ledger.published(state)
    published = [line.object for line in lines if line.object]
    newest = {o.key: o for o in published} | state.pending
    damaged = [s.o for s in lost if newest.get(s.o.key) == s.o and inspect(session.s3, s.o).damage is not None]
    recorded = accepted_losses(published, [line.lost for line in lines if line.lost])
    known = {o.key for _, o in recorded if newest[o.key] == o}
    losses = tuple(
        LostObject(o.topic, o.partition, o.key, o.path, o.first, o.last, o.offsets, state.number + 1)
        for o in damaged
        if o.key not in known
    )
    if losses:
        session.record(lost=losses)
    keys = frozenset(o.key for o in damaged)
    restored = frozenset(s.o.key for s in lost if newest.get(s.o.key) == s.o) - keys
    return AcceptedLosses(keys, restored, session.state.number if losses else None)
