"""The audit of a table, read from its metadata."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.types import LongType

from sink_job.api.enums import OutputFormat, TablePartitioning
from sink_job.api.errors import TableNotRegistered
from sink_job.ledger.store import Ledger
from sink_job.tables.audit import TableAudit
from sink_job.tables.auditor import RowAccess, verify_table
from sink_job.tables.ledger_reader import read_ledger
from sink_job.tables.position import TablePosition, as_text
from tests.support.table_sink import FORMAT, NAME, SINK_ID, TableSink, parquet_log


def audited(sink: TableSink, *, deep: bool = False) -> TableAudit:
    s3: Any = sink.s3

    def read() -> Any:
        return read_ledger(Ledger(s3, sink.root, "test"), SINK_ID)

    rows = RowAccess(s3, sink.root) if deep else None
    return verify_table(sink.catalog, NAME, "log", read, "archive", ["topics/"], rows=rows)


def places(audit: TableAudit) -> list[tuple[str, int | None]]:
    return [(each.kind, each.offset) for each in audit.findings]


@pytest.fixture
def compacted(table_sink: TableSink) -> TableSink:
    """A table of which another program has written all rows into a file of its own, and an object after that."""
    table_sink.format = {**FORMAT, "envelope": True}
    table_sink.partition_by(type="Default")
    table_sink.write(20, envelope=True)
    table_sink.register()
    rewrite(table_sink, lambda rows: rows)
    table_sink.write(30, envelope=True)
    table_sink.register()
    return table_sink


def rewrite(sink: TableSink, change: Callable[[pa.Table], pa.Table]) -> None:
    """Replaces all files of the table by one with these rows."""
    table = sink.table()
    table.overwrite(change(table.scan().to_arrow()))


def shifted(rows: pa.Table, name: str, by: int) -> pa.Table:
    at = rows.schema.get_field_index(name)
    return rows.set_column(at, rows.schema.field(at), pc.add(rows[name], by).cast(rows.schema.field(at).type))


def renamed(rows: pa.Table) -> pa.Table:
    at = rows.schema.get_field_index("topic")
    return rows.set_column(at, rows.schema.field(at), pa.array(["other"] * len(rows), rows.schema.field(at).type))


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


def test_rows_of_a_compaction_prove_that_each_record_is_in_the_table_once(compacted: TableSink) -> None:
    audit = audited(compacted)
    assert (audit.objects, audit.others, audit.moved, audit.proven, places(audit)) == (1, 1, 20, None, [])
    audit = audited(compacted, deep=True)
    assert (audit.moved, audit.proven, places(audit), list(audit.notes)) == (20, 20, [], [])


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda rows: rows.filter(pc.not_equal(rows["offset"], 7)), [("TableRecordMissing", 7)]),
        (lambda rows: pa.concat_tables([rows, rows.filter(pc.equal(rows["offset"], 3))]), [("TableRecordTwice", 3)]),
        (lambda rows: shifted(rows, "offset", 1_000), [("TableRecordMissing", 0), ("TableRecordUnknown", 1_000)]),
        (lambda rows: shifted(rows, "partition", 5), [("TableRecordMissing", 0), ("TableRecordUnknown", 0)]),
        (renamed, [("TableRecordMissing", 0), ("TableRecordUnknown", None)]),
    ],
    ids=["lost", "doubled", "another offset", "another partition", "another topic"],
)
def test_a_defect_of_a_compaction_is_found_by_its_rows(
    compacted: TableSink, change: Callable[[pa.Table], pa.Table], expected: list[tuple[str, int | None]]
) -> None:
    rewrite(compacted, change)
    first: dict[str, int | None] = {}
    for kind, offset in places(audited(compacted, deep=True)):
        first.setdefault(kind, offset)
    assert list(first.items()) == expected


def test_rows_are_found_after_their_columns_were_renamed_and_widened(compacted: TableSink) -> None:
    with compacted.table().update_schema() as update:
        update.rename_column("offset", "place")
        update.update_column("partition", LongType())
    assert audited(compacted, deep=True).proven == 20


def test_rows_of_avro_objects_are_found_by_the_ids_of_their_names(table_sink: TableSink) -> None:
    """The ledger has no ids of a topic that has Avro objects alone."""
    table_sink.format = {**FORMAT, "output": "Avro", "envelope": True}
    table_sink.partition_by(type="Default")
    table_sink.fixture.run(replace(parquet_log(20, envelope=True), output=OutputFormat.AVRO))
    table_sink.register()
    table = table_sink.table()
    schema = table.schema().as_arrow()
    origin: dict[str, list[Any]] = {"topic": ["log"] * 20, "partition": [0] * 20, "offset": [*range(20)]}
    columns = [pa.array(origin.get(each.name, [None] * 20), each.type) for each in schema]
    table.overwrite(pa.Table.from_arrays(columns, schema=schema))
    audit = audited(table_sink, deep=True)
    assert (audit.moved, audit.proven, places(audit)) == (20, 20, [])


def test_rows_without_an_envelope_cannot_be_verified(table_sink: TableSink) -> None:
    table_sink.write(20)
    table_sink.register()
    rewrite(table_sink, lambda rows: rows)
    audit = audited(table_sink, deep=True)
    assert (audit.proven, places(audit)) == (None, [])
    assert "format.envelope was not set" in audit.notes[0]


def test_of_records_from_before_the_envelope_only_the_number_is_verified(table_sink: TableSink) -> None:
    table_sink.write(20)
    table_sink.format = {**FORMAT, "envelope": True}
    table_sink.partition_by(type="Default")
    table_sink.write(40, envelope=True)
    table_sink.register()
    rewrite(table_sink, lambda rows: rows)
    audit = audited(table_sink, deep=True)
    assert (audit.moved, audit.proven, places(audit)) == (40, 20, [])
    assert audit.notes == (
        "20 rows have no topic, partition and offset: they were written without format.envelope. Only their number is "
        "verified",
    )


def test_rows_of_another_topic_are_a_note_if_another_sink_writes_to_the_table(compacted: TableSink) -> None:
    table = compacted.table()
    table.append(renamed(table.scan(limit=3).to_arrow()))
    assert places(audited(compacted, deep=True)) == [("TableRecordUnknown", None)]
    with compacted.table().transaction() as change:
        change.set_properties({"s3sink.other.position": as_text(TablePosition("l", 1, 1, 1))})
    audit = audited(compacted, deep=True)
    assert (audit.proven, places(audit)) == (20, [])
    assert audit.notes == ("3 rows are of other topics: another sink writes to the table, too",)


def test_a_table_without_the_columns_of_the_envelope_is_an_error(compacted: TableSink) -> None:
    with compacted.table().update_schema() as update:
        update.delete_column("offset")
    with pytest.raises(TableNotRegistered, match="has no column offset any more"):
        audited(compacted, deep=True)


def test_the_objects_of_a_table_of_which_nothing_was_rewritten_are_not_read(registered: TableSink) -> None:
    registered.s3.fault = lambda call, key: pytest.fail(f"{call} {key}") if key.endswith(".parquet") else None
    assert audited(registered, deep=True).findings == []
