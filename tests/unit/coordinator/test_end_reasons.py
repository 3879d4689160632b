"""Why a driver or a command ends: the ledger says who owns it before any other failure is reported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sink_job.api.errors import (
    DataLoss,
    LedgerFenced,
    ObjectConflict,
    OwnershipConflict,
    TransientError,
)
from sink_job.api.sections.operator_sections import OffsetResetSpec
from sink_job.coordinator.context import StopCondition
from sink_job.ledger.ownership import Owner, claim_ledger
from sink_job.maintenance.discard_open import discard_open
from sink_job.maintenance.offset_reset import OffsetResetter
from sink_job.s3 import Conflict
from tests.support.memory_s3 import MemoryS3
from tests.support.memory_sink import MemorySinkFixture, error_of
from tests.support.store_faults import FIRST, LOG, Once, fail, pending
from tests.support.synthetic_log import FileConsumerGroup, InlineEngine

NEW_LEDGER = StopCondition(until_caught_up=True, publish_open=True, start_new_ledger=True)


@pytest.fixture
def sink_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemorySinkFixture:
    return MemorySinkFixture(tmp_path, monkeypatch)


# -- a failure of a fenced driver ------------------------------------------------------------------------------------


def gone_from_kafka(engine: InlineEngine, group: FileConsumerGroup) -> None:
    engine.log = group.log = replace(LOG, starts_at=12)


def test_a_fenced_driver_does_not_report_data_loss_of_what_the_other_one_has_published(
    sink_fixture: MemorySinkFixture,
) -> None:
    engine, group = InlineEngine(LOG), FileConsumerGroup(LOG, sink_fixture.group)

    def meanwhile(key: str) -> None:
        sink_fixture.run(LOG)
        sink_fixture.s3.delete([FIRST])
        gone_from_kafka(engine, group)

    with sink_fixture.faults(Once("complete", FIRST, meanwhile)):
        error = error_of(lambda: sink_fixture.run(LOG, engine=engine, admin=group))
    assert isinstance(error, LedgerFenced)
    assert isinstance(error.__cause__, DataLoss)


def test_a_failure_is_reported_as_it_is_where_the_store_does_not_say_who_owns_the_ledger(
    sink_fixture: MemorySinkFixture,
) -> None:
    engine, group = InlineEngine(LOG), FileConsumerGroup(LOG, sink_fixture.group)

    def meanwhile(key: str) -> None:
        sink_fixture.run(LOG)
        sink_fixture.s3.delete([FIRST])
        gone_from_kafka(engine, group)
        sink_fixture.s3.fault = fail("list", "/ledger/", TransientError)

    with sink_fixture.faults(Once("complete", FIRST, meanwhile)):
        error = error_of(lambda: sink_fixture.run(LOG, engine=engine, admin=group))
    assert isinstance(error, DataLoss)


def test_a_failure_of_the_owner_is_reported_as_it_is(sink_fixture: MemorySinkFixture) -> None:
    sink_fixture.s3.put(FIRST, b"of another program")
    assert isinstance(error_of(lambda: sink_fixture.run(LOG, goal=NEW_LEDGER)), ObjectConflict)


def test_a_fenced_discard_does_not_report_as_lost_what_the_driver_has_published(
    sink_fixture: MemorySinkFixture,
) -> None:
    pending(sink_fixture)

    def meanwhile(key: str) -> None:
        sink_fixture.run(LOG)
        sink_fixture.s3.delete([FIRST])

    with sink_fixture.faults(Once("complete", FIRST, meanwhile)):
        assert isinstance(error_of(lambda: discard_open(sink_fixture.ledger_access())), LedgerFenced)


def test_a_fenced_reset_does_not_report_as_lost_what_the_driver_has_published(sink_fixture: MemorySinkFixture) -> None:
    pending(sink_fixture)
    request = OffsetResetSpec.model_validate({"nonce": "n", "to": "Earliest", "onExisting": "NewPrefix"})

    def meanwhile(key: str) -> None:
        sink_fixture.run(LOG)
        sink_fixture.s3.delete([FIRST])

    resetter = OffsetResetter(
        sink_fixture.sink, sink_fixture.ledger_access(), FileConsumerGroup(LOG, sink_fixture.group), request
    )
    with sink_fixture.faults(Once("complete", FIRST, meanwhile)):
        assert isinstance(error_of(resetter.run), LedgerFenced)


# -- a 409 that persists ---------------------------------------------------------------------------------------------


def test_a_conflict_over_the_place_of_another_sink_is_rejected() -> None:
    store = MemoryS3()
    s3: Any = store
    claim_ledger(s3, "sink/", Owner("c", "n", "one", "id"))
    store.fault = fail("put", "owner.json", Conflict)
    with pytest.raises(OwnershipConflict, match="belongs to S3Sink n/one"):
        claim_ledger(s3, "sink/", Owner("c", "n", "other", "id"))
