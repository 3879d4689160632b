"""The input of an audit: which objects a generation has."""

from __future__ import annotations

from sink_job.ledger.state import LedgerState
from sink_job.verify.audit_input import GenerationAudit
from tests.unit.verify.audit_builder import closed


def test_the_objects_of_a_generation_are_the_published_and_then_the_pending_ones() -> None:
    published, pending = closed([0, 1]), closed([2, 3])
    audit = GenerationAudit(LedgerState(pending={pending.key: pending}), [published], [])
    assert audit.objects == [published, pending]


def test_a_generation_without_objects_has_none() -> None:
    assert GenerationAudit(LedgerState(), [], []).objects == []
