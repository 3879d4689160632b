"""The audit of a table, read from its metadata."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.api.enums import TablePartitioning
from sink_job.api.errors import TableNotRegistered
from sink_job.ledger.store import Ledger
from sink_job.tables.audit import TableAudit
from sink_job.tables.auditor import verify_table
from sink_job.tables.ledger_reader import read_ledger
from tests.support.table_sink import NAME, SINK_ID, TableSink


def audited(sink: TableSink) -> TableAudit:
    s3: Any = sink.s3
    return verify_table(
        sink.catalog, NAME, "log", lambda: read_ledger(Ledger(s3, sink.root, "test"), SINK_ID), "archive", ["topics/"]
    )


@pytest.fixture
def registered(table_sink: TableSink) -> TableSink:
    """A table with two commits, and two objects that are not registered."""
    for records in (20, 40):
        table_sink.write(records)
        table_sink.register()
    table_sink.write(60)
    return table_sink


def test_a_registered_table_has_no_findings(registered: TableSink) -> None:
    found = audited(registered)
    assert (found.objects, found.records, found.waiting, found.others, list(found.findings)) == (4, 40, 2, 0, [])


def test_a_rolled_back_table_is_found_with_the_missing_objects(registered: TableSink) -> None:
    table = registered.table()
    with table.manage_snapshots() as snapshots:
        snapshots.set_current_snapshot(table.history()[0].snapshot_id)
    kinds = [each.kind for each in audited(registered).findings]
    assert kinds == ["TableObjectMissing", "TableObjectMissing", "TableRolledBack"]


def test_objects_that_another_program_adds_again_are_found(registered: TableSink) -> None:
    table = registered.table()
    assert table.current_snapshot() is not None
    manifest = table.current_snapshot().manifests(table.io)[0]  # type: ignore[union-attr]
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        for entry in manifest.fetch_manifest_entry(table.io):
            append.append_data_file(entry.data_file)
    assert {each.kind for each in audited(registered).findings} == {"TableFileTwice"}


def test_a_table_that_cannot_be_compared_is_an_error(table_sink: TableSink) -> None:
    table_sink.write(20)
    with pytest.raises(TableNotRegistered, match="does not exist"):
        audited(table_sink)
    table_sink.register()
    with table_sink.table().transaction() as transaction:
        transaction.remove_properties(f"s3sink.{SINK_ID}.position")
    with pytest.raises(TableNotRegistered, match="no position of this sink's ledger"):
        audited(table_sink)


def test_an_object_that_another_program_adds_with_another_partition_is_found(table_sink: TableSink) -> None:
    """It replaces the file of the object."""
    table_sink.options["partitioning"] = TablePartitioning.PATH
    table_sink.partition_by(
        type="FieldAndTime", fields=["kind"], duration="1d", pathFormat="'day'=YYYY", timezone="UTC"
    )
    table_sink.write(20, paths=2)
    table_sink.register()
    assert list(audited(table_sink).findings) == []
    table = table_sink.table()
    (snapshot,) = table.snapshots()
    (manifest,) = snapshot.manifests(table.io)
    files = [each.data_file for each in manifest.fetch_manifest_entry(table.io)]
    for at, value in ((0, "k7"), (1, "1999")):
        files[at].partition[at] = value
    with table.transaction() as transaction, transaction.update_snapshot().overwrite() as overwrite:
        for entry in manifest.fetch_manifest_entry(table.io):
            overwrite.delete_data_file(entry.data_file)
        for file in files:
            overwrite.append_data_file(file)
    found = audited(table_sink).findings
    assert [each.kind for each in found] == ["TablePartitionWrong", "TablePartitionWrong"]
    assert "field kind is 'k7', and the bounds of its column are 'k" in found[0].message
    assert "field day is '1999', and the path has '2023'" in found[1].message
