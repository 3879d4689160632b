"""Deliberate defects of accepted losses, as in `devtools.simulation.mutations`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

from msgspec.structs import replace

from sink_job.ledger import session
from sink_job.ledger.state import LedgerState, LostObject, OffsetChecksum
from sink_job.ledger.store import Ledger
from sink_job.maintenance.repair import accepted_loss
from sink_job.verify import per_generation

Patches = Sequence[AbstractContextManager[Any]]


class _Unclaimed(session.LedgerSession):
    """A session whose first record is no claim."""

    def __init__(self, access: session.LedgerAccess) -> None:
        def read(ledger: Ledger, record: object) -> LedgerState:
            return ledger.load()

        with patch.object(session, "take_over", read):
            super().__init__(access)


def losses_without_a_claim() -> Patches:
    """A command records losses under the claim of a driver."""
    return [patch.object(accepted_loss, "LedgerSession", _Unclaimed)]


def losses_of_some_offsets() -> Patches:
    """The record of an accepted loss does not list all offsets of the object."""

    def partial(*fields: Any) -> LostObject:
        lost = LostObject(*fields)
        return replace(lost, offsets=lost.offsets - OffsetChecksum(1, 1))

    return [patch.object(accepted_loss, "LostObject", partial)]


def accepted_losses_ignored() -> Patches:
    """`verify` takes accepted losses for those of objects that were not visible yet."""
    return [patch.object(per_generation, "accepted_losses", lambda published, lost: ())]


REPAIR_MUTATIONS: dict[str, Callable[[], Patches]] = {
    each.__name__: each for each in (losses_without_a_claim, losses_of_some_offsets, accepted_losses_ignored)
}

REPAIR_INCLUDE = dict.fromkeys(REPAIR_MUTATIONS, ("repairs",))
"""The features that a run needs to find a defect."""
