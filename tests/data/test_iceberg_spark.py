"""Tables as Spark with Iceberg's runtime reads and maintains them: the rows are the records, each once."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pyarrow.parquet as pq
import pytest

from devtools.iceberg_spark import IcebergSpark, iceberg_spark
from devtools.processes import ServerFailedError
from devtools.s3 import S3Server
from sink_job.api.enums import OutputFormat
from sink_job.avro.container import sync_marker
from sink_job.avro.names import avro_name
from sink_job.tables.audit import TableAudit
from sink_job.tables.plan import LedgerView, Request
from sink_job.tables.registration import Registration
from sink_job.tables.registrations.topic_table import TopicTable
from tests.support.lake import VALUES, LakeFixture, expected
from tests.support.placed_log import REGIONS, PlacedLog
from tests.support.sink_fixture import SinkFixture
from tests.support.table_sink import FORMAT, parquet_log
from tests.support.version_log import UNUSUAL_NAMES, VersionLog
from tests.unit.codecs import typed_objects
from tests.unit.codecs.typed_cases import CASES, MICROS, Case, at
from tests.unit.codecs.typed_objects import AVRO_CODECS, RECORDS, AvroColumns, object_of
from tests.unit.tables.avro_objects.avro_types import NOT_READ_FROM_AVRO
from tests.unit.tables.parquet_objects import listed

pytestmark = pytest.mark.data

TYPED = AvroColumns([each for each in CASES if not each.name.endswith(("millis", "nanos", "time_micros"))])
"""Columns of all types that tables have and that Spark can read."""
TIMES = AvroColumns([each for each in CASES if each.name in ("int", "time_micros")])
UNUSUAL = dict.fromkeys(UNUSUAL_NAMES, "string")
ENTRIES = "map_of_numbers"
AS_ARRAY = "array<struct<key:int,value:string>>"
"""A map in Parquet, which is an array of records in Avro."""
_STRUCT, _ROW = "struct<x:int,y:timestamp>", ({"x": 1, "y": None}, {"x": 2, "y": at((5,), MICROS)[0]})
_AGAIN = ({"x": 1, "y": None}, {"x": 2, "y": 5})
USED_AGAIN = [
    Case("again", ["null", "S"], (None, _AGAIN[1]), (None, _ROW[1]), "", "", _STRUCT, "", ""),
    Case("many", {"type": "array", "items": "S"}, ([], [*_AGAIN]), ([], [*_ROW]), "", "", f"array<{_STRUCT}>", "", ""),
    Case(
        "by_key",
        {"type": "map", "values": ["null", "S"]},
        ({"k": None}, {"k": _AGAIN[0]}),
        ([("k", None)], [("k", _ROW[0])]),
        "",
        "",
        f"map<string,{_STRUCT}>",
        "",
        "",
    ),
]
"""Columns with the named type of the column `record`."""
IN_AVRO = AvroColumns(
    [
        replace(each, read=each.in_avro or (), spark=AS_ARRAY) if each.name == ENTRIES else each
        for each in CASES
        if each.name not in NOT_READ_FROM_AVRO and each.name != "time_micros"
    ]
    + USED_AGAIN
)
"""Columns of all types that Avro objects in tables can have and that Spark can read."""
AVRO = {"converter": "ConnectJson", "output": "Avro"}
UUIDS = ("uuid", "uuid_fixed")
NOTHING_BEFORE = "older_than => timestamp'2100-01-01 00:00:00', retain_last => 1"


@pytest.fixture(scope="module")
def spark(rest: str, s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSpark]:
    """Spark, for all tests of this file."""
    with iceberg_spark(tmp_path_factory.mktemp("spark"), s3.endpoint, rest=rest) as process:
        yield process


class SparkTable:
    """A table of a sink, and Spark. `name` is that in the catalog."""

    def __init__(self, sink: SinkFixture, rest: str, spark: IcebergSpark) -> None:
        self.lake = LakeFixture(sink, rest)
        self.spark = spark
        self.name = f"lake.t{uuid4().hex[:12]}"

    def register(self, *arguments: str) -> None:
        assert self.lake.register(*arguments, name=self.name) == 0

    def register_up_to(self, records: int) -> None:
        """Registers when the sink has copied so many records; then the table has each of them once."""
        self.lake.run(records, (2,))
        self.register("--from-beginning")
        self.has_each_record_once(records)

    def has_each_record_once(self, records: int) -> None:
        rows = self.spark.rows(f"select offset, kind, seats from rest.{self.name} order by 1")
        assert rows == expected(records, lambda offset: 2)

    def call(self, procedure: str, arguments: str = "") -> list[Any]:
        """The row of a procedure of Iceberg."""
        more = f", {arguments}" if arguments else ""
        (row,) = self.spark.rows(f"call rest.system.{procedure}(table => '{self.name}'{more})")
        return row

    def allow_expiry(self) -> None:
        self.spark.rows(f"alter table rest.{self.name} set tblproperties ('gc.enabled' = 'true')")

    def verify(self) -> TableAudit:
        return self.lake.verify(self.name)

    def verify_deep(self, capsys: pytest.CaptureFixture[str]) -> tuple[int, Any]:
        """The exit code and the result of `s3sink verify --table --deep`."""
        capsys.readouterr()
        code = self.lake.verify_command("--deep", "-o", "json", name=self.name)
        return code, json.loads(capsys.readouterr().out)["tables"][0]

    def add(self, columns: AvroColumns, output: OutputFormat = OutputFormat.PARQUET, codec: str = "Snappy") -> bytes:
        """Registers an object with these columns, and returns its bytes."""
        content = object_of(columns, output, codec)
        s3, key = self.lake.sink.s3, f"topics/log/{uuid4().hex}.{output.lower()}"
        if output is OutputFormat.AVRO:
            content = content.replace(sync_marker("topics/t/x"), sync_marker(key))
        s3.put(key, content)
        objects = [listed(key, content, RECORDS)]
        view = LedgerView("sink", "ledger", 9)
        target = TopicTable(self.name, "log", objects, view, ("topics/",), lambda seconds: None)
        Registration(s3, "topics/_s3sink/x/", self.lake.catalog, target).run(Request(from_beginning=True))
        return content


def plain(rows: list[dict[str, Any]]) -> list[str]:
    """Rows as texts; Spark has no type for UUIDs."""
    texts = [{name: str(each) if isinstance(each, UUID) else each for name, each in row.items()} for row in rows]
    return [str(row) for row in texts]


@pytest.fixture
def table(sink_fixture: SinkFixture, rest: str, spark: IcebergSpark) -> SparkTable:
    """A table that does not exist yet."""
    return SparkTable(sink_fixture, rest, spark)


def test_the_rows_of_a_table_are_the_records_of_the_sink(table: SparkTable) -> None:
    table.lake.run(25)
    table.register("--from-beginning")
    table.lake.run(60, (2,))
    table.register()
    rows = table.spark.rows(f"select offset, kind, seats from rest.{table.name} order by 1")
    assert rows == expected(60, lambda offset: 1 if offset < 25 else 2)


def test_two_versions_by_turns_with_unusual_names_are_rows_of_one_table(table: SparkTable) -> None:
    table.lake.sections["schemaCompatibility"] = "Separate"
    table.lake.options["partitioning"] = "None"
    log = VersionLog(records=20, versions=({"n": "int32", "old": "string"}, {"n": "int64", **UNUSUAL}))
    table.lake.run_log(log)
    table.register("--from-beginning")
    names = sorted(log.rows()[0])
    columns = ", ".join(f"`{name.replace('`', '``')}`" for name in names)
    rows = table.spark.rows(f"select {columns} from rest.{table.name} order by n")
    assert [dict(zip(names, row, strict=True)) for row in rows] == log.rows()


def test_filters_on_unusual_values_of_paths_find_each_row(table: SparkTable) -> None:
    log = PlacedLog(records=40)
    table.lake.sections["partitioner"] = {"type": "Field", "fields": ["region"]}
    table.lake.run_log(log)
    table.register("--from-beginning")
    script = f"""
