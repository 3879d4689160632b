"""One commit with PyIceberg's producer, which is no public API: these tests fail if it changes."""

from __future__ import annotations

import inspect
from importlib.metadata import version
from typing import Any

import pytest
from pyiceberg.manifest import write_manifest_list
from pyiceberg.table import Transaction
from pyiceberg.table.metadata import TableMetadataV3
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AddSnapshotUpdate,
    AssertCreate,
    AssertRefSnapshotId,
    AssertTableUUID,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)
from pyiceberg.table.update.snapshot import _SnapshotProducer

from sink_job.api.enums import OutputFormat
from sink_job.api.errors import TransientError
from sink_job.tables.position import position_property
from tests.support.table_sink import NAME, SINK_ID, Killed, TableSink


def test_the_pinned_version_of_pyiceberg_is_installed() -> None:
    assert version("pyiceberg") == "0.12.0"


def test_pyiceberg_does_not_write_tables_of_format_version_3() -> None:
    """Nanoseconds need one. docs/tables.md has this limit."""
    with pytest.raises(NotImplementedError, match="Writing V3 is not yet supported"):
        TableMetadataV3.model_construct().model_dump_json()
    with pytest.raises(ValueError, match="Cannot write manifest list for table version: 3"):
        write_manifest_list(3, Any, 1, None, 1, "null")  # type: ignore[arg-type]


def test_the_producer_returns_its_updates_and_commits_nothing_itself() -> None:
    assert inspect.signature(_SnapshotProducer._commit).return_annotation == "UpdatesAndRequirements"
    assert "commit_table" not in inspect.getsource(_SnapshotProducer._commit)
    assert "commit_transaction" in inspect.getsource(Transaction._apply)  # with autocommit only
    assert "autocommit: bool = False" in inspect.getsource(Transaction.__init__)


def sent(sink: TableSink, records: int, **given: object) -> tuple[list[TableRequirement], list[TableUpdate]]:
    """What a registration sends to the catalog, which then ends."""
    caught: list[tuple[list[TableRequirement], list[TableUpdate]]] = []
    commit = sink.catalog.commit

    def catch(table: object, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]) -> None:
        caught.append(([*requirements], [*updates]))
        raise Killed

    sink.write(records, **given)
    sink.catalog.commit = catch  # type: ignore[method-assign]
    with pytest.raises(Killed):
        sink.register()
    sink.catalog.commit = commit  # type: ignore[method-assign]
    return caught[0]


def test_the_commit_of_a_new_table_requires_that_there_is_none(table_sink: TableSink) -> None:
    requirements, updates = sent(table_sink, 20)
    assert [type(each) for each in requirements] == [AssertCreate]
    assert sum(isinstance(each, AddSnapshotUpdate) for each in updates) == 1


def test_a_commit_requires_the_head_and_the_uuid_and_changes_files_and_position_only(table_sink: TableSink) -> None:
    table_sink.write(20)
    table_sink.register()
    metadata = table_sink.table().metadata
    requirements, updates = sent(table_sink, 40)
    assert AssertTableUUID(uuid=metadata.table_uuid) in requirements
    heads = [each for each in requirements if isinstance(each, AssertRefSnapshotId)]
    assert [(each.ref, each.snapshot_id) for each in heads] == [("main", metadata.current_snapshot_id)]
    assert [type(each) for each in updates] == [AddSnapshotUpdate, SetSnapshotRefUpdate, SetPropertiesUpdate]
    properties = updates[-1]
    assert isinstance(properties, SetPropertiesUpdate)
    assert set(properties.updates) == {position_property(SINK_ID)}


def test_a_commit_with_new_columns_requires_the_present_ones(table_sink: TableSink) -> None:
    table_sink.write(20)
    table_sink.register()
    requirements, updates = sent(table_sink, 40, ids=(2,))
    assert {"AssertCurrentSchemaId", "AssertLastAssignedFieldId"} < {type(each).__name__ for each in requirements}
    added = [each for each in updates if isinstance(each, AddSchemaUpdate)]
    assert [[field.field_id for field in each.schema_.fields] for each in added] == [[1, 2, 3, 4]]


def test_a_commit_of_objects_without_field_ids_requires_the_columns_that_were_loaded(table_sink: TableSink) -> None:
    """Another program may rename one meanwhile."""
    table_sink.write_as(OutputFormat.AVRO, 10, 1)
    table_sink.register()
    table_sink.write_as(OutputFormat.AVRO, 20, 1)

    def rename() -> None:
        table_sink.catalog.before = lambda: None
        table_sink.table().update_schema().rename_column("kind", "sort").commit()

    table_sink.catalog.before = rename
    attempts = table_sink.catalog.commits
    table_sink.register()
    assert table_sink.catalog.commits - attempts == 2
    assert table_sink.files() == table_sink.objects()
    mapping = table_sink.table().name_mapping()
    assert mapping is not None
    assert [each.names for each in mapping] == [["partition"], ["offset"], ["kind", "sort"]]


def test_the_summary_of_a_snapshot_has_position_and_offsets_for_people(table_sink: TableSink) -> None:
    table_sink.write(25)
    table_sink.register()
    snapshot = table_sink.table().current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary[f"s3sink.{SINK_ID}.offsets"] == '{"0": 25}'
    assert snapshot.summary[position_property(SINK_ID)] == table_sink.table().properties[position_property(SINK_ID)]


def test_metadata_that_cannot_be_written_is_a_transient_error_without_a_commit(table_sink: TableSink) -> None:
    table_sink.write(20)

    def full(call: str, key: str) -> None:
        if call == "put":
            raise TransientError("SlowDown")

    table_sink.lake.fault = full
    with pytest.raises(TransientError):
        table_sink.register()
    assert table_sink.catalog.commits == 0
    assert table_sink.catalog.load(NAME) is None
