"""Registrations in a table that other programs have rolled back, restored, replaced, or changed the position of."""

from __future__ import annotations

import pytest
from pyiceberg.table.update import SetPropertiesUpdate

from sink_job.api.errors import (
    TableNotRegistered,
    TablePositionLower,
    TablePositionMissing,
    TableReplaced,
    TableRolledBack,
    TransientError,
)
from sink_job.tables.catalogs import CommitUnknown
from sink_job.tables.plan import Acceptance
from sink_job.tables.position import as_text, position_in, position_property
from tests.support.table_sink import NAME, SINK_ID, TableSink
from tests.unit.tables.test_registration import CONTINUE, accepting, error_of, expect_once

PROPERTY = position_property(SINK_ID)


def roll_back(sink: TableSink, to: int = 0) -> None:
    """Another program moves the table to its first snapshot, or another one of its history."""
    table = sink.table()
    with table.manage_snapshots() as snapshots:
        snapshots.set_current_snapshot(table.history()[to].snapshot_id)


def test_a_rolled_back_table_stops_until_the_user_accepts_it(twice_registered: TableSink) -> None:
    sink = twice_registered
    roll_back(sink)
    assert isinstance(error_of(lambda: sink.register(CONTINUE)), TableRolledBack)
    lost = set(sink.objects()[2:4])
    sink.register(accepting(Acceptance.ROLLED_BACK))
    assert sink.files() == [key for key in sink.objects() if key not in lost]
    assert sink.register(CONTINUE).objects == 0


@pytest.mark.parametrize("rolls_back", [False, True])
def test_a_rollback_behind_a_snapshot_that_a_tag_keeps_stops(table_sink: TableSink, rolls_back: bool) -> None:
    """The snapshot between the position and the head expires, which may be before or after that of the position."""

    def commit() -> None:
        with table_sink.table().transaction() as transaction, transaction.update_snapshot().fast_append():
            pass

    table_sink.write(20)
    table_sink.register()
    commit()
    table_sink.write(40)
    table_sink.register()
    tagged = table_sink.table().metadata.current_snapshot_id
    assert tagged is not None
    with table_sink.table().manage_snapshots() as snapshots:
        snapshots.create_tag(tagged, "nightly")
    if rolls_back:
        roll_back(table_sink, to=1)
    else:
        commit()
    between = table_sink.table().metadata.current_snapshot_id
    assert between is not None
    commit()
    table_sink.table().maintenance.expire_snapshots().by_ids([between]).commit()
    table_sink.write(60)
    if rolls_back:
        assert isinstance(error_of(lambda: table_sink.register(CONTINUE)), TableRolledBack)
    else:
        table_sink.register(CONTINUE)
        expect_once(table_sink)


def test_an_accepted_rollback_without_new_objects_is_remembered(table_sink: TableSink) -> None:
    for records in (20, 40):
        table_sink.write(records)
        table_sink.register()
    roll_back(table_sink)
    assert table_sink.register(accepting(Acceptance.ROLLED_BACK)).objects == 0
    assert table_sink.register(CONTINUE).objects == 0


def test_a_second_rollback_stops_after_the_first_one_was_accepted(table_sink: TableSink) -> None:
    for records in (20, 40, 60):
        table_sink.write(records)
        table_sink.register()
    roll_back(table_sink, to=1)
    table_sink.register(accepting(Acceptance.ROLLED_BACK))
    roll_back(table_sink)
    assert isinstance(error_of(lambda: table_sink.register(CONTINUE)), TableRolledBack)
    table_sink.register(accepting(Acceptance.ROLLED_BACK))
    assert table_sink.register(CONTINUE).objects == 0


def test_a_delayed_commit_after_a_rollback_has_no_effect(table_sink: TableSink) -> None:
    """It requires the snapshot to which the table was rolled back, and has a sequence number that was used."""
    table_sink.write(20)
    table_sink.register()
    table_sink.write(40)
    table_sink.catalog.holds = True
    error_of(table_sink.register)
    table_sink.catalog.holds = False
    table_sink.register()
    roll_back(table_sink)
    with pytest.raises(CommitUnknown, match="older than last sequence number"):
        table_sink.catalog.held[0]()
    assert isinstance(error_of(lambda: table_sink.register(CONTINUE)), TableRolledBack)


def test_a_table_that_was_restored_to_an_older_state_stops_until_the_user_accepts_it(table_sink: TableSink) -> None:
    table_sink.write(20)
    table_sink.register()
    older = table_sink.table().metadata_location
    table_sink.write(40)
    table_sink.register()
    table_sink.iceberg.drop_table(NAME)
    table_sink.iceberg.register_table(NAME, older)
    assert isinstance(error_of(lambda: table_sink.register(CONTINUE)), TablePositionLower)
    table_sink.register(accepting(Acceptance.POSITION_LOWER))
    expect_once(table_sink)


