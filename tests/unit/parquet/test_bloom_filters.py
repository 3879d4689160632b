"""`format.bloomFilters`: filters of the columns of row groups, as DuckDB finds them, and no false negatives."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sink_job.api.enums import CompressionCodec, OutputFormat
from sink_job.api.memory_budget import max_bloom_filter
from sink_job.api.sections.format_section import CompressionSpec, FormatSpec
from sink_job.avro.encoder import datum_encoder
from sink_job.avro.to_connect import ENUM
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.formats.datum_rows import DatumRows
from sink_job.parquet.bloom_filters import bloom_filters
from sink_job.parquet.container import ParquetCodec, ParquetContainer, parquet_codec
from sink_job.parquet.table_reader import ParquetTableReader
from tests.unit.formats.test_datum_rows import in_rounds, parts_of
from tests.unit.rotation.settings import object_settings

DATUMS = DatumSettings(OutputFormat.PARQUET)
TEXT = Schema(SchemaType.STRING, optional=True)
SYMBOLS = {ENUM: "E", f"{ENUM}.A": "A", f"{ENUM}.B": "B", f"{ENUM}.C": "C"}
INNER = Schema(SchemaType.STRUCT, name="inner", optional=True, fields=(Field("icao", TEXT),))
SCHEMA = Schema(
    SchemaType.STRUCT,
    name="r",
    fields=(
        Field("n", Schema(SchemaType.INT64)),
        Field("s", TEXT),
        Field("other", TEXT),
        Field("origin", INNER),
        Field("symbol", Schema(SchemaType.STRING, parameters=tuple(SYMBOLS.items()))),
        Field("flag", Schema(SchemaType.BOOLEAN)),
        Field("x", Schema(SchemaType.FLOAT64)),
        Field("tags", Schema(SchemaType.ARRAY, values=TEXT)),
    ),
)
FILTERED = ["n", "s", "origin.icao", "symbol", "tags.list.element"]
IGNORED = ["flag", "x", "origin", "tags", "missing", "s.missing"]
COUNT, BLOCK = 600, 12_000
READER = ParquetTableReader(SCHEMA, DATUMS, dictionaries=True)


def record(n: int) -> dict[str, Any]:
    return {
        "n": n * 1_000_003,
        "s": None if n % 5 == 0 else f"text {n}",
        "other": "o",
        "origin": None if n % 7 == 0 else {"icao": f"K{n % 100}"},
        "symbol": "AB"[n * 2 // COUNT],
        "flag": n % 2 == 0,
        "x": n / 2,
        "tags": [f"tag {n}", None],
    }


def container(fields: Sequence[str], *, block: int = BLOCK, codec: str = "Snappy") -> ParquetContainer:
    chosen = parquet_codec(
        FormatSpec(output=OutputFormat.PARQUET, compression=CompressionSpec(codec=CompressionCodec(codec)))
    )
    return ParquetContainer(READER, chosen, block_size=block, dictionary=True, bloom_filters=fields)


def rows_of(count: int) -> list[bytes]:
    encode = datum_encoder(SCHEMA, DATUMS)
    data = pa.array([encode(record(n)) for n in range(count)], pa.binary())
    rows: list[bytes] = DatumRows().encode(data).to_pylist()
    return rows


def body_of(fields: Sequence[str], **given: Any) -> bytes:
    return b"".join(parts_of(rows_of(COUNT), container(fields, **given)))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An object with all filters."""
    found = tmp_path_factory.mktemp("filters") / "x.parquet"
    found.write_bytes(body_of([*FILTERED, *IGNORED]))
    return found


@cache
def connected() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def query(sql: str, *values: object) -> list[Any]:
    found: list[Any] = connected().execute(sql, values).fetchall()
    return found


def excluded(path: Path, column: str, value: object) -> list[bool]:
    """Whether the filter of each row group says that it does not have `value`, as DuckDB reads it."""
    sql = f"select bloom_filter_excludes from parquet_bloom_probe('{path}', '{column}', ?) order by row_group_id"
    return [each for (each,) in query(sql, value)]


def test_each_row_group_has_the_filters_of_the_listed_columns_alone(path: Path) -> None:
    sql = (
        f"select path_in_schema, bloom_filter_offset is not null, count(*) from parquet_metadata('{path}') group by all"
    )
    found = {name.replace(", ", "."): (has, count) for name, has, count in query(sql)}
    groups = pq.read_metadata(path).num_row_groups
    assert groups > 2
    assert found == {
        leaf: (leaf in FILTERED, groups)
        for leaf in ("n", "s", "other", "origin.icao", "symbol", "flag", "x", "tags.list.element")
    }


@pytest.mark.parametrize("column", ["n", "s", "symbol"])
def test_a_filter_has_all_values_of_its_row_group(path: Path, column: str) -> None:
    file = pq.ParquetFile(path)
    for number in range(file.num_row_groups):
        values = {each for each in file.read_row_group(number, [column]).column(column).to_pylist() if each is not None}
        for value in sorted(values)[::20]:
            assert not excluded(path, column, value)[number]


