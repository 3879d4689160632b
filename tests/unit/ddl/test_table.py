"""A table over objects, independent of an engine."""

from __future__ import annotations

from sink_job.ddl.table import ColumnType, Kind, PathColumn, Projection, TableColumn, without_paths
from tests.unit.ddl.tables import table


def test_a_column_of_the_path_replaces_one_of_the_record_in_any_case() -> None:
    columns = [TableColumn(name, ColumnType(Kind.STRING)) for name in ("Carrier", "n")]
    found = table(columns=tuple(columns), paths=(PathColumn("carrier", Projection.INJECTED, "carrier={}"),))
    assert [each.name for each in without_paths(found)] == ["n"]


def test_a_table_has_named_paths_if_each_element_has_a_name() -> None:
    named = PathColumn("a", Projection.INJECTED, "a={}")
    unnamed = PathColumn("b", Projection.INJECTED, "{}", is_named=False)
    assert table(paths=(named,)).has_named_paths
    assert not table(paths=(named, unnamed)).has_named_paths


def test_the_url_ends_with_the_topics_directory() -> None:
    assert table().url("s3a") == "s3a://lake/topics/flights/"