def test_another_table_of_the_name_stops_until_the_user_accepts_it(twice_registered: TableSink) -> None:
    sink = twice_registered
    sink.iceberg.drop_table(NAME)
    error = error_of(sink.register)
    assert isinstance(error, TableReplaced)
    assert "does not exist any more" in str(error)
    sink.register(accepting(Acceptance.REPLACED, from_beginning=True))
    expect_once(sink)

    schema = sink.table().schema()
    sink.iceberg.drop_table(NAME)
    sink.iceberg.create_table(NAME, schema=schema)
    assert isinstance(error_of(sink.register), TableReplaced)
    assert isinstance(error_of(lambda: sink.register(accepting(Acceptance.REPLACED))), TableNotRegistered)
    sink.register(accepting(Acceptance.REPLACED, from_beginning=True))
    expect_once(sink)


def test_a_table_that_lost_its_position_stops_until_the_user_accepts_it(twice_registered: TableSink) -> None:
    sink = twice_registered
    with sink.table().transaction() as transaction:
        transaction.remove_properties(PROPERTY)
    assert isinstance(error_of(sink.register), TablePositionMissing)
    sink.register(accepting(Acceptance.POSITION_MISSING))
    expect_once(sink)


def test_a_position_that_was_lost_before_it_was_remembered_is_in_the_history(table_sink: TableSink) -> None:
    table_sink.write(20)
    with table_sink.killed_at(5):  # after the commit, before the memory is written
        table_sink.register()
    assert table_sink.memory() is None
    with table_sink.table().transaction() as transaction:
        transaction.remove_properties(PROPERTY)
    table_sink.write(40)
    assert isinstance(error_of(table_sink.register), TablePositionMissing)
    table_sink.register(accepting(Acceptance.POSITION_MISSING))
    expect_once(table_sink)


def test_an_older_value_of_the_property_stops_although_nothing_was_remembered(table_sink: TableSink) -> None:
    table_sink.write(20)
    table_sink.register()
    older = table_sink.table().properties[PROPERTY]
    table_sink.write(40)
    with table_sink.killed_at(5):
        table_sink.register()
    newer = table_sink.table().properties[PROPERTY]
    table_sink.iceberg.commit_table(table_sink.table(), (), (SetPropertiesUpdate(updates={PROPERTY: older}),))
    table_sink.write(60)
    error = error_of(lambda: table_sink.register(accepting(*Acceptance)))
    assert isinstance(error, TablePositionLower)
    assert str(error).endswith(f"Set it to {newer}")
    table_sink.iceberg.commit_table(table_sink.table(), (), (SetPropertiesUpdate(updates={PROPERTY: newer}),))
    table_sink.register(CONTINUE)
    expect_once(table_sink)


def test_a_position_of_another_ledger_stops_the_registration(twice_registered: TableSink) -> None:
    sink = twice_registered
    position = position_in(sink.table().properties, SINK_ID)
    assert position is not None
    other = type(position)("another", position.generation, position.record, position.snapshot)
    table = sink.table()
    sink.iceberg.commit_table(table, (), (SetPropertiesUpdate(updates={PROPERTY: as_text(other)}),))
    assert "another sink has the same sinkId" in str(error_of(sink.register))


def test_a_ledger_that_was_restored_and_has_grown_since_stops_the_registration(table_sink: TableSink) -> None:
    """Its next records have the numbers of those that were lost, and its objects may have their keys."""
    table_sink.write(20)
    older = dict(table_sink.s3.objects)
    table_sink.write(40)
    outcome = table_sink.register()
    table_sink.s3.objects.clear()
    table_sink.s3.objects.update(older)
    error = error_of(table_sink.register)
    assert isinstance(error, TransientError)
    assert "the ledger ends at record" in str(error)
    for records in (30, 60):
        table_sink.write(records)
    assert outcome.position is not None
    assert table_sink.registration()._target.ledger.number > outcome.position.record
    assert "the ledger was restored to an older state, and has grown since" in str(error_of(table_sink.register))


def test_a_lost_memory_does_not_matter(twice_registered: TableSink) -> None:
    sink = twice_registered
    del sink.s3.objects[f"{sink.root}tables/{NAME}.json"]
    sink.register(CONTINUE)
    expect_once(sink)


# -- tables that do not fit -------------------------------------------------------------------------------------------
