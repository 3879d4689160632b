"""A registration adds each published object to the table once, whatever happens to processes and commits."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from threading import Barrier, Thread

import pytest
from pyiceberg.table import Table

from sink_job.api.errors import (
    SinkError,
    TableIncompatible,
    TableNotRegistered,
    TransientError,
)
from sink_job.tables import registration
from sink_job.tables.catalogs import CommitUnknown
from sink_job.tables.plan import Acceptance, Request
from sink_job.tables.position import position_in
from sink_job.tables.registration import ATTEMPTS
from tests.support.table_sink import NAME, SINK_ID, TableSink

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