from pyspark.sql import functions as F
t = spark.table("rest.{table.name}")
result = [sorted(r.number for r in t.where(F.col("region").eqNullSafe(F.lit(each))).collect()) for each in {REGIONS!r}]
"""
    assert table.spark.run(script) == [[n for n in range(40) if log.region(n) == each] for each in REGIONS]


def test_a_table_that_spark_has_created_has_its_rows_and_the_records_of_a_new_sink(table: SparkTable) -> None:
    columns = "kind string, at struct<x: int, tags: array<string>>, gone int, offset bigint"
    table.spark.rows("create namespace if not exists rest.lake")
    table.spark.rows(f"create table rest.{table.name} ({columns}) using iceberg")
    table.spark.rows(f"insert into rest.{table.name} values ('x', named_struct('x', 1, 'tags', array('a')), 2, -1)")
    table.spark.rows(f"alter table rest.{table.name} drop column gone")
    table.lake.run_new(25, name=table.name)
    table.register("--from-beginning")
    table.lake.run(60, (2,))
    table.register()
    rows = [[-1, "x", None], *expected(60, lambda offset: 1 if offset < 25 else 2)]
    assert table.spark.rows(f"select offset, kind, seats from rest.{table.name} order by 1") == rows
    assert table.lake.read(VALUES, table.name) == rows
    (at,) = table.spark.rows(f"select at.x, at.tags from rest.{table.name} where offset = -1")
    assert at == [1, ["a"]]


def check_filters(table: SparkTable, copy: Path, columns: AvroColumns) -> None:
    """The types are those of the columns, and as many rows have the smallest and largest value of a column with and
    without a filter that readers skip files by. Writes the rows to `copy`."""
    script = f"""
