"""Tables that are continued in new ones have each object once, whatever happens to processes and commits."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pyiceberg.table.update import SetPropertiesUpdate

from sink_job.api.enums import OutputFormat
from sink_job.api.errors import SinkError, TableIncompatible, TableNotRegistered, TableReplaced, TransientError
from sink_job.tables.catalogs import CommitRejected, CommitUnknown
from sink_job.tables.plan import Request
from sink_job.tables.position import position_in
from sink_job.tables.registration import ATTEMPTS
from sink_job.tables.successors.chain import last_memory
from sink_job.tables.successors.continuation import (
    MAX_TABLES,
    Successors,
    continuation_in,
    continued_property,
    predecessor_in,
)
from tests.support.chain_sink import NUMBER, TEXT, ChainSink, typed_log
from tests.support.table_sink import NAME, SINK_ID

CONTINUE = Request()
STOPPING = Successors(base=NAME)


def error_of(sink: ChainSink, request: Request = CONTINUE) -> SinkError:
    with pytest.raises(SinkError) as caught:
        sink.register(request)
    return caught.value


def expect_once(sink: ChainSink) -> None:
    """Each object of the sink is in one table, once."""
    assert sink.all_files() == list(sink.objects())


def write_change(sink: ChainSink) -> None:
    """Twenty records of the first schema, then twenty whose field has another type."""
    sink.write_log(typed_log((20, (TEXT,))))
    sink.write_log(typed_log((20, (TEXT,)), (40, (NUMBER,))))


# -- columns that do not fit -----------------------------------------------------------------------------------------


def test_objects_that_do_not_fit_are_in_a_new_table(chain_sink: ChainSink) -> None:
    write_change(chain_sink)
    outcome = chain_sink.register()
    assert (outcome.table, outcome.objects, outcome.records) == ("lake.log_2", 4, 40)
    assert chain_sink.tables() == ["lake.log", "lake.log_2"]
    assert [len(chain_sink.files_of(number)) for number in (1, 2)] == [2, 2]
    assert [chain_sink.types_of(number) for number in (1, 2)] == ["string", "long"]
    expect_once(chain_sink)


def test_the_tables_name_each_other(chain_sink: ChainSink) -> None:
    write_change(chain_sink)
    chain_sink.register()
    first, second = (chain_sink.catalog.load(name) for name in ("lake.log", "lake.log_2"))
    assert first is not None
    assert second is not None
    left, before = continuation_in(first.properties, SINK_ID), predecessor_in(second.properties, SINK_ID)
    assert left is not None
    assert before is not None
    assert (left.table, before.table, before.uuid) == ("lake.log_2", "lake.log", str(first.metadata.table_uuid))
    position = position_in(first.properties, SINK_ID)
    assert position is not None
    assert position.record == left.record
    assert position.snapshot == first.metadata.current_snapshot_id


def test_later_objects_are_in_the_new_table_and_the_old_one_is_not_loaded_again(chain_sink: ChainSink) -> None:
    write_change(chain_sink)
    chain_sink.register()
    first = chain_sink.table().metadata_location
    chain_sink.write_log(typed_log((20, (TEXT,)), (60, (NUMBER,))))
    assert chain_sink.register(CONTINUE).table == "lake.log_2"
    expect_once(chain_sink)
    assert chain_sink.table().metadata_location == first
    chain_sink.iceberg.drop_table(NAME)
    chain_sink.write_log(typed_log((20, (TEXT,)), (80, (NUMBER,))))
    assert chain_sink.register(CONTINUE).objects == 2


def test_a_table_without_new_objects_that_fit_is_left_by_a_snapshot_without_files(chain_sink: ChainSink) -> None:
    chain_sink.write_log(typed_log((20, (TEXT,))))
    chain_sink.register()
    before = chain_sink.table()
    chain_sink.write_log(typed_log((20, (TEXT,)), (40, (NUMBER,))))
    chain_sink.register(CONTINUE)
    after = chain_sink.table()
    assert after.metadata.current_snapshot_id != before.metadata.current_snapshot_id
    assert len(chain_sink.files_of(1)) == 2
    expect_once(chain_sink)


def test_objects_of_one_record_are_divided_by_what_fits(chain_sink: ChainSink) -> None:
    chain_sink.separate()
    chain_sink.write_log(typed_log((20, (TEXT,))))
    chain_sink.write_log(typed_log((20, (TEXT,)), (40, (TEXT, NUMBER))))
    assert chain_sink.register().table == "lake.log_2"
    left = continuation_in(chain_sink.table().properties, SINK_ID)
    assert left is not None
    assert left.done not in ("", "0")
    assert [len(chain_sink.files_of(number)) for number in (1, 2)] == [4, 2]
    expect_once(chain_sink)


def test_a_new_table_whose_first_record_has_both_is_left_by_the_commit_that_creates_it(chain_sink: ChainSink) -> None:
    chain_sink.separate()
    chain_sink.write_log(typed_log((20, (TEXT, NUMBER))))
    outcome = chain_sink.register()
    assert (outcome.table, outcome.commits) == ("lake.log_2", 2)
    assert sorted(chain_sink.types_of(number) for number in (1, 2)) == ["long", "string"]
    expect_once(chain_sink)


def test_two_schemas_by_turns_stop_at_the_last_name(chain_sink: ChainSink) -> None:
    turns = tuple((20 * turn, (TEXT if turn % 2 else NUMBER,)) for turn in range(1, MAX_TABLES + 2))
    for number in range(MAX_TABLES):
        chain_sink.write_log(typed_log(*turns[: number + 1]))
        chain_sink.register()
    chain_sink.write_log(typed_log(*turns))
    assert len(chain_sink.tables()) == MAX_TABLES
    assert isinstance(error_of(chain_sink), TableIncompatible)
    files = chain_sink.all_files()
    assert len(files) == len(set(files)) == 2 * MAX_TABLES


def test_without_the_setting_the_table_stops(chain_sink: ChainSink) -> None:
    chain_sink.successors = STOPPING
    write_change(chain_sink)
    assert isinstance(error_of(chain_sink, Request(from_beginning=True)), TableIncompatible)
    assert chain_sink.tables() == []


def test_a_table_that_was_left_is_continued_with_the_setting_stop_too(chain_sink: ChainSink) -> None:
    write_change(chain_sink)
    chain_sink.register()
    chain_sink.successors = STOPPING
    chain_sink.write_log(typed_log((20, (TEXT,)), (60, (NUMBER,))))
    assert chain_sink.register(CONTINUE).table == "lake.log_2"
    expect_once(chain_sink)


def test_a_dry_run_shows_the_commit_that_leaves_a_table(chain_sink: ChainSink) -> None:
    write_change(chain_sink)
    outcome = chain_sink.register(dry_run=True)
    assert (outcome.table, outcome.objects) == (NAME, 2)
    assert outcome.continued is not None
    assert outcome.continued.table == "lake.log_2"
    assert chain_sink.tables() == []


# -- offset resets ---------------------------------------------------------------------------------------------------


def test_objects_after_a_reset_are_in_a_new_table_and_those_before_it_in_the_old_one(chain_sink: ChainSink) -> None:
    log = typed_log((20, (TEXT,)))
    chain_sink.write_log(log)
    chain_sink.register()
    longer = typed_log((40, (TEXT,)))
    chain_sink.write_log(longer)  # not registered before the reset
    chain_sink.reset(longer)
    chain_sink.write_log(longer)
    assert chain_sink.register(CONTINUE).table == "lake.log_2"
    before, after = chain_sink.generations()
    assert chain_sink.files_of(1) == before
    assert chain_sink.files_of(2) == after


def test_a_table_is_left_after_a_reset_when_the_first_object_is_published(chain_sink: ChainSink) -> None:
    log = typed_log((20, (TEXT,)))
    chain_sink.write_log(log)
    chain_sink.register()
    chain_sink.reset(log)
    assert chain_sink.register(CONTINUE).table == NAME
    chain_sink.reset(log)
    chain_sink.write_log(log)
    assert chain_sink.register(CONTINUE).table == "lake.log_2"
    assert len(chain_sink.files_of(2)) == 2


def test_each_generation_has_a_table(chain_sink: ChainSink) -> None:
    log = typed_log((20, (TEXT,)))
    chain_sink.write_log(log)
    chain_sink.register()
    for _ in range(2):
        chain_sink.reset(log)
        chain_sink.write_log(log)
    assert chain_sink.register(CONTINUE).table == "lake.log_3"
    expect_once(chain_sink)
    assert [len(chain_sink.files_of(number)) for number in (1, 2, 3)] == [2, 2, 2]


def test_a_new_table_begins_after_the_last_reset(chain_sink: ChainSink) -> None:
    log = typed_log((20, (TEXT,)))
    chain_sink.write_log(log)
    chain_sink.reset(log)
    chain_sink.write_log(log)
    chain_sink.register()
    assert chain_sink.tables() == [NAME]
    assert chain_sink.files_of(1) == chain_sink.generations()[1]


def test_without_the_setting_a_reset_stops_the_table(chain_sink: ChainSink) -> None:
    chain_sink.successors = replace(STOPPING, on_incompatible=True)
    log = typed_log((20, (TEXT,)))
    chain_sink.write_log(log)
    chain_sink.register()
    chain_sink.reset(log)
    chain_sink.write_log(log)
    error = error_of(chain_sink)
    assert type(error) is TableNotRegistered
    assert "is an offset reset into a directory of its own" in str(error)


def test_an_object_before_a_reset_that_is_gone_stops_the_table(chain_sink: ChainSink) -> None:
    log = typed_log((20, (TEXT,)))
    chain_sink.write_log(log)
    chain_sink.register()
    longer = typed_log((40, (TEXT,)))
    chain_sink.write_log(longer)
    chain_sink.reset(longer)
    chain_sink.write_log(longer)
    key = chain_sink.generations()[0][-1]
    del chain_sink.s3.objects[key]
    assert f"{key} does not exist any more" in str(error_of(chain_sink))
    assert chain_sink.tables() == [NAME]


# -- kills, lost replies and other registrations -----------------------------------------------------------------------


@pytest.mark.parametrize("effect", range(14))
def test_a_registration_that_leaves_a_table_is_completed_after_a_kill_at_any_effect(
    chain_sink: ChainSink, effect: int
) -> None:
    chain_sink.separate()
    chain_sink.write_log(typed_log((20, (TEXT,))))
    chain_sink.write_log(typed_log((20, (TEXT,)), (40, (TEXT, NUMBER))))
    with chain_sink.killed_at(effect):
        chain_sink.register()
    chain_sink.register()
    expect_once(chain_sink)
    log = typed_log((20, (TEXT,)), (40, (TEXT, NUMBER)), (60, (NUMBER,)))
    chain_sink.reset(log)
    chain_sink.write_log(log)
    with chain_sink.killed_at(effect):
        chain_sink.register(CONTINUE)
    chain_sink.register(CONTINUE)
    expect_once(chain_sink)
    assert len(chain_sink.tables()) >= 3


def test_a_kill_beyond_the_last_effect_does_nothing(chain_sink: ChainSink) -> None:
    """The test above kills at each."""
    write_change(chain_sink)
    with chain_sink.killed_at(14):
        chain_sink.register()
    assert chain_sink.memory_of(2) is not None
    expect_once(chain_sink)


def test_a_delayed_commit_of_another_registration_cannot_land_in_a_table_that_was_left(chain_sink: ChainSink) -> None:
    chain_sink.write_log(typed_log((20, (TEXT,))))
    chain_sink.register()
    log = typed_log((20, (TEXT,)), (40, (NUMBER,)))
    chain_sink.write_log(log)
    chain_sink.catalog.holds = True
    assert isinstance(error_of(chain_sink), TransientError)
    assert len(chain_sink.catalog.held) == ATTEMPTS
    chain_sink.catalog.holds = False
    chain_sink.register(CONTINUE)
    for land in chain_sink.catalog.held:
        with pytest.raises((CommitRejected, CommitUnknown)):
            land()
    expect_once(chain_sink)


@pytest.mark.parametrize("number", [1, 2])
def test_a_lost_reply_is_not_repeated(chain_sink: ChainSink, number: int) -> None:
    chain_sink.write_log(typed_log((20, (TEXT,))))
    chain_sink.register()
    chain_sink.write_log(typed_log((20, (TEXT,)), (40, (NUMBER,))))
    seen = chain_sink.catalog.commits

    def lose() -> None:
        if chain_sink.catalog.commits == seen + number:
            raise CommitUnknown("the reply was lost")

    chain_sink.catalog.after = lose
    chain_sink.register(CONTINUE)
    assert chain_sink.catalog.commits == seen + 2
    expect_once(chain_sink)


def test_a_commit_of_another_program_between_is_kept(chain_sink: ChainSink) -> None:
    chain_sink.write_log(typed_log((20, (TEXT,))))
    chain_sink.register()
    chain_sink.write_log(typed_log((20, (TEXT,)), (40, (NUMBER,))))

    def change() -> None:
        chain_sink.catalog.before = lambda: None
        with chain_sink.table().transaction() as transaction, transaction.update_snapshot().fast_append():
            pass

    chain_sink.catalog.before = change
    chain_sink.register(CONTINUE)
    expect_once(chain_sink)


# -- changes of the tables by others ---------------------------------------------------------------------------------


def test_a_successor_that_was_dropped_is_not_created_again(chain_sink: ChainSink) -> None:
    write_change(chain_sink)
    chain_sink.register()
    chain_sink.iceberg.drop_table("lake.log_2")
    chain_sink.write_log(typed_log((20, (TEXT,)), (60, (NUMBER,))))
    assert isinstance(error_of(chain_sink), TableReplaced)
    assert chain_sink.tables() == [NAME]


def test_a_table_of_others_with_the_name_of_the_successor_is_not_used(chain_sink: ChainSink) -> None:
    write_change(chain_sink)
    chain_sink.iceberg.create_namespace_if_not_exists("lake")
    schema = chain_sink.catalog.inner.stage("lake.other", {}).schema()
    chain_sink.iceberg.create_table("lake.log_2", schema=schema)
    error = error_of(chain_sink, Request(from_beginning=True))
    assert type(error) is TableNotRegistered
    assert "table lake.log_2 exists" in str(error)
    assert chain_sink.files_of(2) == []
    found = chain_sink.catalog.load(NAME)
    assert found is None or continued_property(SINK_ID) not in found.properties


def test_a_successor_of_another_table_is_not_used(chain_sink: ChainSink) -> None:
    write_change(chain_sink)
    chain_sink.register()
    for name in (NAME, "lake.log_2"):
        key = f"{chain_sink.root}tables/{name}.json"
        del chain_sink.s3.objects[key]
    chain_sink.iceberg.drop_table(NAME)
    error = error_of(chain_sink, Request(from_beginning=True))
    assert type(error) is TableNotRegistered
    assert "table lake.log_2 exists" in str(error)


def test_the_first_table_is_not_one_that_continues_another(chain_sink: ChainSink) -> None:
    write_change(chain_sink)
    chain_sink.register()
    chain_sink.iceberg.drop_table(NAME)
    chain_sink.iceberg.rename_table("lake.log_2", NAME)
    for name in (NAME, "lake.log_2"):
        del chain_sink.s3.objects[f"{chain_sink.root}tables/{name}.json"]
    assert "the table continues lake.log" in str(error_of(chain_sink))


def test_a_continuation_that_no_registration_has_written_stops(chain_sink: ChainSink) -> None:
    chain_sink.write_log(typed_log((20, (TEXT,))))
    chain_sink.register()
    update = SetPropertiesUpdate(updates={continued_property(SINK_ID): "lake.log_2"})
    chain_sink.iceberg.commit_table(chain_sink.table(), (), (update,))
    assert "is not one that s3sink register has written" in str(error_of(chain_sink))


def test_a_table_with_required_columns_is_not_left(chain_sink: ChainSink) -> None:
    chain_sink.write_log(typed_log((20, (TEXT,))))
    chain_sink.register()
    with chain_sink.table().update_schema(allow_incompatible_changes=True) as update:
        update.update_column("kind", required=True)
    chain_sink.write_log(typed_log((20, (TEXT,)), (40, (NUMBER,))))
    assert "requires values of the column kind" in str(error_of(chain_sink))
    assert chain_sink.tables() == [NAME]


def test_expired_snapshots_of_a_table_that_was_left_change_nothing(chain_sink: ChainSink) -> None:
    write_change(chain_sink)
    chain_sink.register()
    for name in chain_sink.tables():
        table = chain_sink.catalog.load(name)
        assert table is not None
        table.maintenance.expire_snapshots().older_than(datetime.now(UTC)).commit()
    chain_sink.write_log(typed_log((20, (TEXT,)), (60, (NUMBER,))))
    del chain_sink.s3.objects[f"{chain_sink.root}tables/{NAME}.json"]
    assert chain_sink.register(CONTINUE).table == "lake.log_2"
    expect_once(chain_sink)


def test_avro_objects_whose_columns_do_not_fit_are_in_a_new_table(chain_sink: ChainSink) -> None:
    chain_sink.format = {"converter": "ConnectJson", "output": "Avro"}
    chain_sink.partition_by(type="Default")
    for log in (typed_log((20, (TEXT,))), typed_log((20, (TEXT,)), (40, (NUMBER,)))):
        chain_sink.write_log(replace(log, output=OutputFormat.AVRO))
        outcome = chain_sink.register()
    assert outcome.table == "lake.log_2"
    assert [chain_sink.types_of(number) for number in (1, 2)] == ["string", "long"]
    expect_once(chain_sink)


def test_memories_lead_to_the_last_table(chain_sink: ChainSink) -> None:
    s3: Any = chain_sink.s3
    assert last_memory(s3, chain_sink.root, NAME) == (NAME, None)
    write_change(chain_sink)
    chain_sink.register()
    assert last_memory(s3, chain_sink.root, NAME) == ("lake.log_2", chain_sink.memory_of(2))
    del chain_sink.s3.objects[f"{chain_sink.root}tables/lake.log_2.json"]
    assert last_memory(s3, chain_sink.root, NAME) == ("lake.log_2", chain_sink.memory_of(1))


def test_a_ledger_that_was_restored_and_has_grown_since_makes_no_successor(chain_sink: ChainSink) -> None:
    """The table was left, and its successor does not exist yet: it would begin in another ledger."""
    chain_sink.write_log(typed_log((20, (TEXT,))))
    older = dict(chain_sink.s3.objects)
    chain_sink.write_log(typed_log((20, (TEXT,)), (40, (NUMBER,))))
    chain_sink.register()
    memories = {key: value for key, value in chain_sink.s3.objects.items() if key.endswith(f"tables/{NAME}.json")}
    chain_sink.iceberg.drop_table("lake.log_2")
    chain_sink.s3.objects.clear()
    chain_sink.s3.objects.update({**older, **memories})
    for records in (25, 30, 45, 60, 75):
        chain_sink.write_log(typed_log((20, (TEXT,)), (records, (NUMBER,))))
    assert "the ledger was restored to an older state, and has grown since" in str(error_of(chain_sink))
    assert chain_sink.tables() == [NAME]
