"""Every type in Avro and Parquet objects, with each compression, as Java's libraries find it: Spark, parquet-java and
Avro for Java. They are the readers of Trino, Hive and Flink, too."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import fastavro
import pytest
from py4j.java_gateway import JVMView
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from sink_job.api.enums import OutputFormat
from sink_job.connect.output_settings import DatumSettings
from sink_job.writer.record_pipeline import PreparedBatch
from tests.unit.avro.avro_data import without_logical_types
from tests.unit.codecs.typed_cases import Case
from tests.unit.codecs.typed_objects import (
    ALL,
    AVRO_CODECS,
    INFERRED_BY_SPARK,
    PARQUET_CODECS,
    RECORDS,
    SOURCES,
    Columns,
    avro_schema_of,
    expected,
    object_of,
    rows,
    turn,
)
from tests.unit.envelope import test_null_records
from tests.unit.envelope.enveloped import Consumed, prepare
from tests.unit.parquet import test_encodings

pytestmark = [pytest.mark.data, pytest.mark.spark]

CODECS = [codec for codec in PARQUET_CODECS if codec != "Brotli"]
"""parquet-java has no Brotli."""
NOT_INFERRED: Sequence[Case] = [each for each in ALL.cases if not each.spark_infers]


def stored(columns: Columns, output: OutputFormat, codec: str, folder: Path) -> str:
    path = folder / f"x.{output.lower()}"
    path.write_bytes(object_of(columns, output, codec))
    return str(path)


@pytest.mark.parametrize("codec", CODECS)
def test_spark_infers_the_types_and_finds_the_values(sql: SparkSession, tmp_path: Path, codec: str) -> None:
    for columns in (INFERRED_BY_SPARK, SOURCES["Protobuf"], SOURCES["ConnectJson"]):
        found = sql.read.parquet(stored(columns, OutputFormat.PARQUET, codec, tmp_path))
        assert {each.name: each.dataType.simpleString() for each in found.schema} == {
            each.name: each.spark for each in columns.cases
        }
        assert rows(found.toArrow(), columns) == expected(columns)


@pytest.mark.parametrize("codec", CODECS)
def test_spark_reads_the_other_types_with_a_schema(sql: SparkSession, tmp_path: Path, codec: str) -> None:
    """Times of day and nanoseconds as integers, UUIDs as bytes."""
    schema = ", ".join(f"{each.name} {each.spark}" for each in NOT_INFERRED)
    found = sql.read.schema(schema).parquet(stored(ALL, OutputFormat.PARQUET, codec, tmp_path)).toArrow()
    raw = {each.name: tuple(of.bytes if each.spark == "binary" else of for of in _raw(each)) for each in NOT_INFERRED}
    assert found.to_pylist() == [{name: values[turn(n)] for name, values in raw.items()} for n in range(RECORDS)]


def _raw(case: Case) -> tuple[Any, ...]:
    """Milliseconds are in microseconds in Parquet."""
    if case.name == "time_millis":
        return tuple(1_000 * each for each in case.values)
    return case.read if case.spark == "binary" else case.values


def test_spark_reads_deltas_and_dictionaries(sql: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(test_encodings.body())
    assert sql.read.parquet(str(path)).toArrow().to_pylist() == test_encodings.RECORDS


def test_spark_distinguishes_no_value_from_null_also_in_objects_without_values(
    sql: SparkSession, tmp_path: Path
) -> None:
    found = test_null_records.pipeline(output="Parquet")
    for name, values in (("a", [test_null_records.flight(7, 2), None, test_null_records.NULL_OF_AVRO]), ("b", [None])):
        prepared = prepare(found, [Consumed(value) for value in values])
        (tmp_path / f"{name}.parquet").write_bytes(
            test_null_records.object_of(
                found, prepared, test_null_records.first_schema(prepared) or null_schema(prepared)
            )
        )
    rows_ = sql.read.option("mergeSchema", True).parquet(str(tmp_path)).select("valueIsNull", "value.number").collect()
    assert sorted(map(tuple, rows_), key=repr) == [(False, 7), (False, None), (True, None), (True, None)]


def null_schema(prepared: PreparedBatch) -> str:
    """The schema of objects without values."""
    assert prepared.rows.nulls is not None
    return prepared.rows.schema_ids[prepared.rows.nulls.schema]


@pytest.mark.parametrize("name", ["uuid", "timestamp_nanos"])
def test_spark_does_not_infer_some_types(sql: SparkSession, tmp_path: Path, name: str) -> None:
    """As in docs/schemas.md. A version that infers them makes this test fail, so that the page is changed."""
    column = next(each for each in NOT_INFERRED if each.name == name)
    with pytest.raises(AnalysisException, match="Illegal Parquet type"):
        sql.read.parquet(stored(type(ALL)([column]), OutputFormat.PARQUET, "Snappy", tmp_path))


def jvm_of(sql: SparkSession) -> JVMView:
    found = sql._jvm
    assert found is not None
    return found


@pytest.mark.parametrize("source", SOURCES)
def test_parquet_java_finds_the_types_and_field_ids_in_the_footer(
    sql: SparkSession, tmp_path: Path, source: str
) -> None:
    columns, java = SOURCES[source], jvm_of(sql)
    path = java.org.apache.hadoop.fs.Path(stored(columns, OutputFormat.PARQUET, "Snappy", tmp_path))
    file = java.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(
        path, java.org.apache.hadoop.conf.Configuration()
    )
    reader = java.org.apache.parquet.hadoop.ParquetFileReader.open(file)
    try:
        fields = reader.getFooter().getFileMetaData().getSchema().getFields()
        found = [(each.getId().intValue(), _without_ids(each.toString())) for each in fields]
        groups = [each.getRowCount() for each in reader.getRowGroups()]
    finally:
        reader.close()
    assert [text for _, text in found] == [_footer(each) for each in columns.cases]
    ids = [number for number, _ in found]
    assert (ids[0], ids) == (1, sorted(set(ids)))
    assert sum(groups) == RECORDS


def _footer(case: Case) -> str:
    text = case.footer.replace("_ ", f"{case.name} ") if "_ " in case.footer else case.footer[:-1] + case.name
    return text if text.startswith(("optional ", "required ")) else f"required {text}"


def _without_ids(text: str) -> str:
    """On one line, without ` = 5` behind the names."""
    words = text.replace(";", " ;").split()
    kept = [each for at, each in enumerate(words) if each != "=" and (at == 0 or words[at - 1] != "=")]
    return " ".join(kept).replace(" ;", ";")


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("codec", AVRO_CODECS)
def test_avro_for_java_finds_the_types_and_values(sql: SparkSession, tmp_path: Path, codec: str, source: str) -> None:
    columns, avro = SOURCES[source], jvm_of(sql).org.apache.avro
    file = jvm_of(sql).java.io.File(stored(columns, OutputFormat.AVRO, codec, tmp_path))
    reader = avro.file.DataFileReader(file, avro.generic.GenericDatumReader())
    try:
        schema = json.loads(reader.getSchema().toString())
        found = [json.loads(reader.next().toString()) for _ in range(RECORDS)]
        assert not reader.hasNext()
    finally:
        reader.close()
    assert fastavro.parse_schema(schema) == avro_schema_of(columns)
    assert all(map(_is_equal, found, _without_logical_types(columns)))


def _without_logical_types(columns: Columns) -> Iterator[Any]:
    """The records as fastavro reads their data."""
    schema = fastavro.parse_schema(without_logical_types(avro_schema_of(columns)))
    for data in columns.datums(DatumSettings())[1].to_pylist():
        yield fastavro.schemaless_reader(io.BytesIO(data), schema)


def _is_equal(java: Any, value: Any) -> bool:
    """Whether a value of Java's text of a record is this one: bytes are a text, a fixed is a list of signed bytes."""
    match value:
        case dict():
            return java.keys() == value.keys() and all(_is_equal(java[name], each) for name, each in value.items())
        case list():
            return len(java) == len(value) and all(map(_is_equal, java, value))
        case bytes():
            return (java.encode("latin-1") if isinstance(java, str) else bytes(each & 255 for each in java)) == value
        case float():
            return repr(float(java)) == repr(value)
    return type(java) is type(value) and bool(java == value)