from pyspark.sql import functions as F
t = spark.table("rest.{table.name}")
t.write.parquet("{copy}")
copied = spark.read.schema(t.schema).parquet("{copy}")
types = {{each.name: each.dataType.simpleString() for each in t.schema}}
nested = ("struct", "map", "array")
scalars = [name for name, kind in types.items() if not kind.startswith(nested) and name not in {UUIDS}]
(bounds,) = copied.select(*(end(name) for name in scalars for end in (F.min, F.max))).collect()
filters = [F.col(name) == F.lit(bound) for name, bound in zip((n for n in scalars for _ in "12"), bounds)]
(matching,) = copied.select(*(F.count_if(each) for each in filters)).collect()  # reads all rows
result = {{"types": types, "matching": [*matching], "found": [t.where(each).count() for each in filters]}}
"""
    found = table.spark.run(script)
    assert found["types"] == {c.name: "string" if c.name in UUIDS else c.spark for c in columns.cases}
    assert len(found["found"]) > 30
    assert 0 not in found["found"]
    assert found["found"] == found["matching"]


def test_all_types_have_the_values_of_the_objects_with_and_without_filters(table: SparkTable, tmp_path: Path) -> None:
    values = pq.read_table(io.BytesIO(table.add(TYPED)))
    check_filters(table, tmp_path / "copy", TYPED)
    assert plain(pq.read_table(tmp_path / "copy").to_pylist()) == plain(values.to_pylist())


def test_all_types_of_avro_objects_have_their_values_with_and_without_filters(
    table: SparkTable, tmp_path: Path
) -> None:
    table.add(IN_AVRO, OutputFormat.AVRO)
    check_filters(table, tmp_path / "copy", IN_AVRO)
    found = typed_objects.rows(pq.read_table(tmp_path / "copy"), IN_AVRO)
    assert found == typed_objects.expected(IN_AVRO)


def test_spark_reads_no_table_with_a_column_of_times(table: SparkTable) -> None:
    table.add(TIMES)
    with pytest.raises(ServerFailedError, match="Spark does not support time fields"):
        table.spark.rows(f"select `int` from rest.{table.name}")


def test_spark_finds_no_uuid_by_a_filter_also_in_its_own_files(table: SparkTable) -> None:
    """A defect of Iceberg's runtime 1.11.0. docs/tables.md has what to write instead."""
    table.add(AvroColumns([each for each in CASES if each.name == "uuid"]))
    name = f"rest.{table.name}"
    table.spark.rows(f"insert into {name} select uuid from {name}")
    ((one,), _) = table.spark.rows(f"select distinct uuid from {name} order by 1")
    assert table.spark.rows(f"select count(*) from {name} where uuid = '{one}'") == [[0]]
    assert table.spark.rows(f"select count(*) from {name} where concat(uuid, '') = '{one}'") == [[40]]


