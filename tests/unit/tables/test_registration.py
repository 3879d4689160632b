"""A registration adds each published object to the table once, whatever happens to processes and commits."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from threading import Barrier, Thread

import pytest
from pyiceberg.table import Table
from pyiceberg.table.update import SetPropertiesUpdate

from sink_job.api.errors import (
    SinkError,
    TableIncompatible,
    TableNotRegistered,
    TablePositionLower,
    TablePositionMissing,
    TableReplaced,
    TableRolledBack,
    TransientError,
)
from sink_job.tables import registration
from sink_job.tables.catalogs import CommitUnknown
from sink_job.tables.plan import Acceptance, Request
from sink_job.tables.position import as_text, position_in, position_property
from sink_job.tables.registration import ATTEMPTS
from tests.support.table_sink import NAME, SINK_ID, TableSink

PROPERTY = position_property(SINK_ID)
CONTINUE = Request()


def accepting(*reasons: Acceptance, from_beginning: bool = False) -> Request:
    return Request(from_beginning, frozenset(reasons))


def error_of(run: Callable[[], object]) -> SinkError:
    with pytest.raises(SinkError) as caught:
        run()
    return caught.value


def expect_once(sink: TableSink) -> None:
    """Each object of the sink is in the table once."""
    assert sink.files() == list(sink.objects())


def roll_back(sink: TableSink, to: int = 0) -> None:
    """Another program moves the table to its first snapshot, or another one of its history."""
    table = sink.table()
    with table.manage_snapshots() as snapshots:
        snapshots.set_current_snapshot(table.history()[to].snapshot_id)


# -- what is added ---------------------------------------------------------------------------------------------------


def test_a_new_table_has_all_objects_and_the_position(table_sink: TableSink) -> None:
    table_sink.write(25)
    outcome = table_sink.register()
    assert (outcome.created, outcome.objects, outcome.records, outcome.commits) == (True, 3, 25, 1)
    expect_once(table_sink)
    table = table_sink.table()
    assert position_in(table.properties, SINK_ID) == outcome.position
    assert outcome.position is not None
    assert outcome.position.snapshot == table.metadata.current_snapshot_id
    assert [(each.field_id, each.name) for each in table.schema().fields] == [
        (1, "partition"),
        (2, "offset"),
        (3, "kind"),
    ]
    assert table.properties["gc.enabled"] == "false"


def test_later_objects_and_their_new_columns_are_added(table_sink: TableSink) -> None:
    table_sink.write(20)
    table_sink.register()
    table_sink.write(45, ids=(2,))
    outcome = table_sink.register(CONTINUE)
    assert (outcome.created, outcome.objects, outcome.columns) == (False, 3, ("seats",))
    expect_once(table_sink)
    assert [each.name for each in table_sink.table().schema().fields] == ["partition", "offset", "kind", "seats"]


def test_nothing_is_committed_while_nothing_is_new(table_sink: TableSink) -> None:
    table_sink.write(20)
    first = table_sink.register()
    before = table_sink.table().metadata_location
    assert (table_sink.register().objects, table_sink.register().position) == (0, first.position)
    assert (table_sink.table().metadata_location, table_sink.catalog.commits) == (before, 1)


def test_a_commit_has_at_most_the_objects_of_the_limit(table_sink: TableSink) -> None:
    for records in (20, 40, 60):
        table_sink.write(records)
    outcome = table_sink.register(limit=1)
    assert (outcome.commits, outcome.objects) == (3, 6)  # each run has acknowledged two objects in one record
    expect_once(table_sink)


def test_a_table_without_a_position_is_registered_from_the_beginning_on_request(table_sink: TableSink) -> None:
    table_sink.write(10)
    error = error_of(lambda: table_sink.register(CONTINUE))
    assert isinstance(error, TableNotRegistered)
    assert "--from-beginning" in str(error)
    assert table_sink.catalog.load(NAME) is None


def test_a_dry_run_writes_nothing(table_sink: TableSink) -> None:
    table_sink.write(25)
    before = {*table_sink.s3.objects, *table_sink.lake.objects}
    outcome = table_sink.register(dry_run=True)
    assert (outcome.objects, outcome.created, outcome.position) == (3, True, None)
    assert {*table_sink.s3.objects, *table_sink.lake.objects} == before
    assert table_sink.catalog.load(NAME) is None


def test_a_missing_object_stops_the_registration_with_its_key(table_sink: TableSink) -> None:
    table_sink.write(20)
    key = table_sink.objects()[1]
    del table_sink.s3.objects[key]
    error = error_of(table_sink.register)
    assert isinstance(error, TableNotRegistered)
    assert f"s3://archive/{key} does not exist any more" in str(error)
    assert table_sink.catalog.load(NAME) is None


@contextmanager
def counted_collections() -> Iterator[list[str]]:
    """Gets an element for each collection of all objects, while Python starts none automatically."""
    found: list[str] = []

    def count(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            found.append(phase)

    gc.disable()
    gc.callbacks.append(count)
    try:
        yield found
    finally:
        gc.callbacks.remove(count)
        gc.enable()


@pytest.mark.parametrize(("limit", "collections"), [({}, 0), ({"LARGE": 2}, 1), ({"LARGE_STATISTICS": 6}, 1)], ids=str)
def test_memory_is_released_after_large_commits_alone(
    table_sink: TableSink, monkeypatch: pytest.MonkeyPatch, limit: dict[str, int], collections: int
) -> None:
    """The first commit has two objects with three columns, the second one has one."""
    for name, value in limit.items():
        monkeypatch.setattr(registration, name, value)
    table_sink.write(20)
    table_sink.write(30)
    with counted_collections() as found:
        assert table_sink.register(limit=1).commits == 2
    assert len(found) == collections


# -- kills and lost replies ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("effect", range(6))
def test_a_registration_that_is_killed_at_any_effect_is_completed_by_the_next_one(
    table_sink: TableSink, effect: int
) -> None:
    table_sink.write(20)
    with table_sink.killed_at(effect):
        table_sink.register()
    table_sink.register()
    expect_once(table_sink)
    table_sink.write(40)
    with table_sink.killed_at(effect):
        table_sink.register()
    table_sink.register(CONTINUE)
    expect_once(table_sink)
    memory = table_sink.memory()
    position = position_in(table_sink.table().properties, SINK_ID)
    assert memory is not None
    assert position is not None
    assert (memory.record, memory.snapshot) == (position.record, position.snapshot)


def test_the_effects_of_a_registration_are_six(table_sink: TableSink) -> None:
    """The test above kills it at each."""
    table_sink.write(20)
    with table_sink.killed_at(6):
        table_sink.register()
    assert table_sink.memory() is not None
    expect_once(table_sink)


def test_a_commit_whose_reply_was_lost_is_not_repeated(table_sink: TableSink) -> None:
    table_sink.write(20)

    def lose() -> None:
        table_sink.catalog.after = lambda: None
        raise CommitUnknown("the reply was lost")

    table_sink.catalog.after = lose
    table_sink.register()
    expect_once(table_sink)
    assert table_sink.catalog.commits == 1
    table_sink.write(40)
    table_sink.catalog.after = lose
    table_sink.register(CONTINUE)
    expect_once(table_sink)


@pytest.mark.parametrize("is_new", [True, False], ids=["new table", "existing table"])
def test_a_commit_that_lands_late_adds_nothing_twice(table_sink: TableSink, is_new: bool) -> None:
    table_sink.write(20)
    if not is_new:
        table_sink.register()
        table_sink.write(40)
    table_sink.catalog.holds = True
    assert isinstance(error_of(table_sink.register), TransientError)
    assert len(table_sink.catalog.held) == ATTEMPTS
    table_sink.catalog.holds = False
    table_sink.register()
    for land in table_sink.catalog.held:
        with pytest.raises(Exception, match=r"CommitRejected|already exists|Requirement failed|updated"):
            land()
    expect_once(table_sink)


def test_of_several_delayed_commits_only_one_takes_effect(table_sink: TableSink) -> None:
    table_sink.write(20)
    table_sink.register()
    table_sink.write(40)
    table_sink.catalog.holds = True
    error_of(table_sink.register)
    table_sink.catalog.holds = False
    for land in table_sink.catalog.held:
        try:
            land()
        except Exception:
            continue
    table_sink.register(CONTINUE)
    expect_once(table_sink)


def test_two_registrations_at_once_add_each_object_once(table_sink: TableSink) -> None:
    for records in (10, 20, 30, 40):
        table_sink.write(records)
    both = Barrier(2)
    waited: list[None] = []

    def meet() -> None:
        if len(waited) < 2:
            waited.append(None)
            both.wait(30)

    table_sink.catalog.before = meet
    threads = [Thread(target=lambda: table_sink.register(limit=1)) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    expect_once(table_sink)


def test_commits_of_other_writers_between_are_kept(table_sink: TableSink) -> None:
    table_sink.write(20)
    table_sink.register()
    table_sink.write(40)
    others: list[Table] = []

    def change() -> None:
        table_sink.catalog.before = lambda: None
        with table_sink.table().transaction() as transaction, transaction.update_snapshot().fast_append():
            pass
        others.append(table_sink.table())

    table_sink.catalog.before = change
    table_sink.register(CONTINUE)
    assert table_sink.catalog.commits == 3
    expect_once(table_sink)
    ids = [each.snapshot_id for each in table_sink.table().history()]
    assert others[0].metadata.current_snapshot_id in ids


def test_expired_snapshots_change_nothing(table_sink: TableSink) -> None:
    for records in (20, 40, 60):
        table_sink.write(records)
        table_sink.register()
    expiry = table_sink.table().maintenance.expire_snapshots().older_than(datetime.now() + timedelta(days=1))
    expiry.commit()
    assert len(table_sink.table().snapshots()) == 1
    table_sink.write(80)
    table_sink.register(CONTINUE)
    expect_once(table_sink)


# -- changes of the table by others ----------------------------------------------------------------------------------


@pytest.fixture
def twice_registered(table_sink: TableSink) -> TableSink:
    """A table with two commits, and objects that are not in it."""
    table_sink.write(20)
    table_sink.register()
    table_sink.write(40)
    table_sink.register()
    table_sink.write(60)
    return table_sink


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


def test_a_table_within_the_prefix_of_the_sink_is_rejected(table_sink: TableSink) -> None:
    table_sink.write(20)
    table_sink.iceberg.create_namespace("lake", {"location": "s3://archive/topics/tables"})
    assert isinstance(error_of(table_sink.register), TableIncompatible)
    assert table_sink.catalog.load(NAME) is None


def test_a_table_with_other_field_ids_is_rejected(table_sink: TableSink) -> None:
    table_sink.write(20)
    table_sink.register()
    schema = table_sink.table().schema().select("kind", "offset")
    table_sink.iceberg.drop_table(NAME)
    table_sink.iceberg.create_table(NAME, schema=schema)
    error = error_of(lambda: table_sink.register(accepting(Acceptance.REPLACED, from_beginning=True)))
    assert isinstance(error, TableIncompatible)
    assert "column" in str(error)


def test_a_table_in_the_folder_of_a_ledger_in_another_bucket_is_rejected(
    table_sink: TableSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    table_sink.write(20)
    monkeypatch.setattr(table_sink.s3, "url_of", lambda key: f"s3://lake/{key}")
    table_sink.iceberg.create_namespace("lake", {"location": f"s3://lake/{table_sink.root}lake"})
    assert isinstance(error_of(table_sink.register), TableIncompatible)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("commit.manifest.min-count-to-merge", "many", "commit.manifest.min-count-to-merge"),
        ("write.metadata.metrics.default", "garbage", "Unsupported metrics mode: garbage"),
    ],
)
def test_a_property_that_pyiceberg_cannot_read_is_named(
    twice_registered: TableSink, name: str, value: str, text: str
) -> None:
    with twice_registered.table().transaction() as transaction:
        transaction.set_properties({name: value})
    twice_registered.write(90)
    error = error_of(twice_registered.register)
    assert isinstance(error, TableIncompatible)
    assert text in str(error)
