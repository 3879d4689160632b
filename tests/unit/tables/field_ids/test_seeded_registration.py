"""A table that existed before the sink and gave it its field ids: it gets all objects, without a command."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, LongType, NestedField, StringType

from sink_job.api.enums import OutputFormat
from sink_job.api.errors import SinkError, TableIncompatible, TableNotRegistered, TablePositionMissing
from sink_job.tables.plan import Request
from sink_job.tables.position import position_property
from tests.support.table_sink import NAME, SINK_ID, Killed, TableSink

AUTOMATIC = Request(creates=True)
COLUMNS: tuple[tuple[str, IcebergType], ...] = (("kind", StringType()), ("extra", LongType()), ("offset", LongType()))


def create(sink: TableSink, *columns: tuple[str, IcebergType], required: str = "") -> None:
    """Another program creates the table, and drops a column."""
    fields = [NestedField(n, name, kind, required=name == required) for n, (name, kind) in enumerate(columns, 1)]
    sink.iceberg.create_namespace_if_not_exists("lake")
    last = NestedField(len(fields) + 1, "dropped", LongType(), required=False)
    table = sink.iceberg.create_table(NAME, Schema(*fields, last))
    with table.update_schema() as update:
        update.delete_column("dropped")


def error_of(sink: TableSink) -> SinkError:
    with pytest.raises(SinkError) as caught:
        sink.register(AUTOMATIC)
    return caught.value


def expect_once(sink: TableSink) -> None:
    assert sink.files() == [*sink.objects()]


def test_a_table_of_another_program_gets_the_objects_of_a_new_sink_without_a_command(table_sink: TableSink) -> None:
    create(table_sink, *COLUMNS)
    table_sink.take_ids()
    table_sink.write(25, ids=(1, 2))
    assert table_sink.register(AUTOMATIC).records == 25
    assert {each.name: each.field_id for each in table_sink.table().schema().fields} == {
        "kind": 1,
        "extra": 2,
        "offset": 3,
        "partition": 5,
        "seats": 6,
    }
    table_sink.write(45, ids=(1, 2))
    assert table_sink.register(AUTOMATIC).records == 20
    expect_once(table_sink)


def test_a_sink_with_objects_needs_the_command_and_has_other_ids(table_sink: TableSink) -> None:
    table_sink.write(20)
    create(table_sink, *COLUMNS)
    table_sink.take_ids()
    assert "--from-beginning" in str(error_of(table_sink))
    with pytest.raises(TableIncompatible):
        table_sink.register()


def test_a_topic_with_avro_objects_before_its_field_ids_needs_the_command(table_sink: TableSink) -> None:
    """They may be in the table already, without a position that anyone knows."""
    table_sink.write_as(OutputFormat.AVRO, 20, 1)
    create(table_sink, *COLUMNS)
    table_sink.take_ids()
    table_sink.write_as(OutputFormat.PARQUET, 40, 1)
    assert "--from-beginning" in str(error_of(table_sink))
    table_sink.register()
    expect_once(table_sink)


def test_a_table_that_was_created_again_needs_the_command(table_sink: TableSink) -> None:
    create(table_sink, *COLUMNS)
    table_sink.take_ids()
    table_sink.write(20)
    table_sink.iceberg.drop_table(NAME)
    create(table_sink, *COLUMNS)
    assert type(error_of(table_sink)) is TableNotRegistered
    table_sink.register()
    expect_once(table_sink)


def test_a_table_that_was_dropped_is_created_with_its_ids(table_sink: TableSink) -> None:
    create(table_sink, *COLUMNS)
    table_sink.take_ids()
    table_sink.write(20)
    table_sink.iceberg.drop_table(NAME)
    table_sink.register(AUTOMATIC)
    assert {each.name: each.field_id for each in table_sink.table().schema().fields} == {
        "partition": 5,
        "offset": 3,
        "kind": 1,
    }


@pytest.mark.parametrize(
    ("columns", "required", "reason"),
    [
        ((("kind", LongType()),), "", "it has the type string, and the table has long"),
        ((("KIND", StringType()),), "", "the table has the column KIND, and engines do not distinguish case"),
        ((("kind", StringType()),), "kind", "the table requires values of the column kind"),
    ],
)
def test_a_table_that_does_not_fit_stops_the_registration(
    table_sink: TableSink, columns: Any, required: str, reason: str
) -> None:
    create(table_sink, *columns, required=required)
    table_sink.take_ids()
    table_sink.write(20)
    error = error_of(table_sink)
    assert isinstance(error, TableIncompatible)
    assert reason in str(error)


def test_a_table_that_became_fitting_gets_the_objects(table_sink: TableSink) -> None:
    create(table_sink, ("kind", StringType()), required="kind")
    table_sink.take_ids()
    table_sink.write(20)
    error_of(table_sink)
    with table_sink.table().update_schema() as update:
        update.make_column_optional("kind")
    table_sink.register(AUTOMATIC)
    expect_once(table_sink)


@pytest.mark.parametrize("effect", range(6))
def test_a_first_registration_that_is_killed_is_completed_by_the_next_one(table_sink: TableSink, effect: int) -> None:
    create(table_sink, *COLUMNS)
    table_sink.take_ids()
    table_sink.write(20)
    with table_sink.killed_at(effect):
        table_sink.register(AUTOMATIC)
    table_sink.register(AUTOMATIC)
    expect_once(table_sink)


def test_a_first_commit_that_lands_late_adds_nothing_twice(table_sink: TableSink) -> None:
    create(table_sink, *COLUMNS)
    table_sink.take_ids()
    table_sink.write(20)
    table_sink.catalog.holds = True
    error_of(table_sink)
    table_sink.catalog.holds = False
    table_sink.register(AUTOMATIC)
    for late in table_sink.catalog.held:
        with pytest.raises(Exception, match=r".*"):
            late()
    expect_once(table_sink)


@pytest.mark.parametrize("expires", [False, True])
def test_a_lost_position_never_adds_objects_twice(table_sink: TableSink, expires: bool) -> None:
    """The first registration ends before it remembers the table; then another program removes the position."""
    create(table_sink, *COLUMNS)
    table_sink.take_ids()
    table_sink.write(20)
    table_sink.s3.fault = _killed_before_it_remembers
    with pytest.raises(Killed):
        table_sink.register(AUTOMATIC)
    table_sink.s3.fault = lambda call, key: None
    assert table_sink.memory() is None
    expect_once(table_sink)
    with table_sink.table().transaction() as transaction:
        transaction.remove_properties(position_property(SINK_ID))
    if expires:
        with table_sink.table().transaction() as transaction, transaction.update_snapshot().fast_append():
            pass
        table_sink.table().maintenance.expire_snapshots().older_than(datetime.now() + timedelta(days=1)).commit()
    assert type(error_of(table_sink)) is (TableNotRegistered if expires else TablePositionMissing)
    expect_once(table_sink)


def _killed_before_it_remembers(call: str, key: str) -> None:
    if call == "put" and "/tables/" in key:
        raise Killed