def test_registrations_continue_after_manifests_were_rewritten_and_snapshots_expired(table: SparkTable) -> None:
    table.register_up_to(25)
    table.register_up_to(45)
    assert table.call("rewrite_manifests") == [2, 1]
    table.register_up_to(65)
    table.allow_expiry()
    expired = table.call("expire_snapshots", NOTHING_BEFORE)
    assert expired[0] == 0  # data files
    table.register_up_to(85)
    audit = table.verify()
    assert (audit.objects, audit.records, audit.others, audit.findings) == (9, 85, 0, [])


def test_registrations_continue_after_data_files_were_rewritten(table: SparkTable) -> None:
    table.register_up_to(25)
    table.register_up_to(45)
    rewritten, added, *_ = table.call("rewrite_data_files", "options => map('rewrite-all', 'true')")
    assert (rewritten, added) == (5, 1)
    table.has_each_record_once(45)
    audit = table.verify()
    assert (audit.objects, audit.records, audit.others, audit.findings) == (0, 45, 1, [])
    table.register_up_to(65)
    audit = table.verify()
    assert (audit.objects, audit.records, audit.others, audit.findings) == (2, 65, 1, [])


def test_the_snapshot_of_the_position_may_expire(table: SparkTable) -> None:
    table.register_up_to(25)
    table.call("rewrite_data_files", "options => map('rewrite-all', 'true')")
    table.allow_expiry()
    table.call("expire_snapshots", NOTHING_BEFORE)
    loaded = table.lake.catalog.load(table.name)
    assert loaded is not None
    assert len(loaded.metadata.snapshots) == 1
    table.register_up_to(45)
    assert table.verify().findings == []


