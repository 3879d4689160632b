"""The skipped objects of a table, from its files."""

from __future__ import annotations

import pytest

from sink_job.api.errors import TableNotRegistered
from sink_job.ledger.state import ClosedObject
from sink_job.tables.missing.returned import skipped_objects
from sink_job.tables.missing.skipped import NONE_SKIPPED
from tests.support.table_sink import TableSink
from tests.unit.tables.parquet_objects import listed


def absent(*numbers: int) -> list[ClosedObject]:
    return [listed(f"topics/log/{n}.parquet", b"x", 1) for n in numbers]


@pytest.fixture
def registered(table_sink: TableSink) -> TableSink:
    table_sink.write(20)
    table_sink.register()
    return table_sink


def test_the_skipped_objects_are_those_without_a_file(registered: TableSink) -> None:
    present = [listed(key, b"x", 1) for key in registered.files()]
    skipped = NONE_SKIPPED.with_objects(absent(1, 2))
    found = skipped_objects(registered.table(), "main", [*present, *absent(1, 2)], skipped, "archive")
    assert found == absent(1, 2)


def test_a_branch_that_does_not_exist_has_the_files_of_main(registered: TableSink) -> None:
    present = [listed(key, b"x", 1) for key in registered.files()]
    assert skipped_objects(registered.table(), "audit", present, NONE_SKIPPED, "archive") == []


def test_other_objects_without_a_file_are_an_error_where_the_keys_are_not_known(registered: TableSink) -> None:
    skipped = NONE_SKIPPED.with_objects(absent(1))
    assert skipped_objects(registered.table(), "main", absent(1, 2), skipped, "archive") == absent(1)
    unnamed = type(skipped)(skipped.total)
    with pytest.raises(TableNotRegistered, match="it is not certain which"):
        skipped_objects(registered.table(), "main", absent(1, 2), unnamed, "archive")
