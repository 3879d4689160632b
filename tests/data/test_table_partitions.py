"""Partitioned tables over objects on a real S3 server, as DuckDB reads them: a filter on a partition column loses no
row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from msgspec import structs

from devtools.iceberg_rest.server import iceberg_rest_server
from devtools.s3 import S3Server
from sink_job.api.enums import TablePartitioning
from sink_job.ledger.store import Ledger
from sink_job.tables.ledger_reader import read_ledger
from sink_job.tables.partitions.object_paths import PathLayout
from sink_job.tables.plan import LedgerView
from sink_job.tables.registration import Registration
from sink_job.tables.registrations.topic_table import TopicTable
from tests.support.lake import LakeFixture
from tests.support.placed_log import START, PlacedLog
from tests.support.sink_fixture import SinkFixture
from tests.support.table_sink import BEGIN
from tests.unit.tables.parquet_objects import column, listed, parquet

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
        values = [] if value is None else [value]
        found = connection.execute(f"select number from t where {condition} order by 1", values).fetchall()
        result.append([name, str(value), count, [number for number, in found]])
"""


@pytest.fixture(scope="module")
def rest(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of Iceberg's REST server, for all tests of this file."""
    bucket = f"lake-{uuid4().hex[:12]}"
    s3.client().create_bucket(Bucket=bucket)
    folder: Path = tmp_path_factory.mktemp("rest")
    with iceberg_rest_server(folder, s3.endpoint, f"s3://{bucket}/tables") as url:
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
    assert lake.verify_command() == 0


def specs(lake: LakeFixture) -> list[list[str]]:
    """The partition fields of each spec that the table has."""
    table = lake.catalog.load(lake.name.replace("{topic}", "log"))
    assert table is not None
    return [[f"{each.transform}({each.name})" for each in spec.fields] for spec in table.specs().values()]


def test_values_with_the_same_path_have_no_partition_field(lake: LakeFixture) -> None:
    """`a/b` and `a%2Fb`, and null and the text null: filters on them find each row nevertheless."""
    lake.sections["partitioner"] = {"type": "Field", "fields": ["region"]}
    lake.run_log(LOG)
    assert lake.register("--from-beginning") == 0
    assert filtered(lake, "region") == by(("region", str(LOG.region(n)), n) for n in range(60))
    assert sorted(specs(lake)) == [[], ["identity(region)"]]
    assert lake.verify_command() == 0


def test_an_edit_of_the_partitioner_adds_a_partition_spec(lake: LakeFixture) -> None:
    log = PlacedLog(records=20, regions=("eu", "us"))
    lake.run_log(log)
    lake.sections["partitioner"] = {"type": "Field", "fields": ["region"]}
    lake.run_log(replace(log, records=40))
    lake.sections["partitioner"] = {**BY_REGION_AND_TIME, "fields": ["region", "number"]}
    lake.run_log(replace(log, records=45))
    assert lake.register("--from-beginning") == 0
    assert sorted(map(sorted, specs(lake))) == [
        ["identity(dt)", "identity(hour)", "identity(number)", "identity(region)"],
        ["identity(partition)"],
        ["identity(region)"],
    ]
    expected = by(
        (name, value, n)
        for n in range(45)
        for name, value in (("partition", "0" if n < 20 else "None"), ("region", str(log.region(n))))
    )
    assert filtered(lake, "partition", "region") == expected
    lake.run_log(replace(log, records=60))
    assert lake.register() == 0
    assert len(specs(lake)) == 3
    assert lake.verify_command() == 0


@pytest.mark.parametrize("kind", ["Hourly", "Daily"])
def test_a_filter_on_the_time_of_hidden_partitions_finds_each_row(lake: LakeFixture, kind: str) -> None:
    lake.options["partitioning"] = "Hidden"
    lake.sections["partitioner"] = {"type": kind, **BERLIN, "timezone": "UTC"}
    lake.run_log(LOG)
    assert lake.register("--from-beginning") == 0
    assert specs(lake) == [["hour(at_hour)" if kind == "Hourly" else "day(at_day)"]]
    expected = []
    script = "result = []"
    for hours in (-1, 1, 4, 19):
        low, high = START + timedelta(hours=hours), START + timedelta(hours=hours + 3)
        expected.append([n for n in range(60) if low <= LOG.at(n) < high])
        query = f"""select number from t where "at" >= '{low}' and "at" < '{high}' order by 1"""
        script += f"\nresult.append([n for n, in connection.execute({query!r}).fetchall()])"
    assert read(lake, script) == expected
    assert lake.verify_command() == 0


@pytest.mark.parametrize(
    ("kind", "zone", "unit"), [("Daily", "Europe/Berlin", "day"), ("Hourly", "Asia/Kolkata", "hour")]
)
def test_paths_of_a_zone_whose_days_or_hours_are_not_those_of_utc_stop_hidden_partitions(
    sink_fixture: SinkFixture, capsys: pytest.CaptureFixture[str], kind: str, zone: str, unit: str
) -> None:
    lake = LakeFixture(sink_fixture)
    lake.options["partitioning"] = "Hidden"
    lake.sections["partitioner"] = {"type": kind, **BERLIN, "timezone": zone}
    lake.run_log(LOG)
    assert lake.register("--from-beginning") == 7
    assert f"partitioning Hidden needs one {unit} of column at (UTC) in an object" in capsys.readouterr().err
    assert lake.catalog.load("lake.log") is None


def test_a_branch_has_the_rows_before_main_is_fast_forwarded_to_it(lake: LakeFixture) -> None:
    lake.run_log(PlacedLog(records=20))
    assert lake.register("--from-beginning") == 0
    lake.options["branch"] = "audit"
    lake.run_log(LOG)
    assert lake.register() == 0
    count = 'result = connection.execute("select count(*), count(distinct number) from t").fetchone()'
    assert (read(lake, count), lake.verify_command()) == ([20, 20], 0)
    table = lake.catalog.load(lake.name.replace("{topic}", "log"))
    assert table is not None
    with table.manage_snapshots() as snapshots:
        snapshots.set_current_snapshot(ref_name="audit")
    assert read(lake, count) == [60, 60]
    lake.options["branch"] = "main"
    lake.run_log(PlacedLog(records=80))
    assert (lake.register(), read(lake, count), lake.verify_command()) == (0, [80, 80], 0)


def test_a_partition_column_that_became_wider_is_filtered_in_old_and_new_objects(lake: LakeFixture) -> None:
    name, objects = lake.name.replace("{topic}", "log"), []
    view = LedgerView("sink", "ledger", 9, layouts={1: PathLayout()})
    for number, kind in enumerate((pa.int32(), pa.int64())):
        fields = [column(1, "number", pa.int64()), column(2, "k", kind)]
        content = parquet(fields, {"number": [2 * number, 2 * number + 1], "k": [7, 7]})
        key = f"topics/log/{number}.parquet"
        lake.sink.s3.put(key, content)
        objects.append(structs.replace(listed(key, content, 2, 1 + 9 * number), path="k=7"))
        target = TopicTable(
            name, "log", objects, view, ("topics/",), lambda seconds: None, partitioning=TablePartitioning.PATH
        )
        Registration(lake.sink.s3, f"topics/_s3sink/{name}/", lake.catalog, target).run(BEGIN, limit=1)
        view = replace(view, number=10)
    assert specs(lake) == [["identity(k)"]]
    assert filtered(lake, "k") == {("k", "7"): [0, 1, 2, 3]}


def test_a_new_table_can_have_its_objects_on_a_branch_alone(lake: LakeFixture) -> None:
    lake.options["branch"] = "audit"
    for records in (20, 40):
        lake.run_log(PlacedLog(records=records))
        assert lake.register("--from-beginning") == 0
        assert lake.verify_command() == 0
    assert read(lake, 'result = connection.execute("select count(*) from t").fetchone()') == [0]


def test_registrations_at_once_add_a_spec_and_each_object_once(lake: LakeFixture) -> None:
    s3, name, root = lake.sink.s3, lake.name.replace("{topic}", "log"), "topics/_s3sink/default.log/"
    for records, partitioner in ((20, {"type": "Field", "fields": ["region"]}), (60, BY_REGION_AND_TIME)):
        lake.sections["partitioner"] = partitioner
        lake.run_log(replace(LOG, records=records))
        view, objects = read_ledger(Ledger(s3, root, "register"), "default.log")
        target = TopicTable(
            name, "log", objects["log"], view, ("topics/",), lambda seconds: None, partitioning=TablePartitioning.PATH
        )
        threads = [Thread(target=Registration(s3, root, lake.catalog, target).run, args=[BEGIN]) for _ in range(3)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert filtered(lake, "region") == by(("region", str(LOG.region(n)), n) for n in range(60))
    assert lake.verify_command() == 0