def test_the_records_of_a_compaction_are_proven_by_their_rows_and_wrong_ones_are_found(
    table: SparkTable, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also if the table has renamed the columns, and a part of it was compacted."""
    table.lake.sections = {"format": {**FORMAT, "envelope": True}}
    table.lake.run(25, (2,), envelope=True)
    table.register("--from-beginning")
    table.call("rewrite_data_files", "options => map('rewrite-all', 'true')")
    name = f"rest.{table.name}"
    table.spark.rows(f"alter table {name} rename column offset to place")
    table.lake.run(45, (2,), envelope=True)
    table.register()
    code, audit = table.verify_deep(capsys)
    assert (code, audit["objects"], audit["others"]) == (0, 2, 1)
    assert (audit["moved"], audit["proven"], audit["findings"]) == (25, 25, [])
    table.spark.rows(f"delete from {name} where place = 7")
    table.spark.rows(f"insert into {name} select * from {name} where place in (9, 30)")
    table.spark.rows(f"update {name} set place = 4000 where place = 20")
    code, audit = table.verify_deep(capsys)
    found = sorted((each["type"], each["partition"], each["offset"]) for each in audit["findings"])
    assert code == 5
    assert found == [
        ("TableRecordMissing", 0, 7),
        ("TableRecordMissing", 0, 20),
        ("TableRecordTwice", 0, 9),
        ("TableRecordTwice", 0, 30),
        ("TableRecordUnknown", 0, 4000),
    ]
    assert all("/data/" in each["path"] for each in audit["findings"] if each["offset"] in (9, 4000))


def test_no_snapshot_expires_in_spark_while_the_table_keeps_its_objects(table: SparkTable) -> None:
    table.register_up_to(25)
    with pytest.raises(ServerFailedError, match="GC is disabled"):
        table.call("expire_snapshots", NOTHING_BEFORE)


def with_kinds(rows: list[list[Any]]) -> list[list[Any]]:
    """The rows of `expected`, whose log has one kind."""
    return [[offset, f"k{offset % 3}", seats] for offset, _, seats in rows]


class AvroTable(SparkTable):
    """A table over Avro objects."""

    def run(self, records: int, schema: int, output: OutputFormat = OutputFormat.AVRO) -> None:
        """Copies records with a schema, and registers them."""
        self.lake.sections["format"] = {**AVRO, "output": output.value}
        self.lake.run_log(replace(parquet_log(records, (schema,), paths=3), output=output))
        self.register("--from-beginning")

    def select(self, columns: str, where: str = "true") -> list[list[Any]]:
        return self.spark.rows(f"select {columns} from rest.{self.name} where {where} order by offset")

    def alter(self, change: str) -> None:
        self.spark.rows(f"alter table rest.{self.name} {change}")


@pytest.fixture
def avro(sink_fixture: SinkFixture, rest: str, spark: IcebergSpark) -> AvroTable:
    """A table of Avro objects that does not exist yet."""
    return AvroTable(sink_fixture, rest, spark)


def test_the_rows_of_avro_objects_are_the_records_of_the_sink(avro: AvroTable) -> None:
    """Columns are added, missing and there again."""
    ends = {25: 1, 45: 2, 65: 1, 85: 2}
    for records, schema in ends.items():
        avro.run(records, schema)
    rows = with_kinds(expected(85, lambda offset: next(schema for end, schema in ends.items() if offset < end)))
    assert avro.select("offset, kind, seats") == rows
    assert avro.select("offset, kind, seats", "kind = 'k0'") == [row for row in rows if row[1] == "k0"]
    assert avro.select("offset", "seats is null") == [row[:1] for row in rows if row[2] is None]
    assert avro.select("offset", "seats >= 60") == [row[:1] for row in rows if (row[2] or 0) >= 60]
    audit = avro.verify()
    assert (audit.objects, audit.records, audit.findings) == (len(avro.lake.sink.keys()), 85, [])


def test_two_versions_by_turns_with_unusual_names_are_rows_of_a_table_of_avro_objects(avro: AvroTable) -> None:
    """int32 becomes int64, a field is removed, and names are those that Avro allows."""
    avro.lake.sections |= {"schemaCompatibility": "Separate", "format": AVRO}
    log = VersionLog(records=20, versions=({"n": "int32", "old": "string"}, {"n": "int64", **UNUSUAL}))
    avro.lake.run_log(log)
    avro.register("--from-beginning")
    names = sorted(log.rows()[0])
    columns = ", ".join(f"`{avro_name(name)}`" for name in names)
    rows = avro.spark.rows(f"select {columns} from rest.{avro.name} order by n")
    assert [dict(zip(names, row, strict=True)) for row in rows] == log.rows()


def test_filters_on_unusual_values_of_the_rows_of_avro_objects_find_each_row(avro: AvroTable) -> None:
    """The rows have the column of the path, so no partition has it."""
    log = PlacedLog(records=40)
    avro.lake.sections |= {"partitioner": {"type": "Field", "fields": ["region"]}, "format": AVRO}
    avro.lake.run_log(log)
    avro.register("--from-beginning")
    found = avro.spark.rows(f"select number, region from rest.{avro.name} order by number")
    assert found == [[n, log.region(n)] for n in range(40)]
    null, text = (f"select count(*) from rest.{avro.name} where region {each}" for each in ("is null", "= 'null'"))
    assert avro.spark.rows(null) == [[sum(log.region(n) is None for n in range(40))]]
    assert avro.spark.rows(text) == [[sum(log.region(n) == "null" for n in range(40))]]


def test_columns_that_a_user_renames_and_drops_in_spark_stay_so(avro: AvroTable) -> None:
    avro.run(25, 2)
    avro.alter("rename column kind to sort")
    avro.alter("drop column seats")
    avro.run(45, 2)
    assert avro.select("*") == [[0, offset, kind] for offset, kind, _ in with_kinds(expected(45, lambda offset: 2))]
    avro.alter("rename column sort to kind")
    avro.run(65, 1)
    assert avro.select("offset, kind") == [row[:2] for row in with_kinds(expected(65, lambda offset: 2))]


def test_spark_gives_the_name_of_a_dropped_column_to_a_new_one_also_in_earlier_objects(avro: AvroTable) -> None:
    """As docs/tables.md says. The registration keeps this mapping."""
    avro.run(25, 2)
    avro.alter("drop column seats")
    avro.alter("add column seats bigint")
    rows = with_kinds(expected(45, lambda offset: 2))
    assert avro.select("offset, kind, seats") == rows[:25]
    avro.run(45, 2)
    assert avro.select("offset, kind, seats") == rows


def test_a_table_has_parquet_and_avro_objects_with_the_same_columns(avro: AvroTable) -> None:
    avro.run(25, 1, OutputFormat.PARQUET)
    avro.alter("rename column kind to sort")
    avro.run(45, 2)
    avro.run(65, 1, OutputFormat.PARQUET)
    rows = with_kinds(expected(65, lambda offset: 2 if 25 <= offset < 45 else 1))
    assert avro.select("offset, sort, seats") == rows


def test_paths_of_avro_objects_are_columns_and_hide_no_rows(avro: AvroTable) -> None:
    avro.lake.sections["partitioner"] = {"type": "Field", "fields": ["kind"]}
    avro.run(25, 1)
    avro.lake.sections["partitioner"] = {"type": "Hourly", "timestampExtractor": "Record", "timezone": "UTC"}
    avro.run(45, 1)
    assert avro.select("offset, kind", "kind = 'k0'") == [[n, "k0"] for n in range(45) if n % 3 == 0]
    years = avro.spark.rows(f"select distinct year from rest.{avro.name} where offset >= 25")
    assert [year.isdigit() for (year,) in years] == [True]


def test_avro_objects_are_read_with_each_compression(avro: AvroTable) -> None:
    for codec in AVRO_CODECS:
        avro.name = f"lake.t{uuid4().hex[:12]}"
        avro.add(AvroColumns([each for each in CASES if each.name == "string"]), OutputFormat.AVRO, codec)
        assert avro.spark.rows(f"select count(string) from rest.{avro.name}") == [[RECORDS]]


def test_registrations_continue_after_avro_objects_were_compacted(avro: AvroTable) -> None:
    avro.run(25, 2)
    rewritten, added, *_ = avro.call("rewrite_data_files", "options => map('rewrite-all', 'true')")
    assert (rewritten, added) == (3, 1)
    avro.run(45, 2)
    assert avro.select("offset, kind, seats") == with_kinds(expected(45, lambda offset: 2))


def test_icebergs_generic_reader_takes_timestamps_of_avro_without_a_zone_and_no_enums(avro: AvroTable) -> None:
    """Engines such as Hive use it. docs/tables.md says what they find."""
    script = """
table = spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, "rest.{}")
row = spark._jvm.org.apache.iceberg.data.IcebergGenerics.read(table).build().iterator().next()
values = [row.get(number) for number in range(row.size())]
result = [f"{{type(each).__name__}} {{each if isinstance(each, int) else each.toString()}}" for each in values]
"""
    names = ("int", "time_micros", "timestamp_millis", "timestamp_micros")
    avro.add(AvroColumns([each for each in CASES if each.name in names]), OutputFormat.AVRO)
    assert avro.spark.run(script.format(avro.name)) == [
        f"int {-(2**31)}",
        "JavaObject 00:00:00.000001",
        "JavaObject 1969-12-31T23:59:59.999",
        "JavaObject 1969-12-31T23:59:59.999999",
    ]
    avro.name = f"{avro.name}_enum"
    avro.add(AvroColumns([each for each in CASES if each.name == "enum"]), OutputFormat.AVRO)
    with pytest.raises(ServerFailedError, match=r"Unsupported type.*enum"):
        avro.spark.run(script.format(avro.name))