@pytest.mark.parametrize("column", ["n", "s"])
def test_a_filter_excludes_most_values_that_its_row_group_does_not_have(path: Path, column: str) -> None:
    """One in 100 is not excluded by chance."""
    others = [1_000_003 * each + 1 if column == "n" else f"text {COUNT + each}" for each in range(30)]
    found = [each for other in others for each in excluded(path, column, other)]
    assert sum(found) > 0.95 * len(found)
    assert excluded(path, "symbol", "C") == [True] * pq.read_metadata(path).num_row_groups


@pytest.mark.parametrize("codec", ["None", "Zstd"])
def test_a_reader_finds_each_value_by_a_search(tmp_path: Path, codec: str) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(body_of(FILTERED, codec=codec))
    searched = [record(n) for n in range(1, COUNT, 60)]
    for column, value in [
        *(("n", each["n"]) for each in searched),
        *(("s", each["s"]) for each in searched if each["s"]),
        *(("origin.icao", each["origin"]["icao"]) for each in searched if each["origin"]),
    ]:
        name, _, inner = column.partition(".")
        expected = sum(
            (record(n)[name] or {}).get(inner) == value if inner else record(n)[name] == value for n in range(COUNT)
        )
        assert query(f"select count(*) from '{path}' where {column} = ?", value) == [(expected,)]
    assert query(f"select count(*) from '{path}' where s = 'nothing'") == [(0,)]


def test_the_parts_of_an_object_with_filters_do_not_depend_on_rounds_restarts_or_memory() -> None:
    rows = rows_of(300)
    expected = parts_of(rows, container(FILTERED, block=4_000), 3_000)
    assert in_rounds(rows, lambda: container(FILTERED, block=4_000), 3_000, [1, 70, 3], 100, True) == expected
    body = io.BytesIO(b"".join(expected))
    assert pq.read_table(body).to_pylist() == [record(n) for n in range(300)]


def test_a_filter_is_as_large_as_its_distinct_values_need_and_at_most_a_share_of_the_row_group() -> None:
    """A filter above the maximum keeps all values, and excludes fewer others."""
    metadata = pq.read_metadata(io.BytesIO(body_of(FILTERED, block=32_000)))
    group = metadata.row_group(0)
    sizes = {group.column(n).path_in_schema: group.column(n).bloom_filter_length for n in range(group.num_columns)}
    header = 64
    assert sizes["symbol"] <= 32 + header
    assert sizes["origin.icao"] < sizes["s"] <= max_bloom_filter(32_000) + header
    small = body_of(["s"], block=8_000)
    lengths = [pq.read_metadata(io.BytesIO(small)).row_group(0).column(1).bloom_filter_length]
    assert lengths[0] <= max_bloom_filter(8_000) + header


def test_without_filters_bytes_are_those_of_an_object_whose_fields_have_none() -> None:
    assert body_of(()) == body_of(IGNORED)


def test_filters_are_a_setting_of_an_object() -> None:
    """A driver with other filters first finishes the open objects (P8)."""
    form = {"converter": "ConnectJson", "output": "Parquet"}
    assert (
        object_settings(format={**form, "parquet": {"bloomFilters": ["a.b"]}}).model_dump_json()
        != object_settings(format=form).model_dump_json()
    )


def test_columns_whose_path_is_the_same_have_a_filter_each() -> None:
    """Names can contain dots."""
    schema = Schema(SchemaType.STRUCT, name="r", fields=(Field("origin.icao", TEXT), Field("origin", INNER)))
    encoder = ParquetContainer(
        ParquetTableReader(schema, DATUMS),
        ParquetCodec("none"),
        block_size=BLOCK,
        dictionary=True,
        bloom_filters=["origin.icao"],
    )
    encode = datum_encoder(schema, DATUMS)
    data = [encode({"origin.icao": f"A{n}", "origin": {"icao": f"B{n % 3}"}}) for n in range(100)]
    body = b"".join(parts_of(DatumRows().encode(pa.array(data, pa.binary())).to_pylist(), encoder))
    group = pq.read_metadata(io.BytesIO(body)).row_group(0)
    assert all(group.column(number).bloom_filter_offset for number in range(2))


@pytest.mark.parametrize("order", [("origin.icao", "origin"), ("origin", "origin.icao")])
def test_the_filters_of_columns_with_the_same_path_are_made_for_the_one_with_more_values(order: Sequence[str]) -> None:
    columns = {"origin.icao": pa.array(["A"] + [None] * 49), "origin": pa.array([{"icao": f"B{n}"} for n in range(50)])}
    table = pa.table({name: columns[name] for name in order})
    found = bloom_filters(table, ["origin.icao"], block_size=1 << 20)
    assert found is not None
    assert found["origin.icao"]["ndv"] == 50
