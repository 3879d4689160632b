"""The statements of Hive and Athena. Spark's parser of Hive's statements accepts them in tests/data/test_ddl.py."""

from __future__ import annotations

from sink_job.api.enums import CompressionCodec, OutputFormat
from sink_job.ddl.dialects.hive import athena, avro_literal, hive, lowest_date
from sink_job.ddl.table import PathColumn, Projection, TableColumn
from tests.unit.ddl.tables import EVERY_TYPE, HOURLY, UNNAMED, I, S, json_table, table, text_table

AVRO = '{"type":"record","name":"r","fields":[{"name":"n","type":"int"},{"name":"Carrier","type":"string"}]}'


def test_athena_lists_no_partitions() -> None:
    assert (athena(table(paths=HOURLY)).text or "").splitlines() == [
        "CREATE EXTERNAL TABLE IF NOT EXISTS `flights` (",
        "  `n` int",
        ")",
        "PARTITIONED BY (`dt` string, `hour` int, `carrier` string)",
        "STORED AS PARQUET",
        "LOCATION 's3://lake/topics/flights/'",
        "TBLPROPERTIES (",
        "  'projection.enabled' = 'true',",
        "  'projection.dt.type' = 'date',",
        "  'projection.dt.format' = 'yyyy-MM-dd',",
        "  'projection.dt.range' = '2000-01-01,NOW',",
        "  'projection.dt.interval' = '1',",
        "  'projection.dt.interval.unit' = 'DAYS',",
        "  'projection.hour.type' = 'integer',",
        "  'projection.hour.range' = '0,23',",
        "  'projection.hour.digits' = '2',",
        "  'projection.carrier.type' = 'injected',",
        "  'storage.location.template' = 's3://lake/topics/flights/dt=${dt}/hour=${hour}/carrier=${carrier}'",
        ");",
    ]


def test_athena_has_columns_for_a_path_without_names() -> None:
    found = athena(table(paths=UNNAMED))
    assert "'storage.location.template' = 's3://lake/topics/flights/${year}'" in (found.text or "")
    assert found.gaps == []


def test_hive_has_texts_in_its_path_and_no_projection() -> None:
    found = hive(table(paths=HOURLY))
    assert "PARTITIONED BY (`dt` string, `hour` string, `carrier` string)" in (found.text or "")
    assert "projection" not in (found.text or "")
    assert "MSCK REPAIR TABLE `flights`" in found.notes[0]
    assert hive(table(paths=UNNAMED)).gaps


def test_each_type_has_a_name() -> None:
    found = hive(table(columns=EVERY_TYPE))
    assert found.gaps == []
    for text in ("`decimal` decimal(10,2)", "`map` map<string,bigint>", "`struct` struct<a:int, b:string>"):
        assert text in (found.text or "")


def test_an_avro_schema_is_without_the_fields_of_the_path() -> None:
    found = table(
        output=OutputFormat.AVRO,
        codec=CompressionCodec.NONE,
        avro=AVRO,
        columns=(TableColumn("n", I), TableColumn("Carrier", S)),
    )
    assert avro_literal(found, HOURLY) == '{"type":"record","name":"r","fields":[{"name":"n","type":"int"}]}'
    assert avro_literal(table(), HOURLY) is None
    for statement in (hive(found), athena(found)):
        assert "avro.schema.literal" in (statement.text or "")


def test_json_has_the_serde_of_the_engine_and_values_without_a_schema_are_lines() -> None:
    assert "org.openx.data.jsonserde.JsonSerDe" in (athena(json_table()).text or "")
    assert "org.apache.hadoop.hive.serde2.JsonSerDe" in (hive(json_table()).text or "")
    assert "FIELDS TERMINATED BY '\\001'" in (athena(text_table()).text or "")
    assert "`line` string" in (hive(text_table()).text or "")


def test_a_path_element_with_another_name_is_a_gap_and_ends_the_projection() -> None:
    found = athena(table(paths=(PathColumn("origin.country", Projection.INJECTED, "origin.country={}"),)))
    assert "the path element origin.country={} is no column" in found.gaps[0]
    assert "projection" not in (found.text or "")


def test_the_first_date_has_the_pattern() -> None:
    each = PathColumn("h", Projection.DATE, "h={}", pattern="yyyy-MM-dd'T'HH", unit="HOURS")
    assert lowest_date(each) == "2000-01-01T00"
