"""Every type in Avro and Parquet objects, with each compression, as independent readers find it.

Spark, parquet-java and Avro for Java are in tests/data/test_java_readers.py.
"""

from __future__ import annotations

import io
import re
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import fastavro
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sink_job.api.enums import OutputFormat
from tests.unit.codecs.typed_cases import CASES, Case
from tests.unit.codecs.typed_objects import (
    ALL,
    AVRO_CODECS,
    PARQUET_CODECS,
    RECORDS,
    SOURCES,
    AvroColumns,
    Columns,
    avro_schema_of,
    expected,
    object_of,
    rows,
)


def by_duckdb(path: Path) -> tuple[dict[str, str], pa.Table]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found = connection.sql(f"select * from '{path}'")
        return dict(zip(found.columns, map(str, found.types), strict=True)), found.to_arrow_table()


def by_polars(path: Path) -> tuple[dict[str, str], pa.Table]:
    found = pl.read_parquet(path)
    return {name: str(of) for name, of in found.schema.items()}, found.to_arrow()


def by_pyarrow(path: Path) -> tuple[dict[str, str], pa.Table]:
    found = pq.read_table(path)
    types = {field.name: re.sub(r" not null(?=>$)", "", str(field.type)) for field in found.schema}
    return types, found


READERS = {"duckdb": by_duckdb, "polars": by_polars, "arrow": by_pyarrow}


def stored(columns: Columns, codec: str, folder: Path) -> Path:
    path = folder / "x.parquet"
    path.write_bytes(object_of(columns, OutputFormat.PARQUET, codec))
    return path


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("codec", PARQUET_CODECS)
def test_a_reader_finds_the_types_and_values_of_parquet(tmp_path: Path, codec: str, reader: str, source: str) -> None:
    columns = SOURCES[source]
    types, found = READERS[reader](stored(columns, codec, tmp_path))
    assert types == {each.name: getattr(each, reader) for each in columns.cases}
    assert rows(found, columns) == expected(columns)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("codec", AVRO_CODECS)
def test_fastavro_finds_the_types_and_values_of_avro(codec: str, source: str) -> None:
    columns = SOURCES[source]
    reader = fastavro.reader(io.BytesIO(object_of(columns, OutputFormat.AVRO, codec)))
    assert fastavro.parse_schema(reader.writer_schema) == avro_schema_of(columns)
    assert rows(reader, columns) == expected(columns, in_avro=True)


@pytest.mark.parametrize("codec", ["None", "Deflate", "Snappy"])
def test_polars_finds_the_values_of_avro(codec: str) -> None:
    """It has no other compressions, no maps, no unions of several types, and no decimals of more than 38 digits."""
    missing = {"map", "union", "decimal_64"}
    columns = AvroColumns([each for each in CASES if each.name not in missing])
    found = pl.read_avro(io.BytesIO(object_of(columns, OutputFormat.AVRO, codec)))
    assert rows(found.to_dicts(), columns) == expected(columns, in_avro=True)


# -- footers, by DuckDB ------------------------------------------------------------------------------------------------

PHYSICAL = {"binary": "BYTE_ARRAY", "fixed_len_byte_array": "FIXED_LEN_BYTE_ARRAY", "group": None}
FLAT = [each for each in ALL.cases if not each.footer.startswith(("group", "optional"))]


def query(sql: str, *values: object) -> list[Any]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found: list[Any] = connection.execute(sql, values).fetchall()
    return found


def storage(case: Case) -> tuple[str, str | None, str | None, str | None]:
    """Name, repetition, physical type and its length, as DuckDB reports them."""
    found = re.match(r"(?:(optional|required) )?(\w+)(?:\((\d+)\))? _", case.footer)
    assert found
    kind = PHYSICAL.get(found[2], found[2].upper())
    return case.name, (found[1] or "required").upper(), kind, found[3]


@pytest.mark.parametrize("source", SOURCES)
def test_a_footer_has_the_storage_of_each_column(tmp_path: Path, source: str) -> None:
    columns = SOURCES[source]
    path = stored(columns, "Snappy", tmp_path)
    found = query(f"select name, repetition_type, type, type_length, field_id from parquet_schema('{path}')")
    assert {storage(each) for each in columns.cases} <= {each[:4] for each in found}
    ids = [each[4] for each in found if each[4] is not None]
    assert ids == [*range(1, len(ids) + 1)]


@pytest.mark.parametrize("codec", PARQUET_CODECS)
def test_column_chunks_follow_one_another_and_count_the_records(tmp_path: Path, codec: str) -> None:
    path = stored(ALL, codec, tmp_path)
    chunks = query(
        "select row_group_id, coalesce(dictionary_page_offset, data_page_offset), total_compressed_size, compression"
        f" from parquet_metadata('{path}') order by row_group_id, column_id"
    )
    ((records, groups, size, footer),) = query(
        f"select num_rows, num_row_groups, file_size_bytes, footer_size from parquet_file_metadata('{path}')"
    )
    assert (records, groups) == (RECORDS, len({each[0] for each in chunks}))
    assert groups > 3
    assert chunks[0][1] == 4
    for (group, start, length, _), (next_group, next_start, *_) in pairwise(chunks):
        assert (start + length == next_start) if group == next_group else (start + length <= next_start)
    assert chunks[-1][1] + chunks[-1][2] <= size - footer - 8
    assert {each[3] for each in chunks} == {{"None": "UNCOMPRESSED", "Lz4": "LZ4_RAW"}.get(codec, codec.upper())}


@pytest.mark.parametrize("case", FLAT, ids=[each.name for each in FLAT])
def test_statistics_keep_the_records_that_a_filter_needs(tmp_path: Path, case: Case) -> None:
    """DuckDB and polars skip row groups by their bounds."""
    path = stored(ALL, "Snappy", tmp_path)
    column = pl.scan_parquet(path).select(case.name)
    of_polars = column.collect_schema()[case.name]
    for value in case.read:
        by_text: Any = str(value) if case.name.endswith("nanos") else value
        literal = f"cast(? as {case.duckdb})"
        assert query(f"select count(*) from '{path}' where {case.name} = {literal}", by_text) == [(RECORDS // 2,)]
        number: Any = value.value if case.name.endswith("nanos") else value
        exact = pl.lit(number.bytes if isinstance(number, UUID) else number).cast(of_polars)
        assert column.filter(pl.col(case.name) == exact).collect().height == RECORDS // 2
