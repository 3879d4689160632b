"""Tables over topics whose schemas change, with unusual names, and without records, as DuckDB reads them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.lake import LakeFixture
from tests.support.sink_fixture import SinkFixture
from tests.support.version_log import UNUSUAL_NAMES, VersionLog

pytestmark = pytest.mark.data

ROWS = """
query = connection.execute("select * from t")
names = [name for name, *_ in query.description]
result = [dict(zip(names, row)) for row in query.fetchall()]
"""


def rows(lake: LakeFixture) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = lake.read(ROWS)
    return sorted(found, key=lambda row: int(row["n"]))


@pytest.fixture
def lake(sink_fixture: SinkFixture) -> LakeFixture:
    """A sink with a SQL catalog."""
    found = LakeFixture(sink_fixture)
    found.options["partitioning"] = "None"  # no column of the paths
    return found


def test_two_versions_by_turns_that_are_separate_are_rows_of_one_table(lake: LakeFixture) -> None:
    lake.sections["schemaCompatibility"] = "Separate"
    log = VersionLog(records=40, versions=({"n": "int32", "old": "string"}, {"n": "int64", "new": "double"}))
    lake.run_log(log)
    assert lake.register("--from-beginning") == 0
    assert rows(lake) == log.rows()
    assert lake.verify_command() == 0


def test_a_field_that_was_removed_and_is_added_again_has_its_old_and_new_values(lake: LakeFixture) -> None:
    full, without = {"n": "int64", "seats": "int32", "gate": "string"}, {"n": "int64", "gate": "string"}
    parts = []
    for records, version in ((10, full), (20, without), (30, {"n": "int64", "gate": "string", "seats": "int64"})):
        log = VersionLog(records=records, versions=(version,))
        lake.run_log(log)
        assert lake.register("--from-beginning") == 0
        parts += [log.row(offset) for offset in range(records - 10, records)]
    assert rows(lake) == [{"seats": None, **row} for row in parts]
    assert lake.verify_command() == 0


@pytest.mark.parametrize("partitioning", ["None", "Path"])
def test_unusual_names_of_fields_are_names_of_columns(lake: LakeFixture, partitioning: str) -> None:
    lake.options["partitioning"] = partitioning
    log = VersionLog(records=20, versions=({"n": "int64", **dict.fromkeys(UNUSUAL_NAMES, "string")},))
    lake.run_log(log)
    assert lake.register("--from-beginning") == 0
    paths = {"partition": "0"} if partitioning == "Path" else {}
    assert rows(lake) == [row | paths for row in log.rows()]
    assert lake.verify_command() == 0


def test_a_topic_with_one_record_is_a_table_with_one_row(lake: LakeFixture) -> None:
    log = VersionLog(records=1, versions=({"n": "int64"},))
    lake.run_log(log)
    assert lake.register("--from-beginning") == 0
    assert rows(lake) == [{"n": 0}]
    assert lake.verify_command() == 0


def test_a_topic_without_records_has_no_table(lake: LakeFixture) -> None:
    lake.run_log(VersionLog(records=0, versions=({"n": "int64"},)))
    assert lake.register("--from-beginning") == 0
    assert lake.catalog.load("lake.log") is None
    assert lake.verify_command() == 0
