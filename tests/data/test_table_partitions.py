"""Partitioned tables over objects on a real S3 server, as DuckDB reads them: a filter on a partition column loses no
row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from devtools.iceberg_rest.server import iceberg_rest_server
from devtools.s3 import S3Server, s3_client
from tests.support.lake import LakeFixture
from tests.support.placed_log import PlacedLog
from tests.support.sink_fixture import SinkFixture

pytestmark = pytest.mark.data

BERLIN = {"timezone": "Europe/Berlin", "timestampExtractor": "RecordField", "timestampField": "at"}
BY_REGION_AND_TIME = {
    "type": "FieldAndTime",
    "fields": ["region"],
    "duration": "1h",
    "pathFormat": "'dt='YYYY-MM-dd/'hour='HH",
    **BERLIN,
}
LOG = PlacedLog(records=60)
FILTERS = """
result = []
for name in NAMES:
    groups = connection.execute(f'select "{name}", count(*) from copied group by 1').fetchall()
    for value, count in groups:
        condition = f'"{name}" is null' if value is None else f'"{name}" = ?'
        found = connection.execute(f"select number from t where {condition} order by 1", [] if value is None else [value])
        result.append([name, str(value), count, [number for number, in found.fetchall()]])
"""


@pytest.fixture(scope="module")
def rest(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of Iceberg's REST server, for all tests of this file."""
    s3_client(s3.endpoint).create_bucket(Bucket="partitions-lake")
    folder: Path = tmp_path_factory.mktemp("rest")
    with iceberg_rest_server(folder, s3.endpoint, "s3://partitions-lake/tables") as url:
        yield url


@pytest.fixture(params=["Sql", "Rest"])
def lake(request: pytest.FixtureRequest, sink_fixture: SinkFixture, rest: str) -> LakeFixture:
    """A sink with a catalog of each kind."""
    found = LakeFixture(sink_fixture, rest if request.param == "Rest" else None)
    found.name = f"t{sink_fixture.bucket.replace('-', '_')}.{{topic}}"
    return found


def read(lake: LakeFixture, script: str) -> Any:
    return lake.read(script, lake.name.replace("{topic}", "log"))


def filtered(lake: LakeFixture, *names: str) -> dict[tuple[str, str], list[int]]:
    """By column and value, the rows that DuckDB finds with a filter; as many as without one."""
    script = "connection.execute('CREATE TABLE copied AS SELECT * FROM t')" + FILTERS.replace("NAMES", repr(names))
    rows = read(lake, script)
    assert [each for each in rows if each[2] != len(each[3])] == []
    return {(name, value): numbers for name, value, _, numbers in rows}


def by(values: Iterator[tuple[str, str, int]]) -> dict[tuple[str, str], list[int]]:
    found: dict[tuple[str, str], list[int]] = {}
    for name, value, number in values:
        found.setdefault((name, value), []).append(number)
    return found


def test_a_filter_on_the_columns_of_paths_finds_each_row(lake: LakeFixture) -> None:
    """Times of a zone with a clock change, late records, and values that paths escape."""
    lake.sections["partitioner"] = BY_REGION_AND_TIME
    lake.run_log(LOG)
    assert lake.register("--from-beginning") == 0
    local = [LOG.at(n).astimezone(ZoneInfo("Europe/Berlin")) for n in range(60)]
    assert filtered(lake, "dt", "hour", "region") == by(
        (name, value, n)
        for n, at in enumerate(local)
        for name, value in (("dt", f"{at:%Y-%m-%d}"), ("hour", f"{at:%H}"), ("region", str(LOG.region(n))))
    )
    assert lake.verify() == 0
