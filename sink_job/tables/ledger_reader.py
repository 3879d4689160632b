"""Reads what registrations need of a ledger: its identity, its resets, and the published objects of each topic."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from sink_job.api.enums import OnExisting
from sink_job.api.errors import ConfigurationError
from sink_job.api.spec import ObjectSettings
from sink_job.ledger.state import ClosedObject, LedgerState, Record
from sink_job.ledger.store import Ledger
from sink_job.records.batch import DEAD_LETTERS
from sink_job.s3 import NotFound
from sink_job.tables.partitions.object_paths import layout_of
from sink_job.tables.plan import LedgerView


def read_ledger(ledger: Ledger, sink_id: str) -> tuple[LedgerView, Mapping[str, Sequence[ClosedObject]]]:
    """The view of a ledger, which a driver may be writing, and the acknowledged objects by topic, in the order of the
    records that acknowledge them. Dead-letter objects are left out.

    Raises ConfigurationError if there is no ledger, or if its first claim was deleted.
    """
    state = ledger.load()
    if not state.number:
        raise ConfigurationError(
            f"there is no ledger below {ledger.url}: sink {sink_id} has not written anything yet, or spec.s3.topicsDir "
            "or spec.sinkId was changed"
        )
    found: dict[str, list[ClosedObject]] = defaultdict(list)
    for entry in ledger.published(state):
        if entry.object is not None and entry.object.path != DEAD_LETTERS:
            found[entry.object.topic].append(entry.object)
    for objects in found.values():
        objects.sort(key=lambda o: (o.acknowledged, o.key))
    return _view(ledger, state, sink_id), found


def _view(ledger: Ledger, state: LedgerState, sink_id: str) -> LedgerView:
    claims = ledger.claims(state)
    resets = [claim for claim in claims if claim.reset is not None]
    settings = {claim.number: claim.settings for claim in claims if claim.settings is not None}
    texts = {**state.settings, **settings}
    parsed = {text: layout_of(ObjectSettings.model_validate_json(text)) for text in set(texts.values())}
    return LedgerView(
        sink_id=sink_id,
        identity=_first_claim(ledger, state).attempt,
        number=state.number,
        resets=tuple(claim.number for claim in resets),
        copied_from=max((claim.number for claim in resets if _copies_again(claim)), default=0),
        layouts={number: parsed[text] for number, text in texts.items()},
    )


def _copies_again(claim: Record) -> bool:
    return claim.reset is not None and claim.reset.on_existing != OnExisting.FAIL


def _first_claim(ledger: Ledger, state: LedgerState) -> Record:
    try:
        return ledger.record(min(state.claims))
    except NotFound:
        raise ConfigurationError(
            f"the first claim of the ledger {ledger.url} was deleted: a table cannot be compared with the ledger. "
            "Restore that object (bucket versioning)"
        ) from None
