"""The live files of a table."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sink_job.api.errors import TableNotRegistered
from sink_job.tables.audits.file_index import FileIndex
from sink_job.tables.audits.table_files import OtherFile, TableFiles
from sink_job.tables.partitions.partition_audit import PartitionReader
from tests.support.table_sink import TableSink


def files_of(sink: TableSink) -> TableFiles:
    table = sink.table()
    return TableFiles(table, "main", PartitionReader(table.metadata))


@pytest.fixture
def sink(table_sink: TableSink) -> TableSink:
    """A table with two objects in two manifests."""
    for count in (10, 20):
        table_sink.write(count)
        table_sink.register()
    return table_sink


def test_files_have_the_numbers_of_their_manifests_in_each_iteration(sink: TableSink) -> None:
    files = files_of(sink)
    expected = {f"s3://archive/{key}": (10, len(sink.s3.objects[key].body)) for key in sink.objects()}
    for _ in range(2):
        assert {each.path: (each.records, each.size) for each in files} == expected


def test_files_that_are_no_objects_have_the_bounds_of_their_offsets(sink: TableSink) -> None:
    table = sink.table()
    rows: pa.Table = table.scan().to_arrow()
    table.append(rows.slice(0, 5))
    files = files_of(sink)
    index = FileIndex(files, ["s3://archive/topics/"])
    (offset_id,) = (each.field_id for each in sink.table().schema().fields if each.name == "offset")
    (other,) = files.others(index, offset_id)
    offsets = rows.slice(0, 5)["offset"].to_pylist()
    assert other == OtherFile(other.path, 5, True, (min(offsets), max(offsets)))
    assert other.path.startswith("s3://lake/tables/")
    (unknown,) = files.others(index, 999)
    assert unknown.offsets is None


def test_files_that_were_deleted_are_left_out(sink: TableSink) -> None:
    table = sink.table()
    table.overwrite(table.scan().to_arrow())
    (file,) = files_of(sink)
    assert file.records == 20


def test_a_table_with_deletes_is_an_error(sink: TableSink, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's merge-on-read makes such files; PyIceberg does not."""
    files = files_of(sink)
    found = next(files._files())
    monkeypatch.setattr(type(found), "content", property(lambda file: "deletes"))
    with pytest.raises(TableNotRegistered, match="has files with deletes, such as s3://archive/topics/"):
        list(files)
