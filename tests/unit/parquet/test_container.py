"""Parquet objects: row groups that are encoded one at a time at their offsets, and a footer that joins them."""

from __future__ import annotations

import io
from collections.abc import Collection
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from sink_job.api.enums import CompressionCodec, OutputFormat
from sink_job.api.sections.format_section import CompressionSpec, FormatSpec, ParquetSpec
from sink_job.avro.encoder import datum_encoder
from sink_job.avro.to_connect import ENUM
from sink_job.codecs.containers import container_encoder
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.formats import block_rows
from sink_job.formats.block_rows import BlockRows
from sink_job.formats.datum_rows import DatumRows
from sink_job.parquet.container import ParquetCodec, ParquetContainer, parquet_codec
from sink_job.parquet.table_reader import ParquetTableReader
from tests.unit.formats.test_datum_rows import in_rounds, parts_of

DATUMS = DatumSettings(OutputFormat.PARQUET)
SCHEMA = Schema(
    SchemaType.STRUCT,
    name="r",
    fields=(
        Field("n", Schema(SchemaType.INT64)),
        Field("s", Schema(SchemaType.STRING, optional=True)),
        Field("l", Schema(SchemaType.ARRAY, values=Schema(SchemaType.INT32))),
    ),
)
CODECS = ["None", "Snappy", "Gzip", "Zstd", "Lz4", "Brotli"]
IN_FILE = {"None": "UNCOMPRESSED", "Lz4": "LZ4_RAW"}
RECORDS = [{"n": n, "s": None if n % 3 == 0 else f"text {n % 7}", "l": [n, -n]} for n in range(400)]
READER = ParquetTableReader(SCHEMA, DATUMS)


def parquet(
    codec: str = "Snappy", *, block: int = 2_000, dictionary: bool = True, bloom_filters: Collection[str] = ()
) -> ParquetContainer:
    settings = FormatSpec(output=OutputFormat.PARQUET, compression=CompressionSpec(codec=CompressionCodec(codec)))
    return ParquetContainer(
        READER, parquet_codec(settings), block_size=block, dictionary=dictionary, bloom_filters=bloom_filters
    )


def rows_of(records: list[dict[str, Any]]) -> list[bytes]:
    encode = datum_encoder(SCHEMA, DATUMS)
    rows: list[bytes] = DatumRows().encode(pa.array(map(encode, records), pa.binary())).to_pylist()
    return rows


def body_of(records: list[dict[str, Any]], encoder: ParquetContainer) -> bytes:
    return b"".join(parts_of(rows_of(records), encoder))


def query(sql: str) -> list[Any]:
    with duckdb.connect() as connection:
        rows: list[Any] = connection.execute(sql).fetchall()
    return rows


@given(
    st.lists(
        st.fixed_dictionaries({"n": st.integers(0, 9), "s": st.none() | st.text(max_size=9), "l": st.just([])}),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from(CODECS),
    st.integers(1, 200),
    st.integers(10, 2_000),
    st.lists(st.integers(1, 20), max_size=4),
    st.booleans(),
)
def test_parts_of_a_parquet_object_do_not_depend_on_rounds_restarts_or_memory(
    records: list[dict[str, Any]], codec: str, block: int, part_size: int, rounds: list[int], compact: bool
) -> None:
    rows = rows_of(records)
    expected = parts_of(rows, parquet(codec, block=block), part_size)
    assert in_rounds(rows, lambda: parquet(codec, block=block), part_size, rounds, 100, compact) == expected
    assert pq.read_table(io.BytesIO(b"".join(expected))).to_pylist() == records


@pytest.mark.parametrize("codec", CODECS)
def test_duckdb_reads_the_rows_and_their_metadata(tmp_path: Path, codec: str) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(body_of(RECORDS, parquet(codec)))
    read = query(f"select n, s, l from '{path}'")
    assert read == [(record["n"], record["s"], record["l"]) for record in RECORDS]
    found = query(f"select distinct compression from parquet_metadata('{path}')")
    assert found == [(IN_FILE.get(codec, codec.upper()),)]


def test_duckdb_skips_row_groups_by_their_statistics(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(body_of(RECORDS, parquet()))
    of_n = f"from parquet_metadata('{path}') where path_in_schema = 'n'"
    bounds = query(f"select stats_min_value::int, stats_max_value::int {of_n} order by row_group_id")
    assert len(bounds) > 3
    assert [low for low, _ in bounds] == [0, *(high + 1 for _, high in bounds[:-1])]
    assert query(f"select count(*), sum(n) from '{path}' where n between 150 and 260") == [(111, sum(range(150, 261)))]


def test_row_groups_are_adjacent_and_have_page_indexes() -> None:
    metadata = pq.ParquetFile(io.BytesIO(body_of(RECORDS, parquet()))).metadata
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    assert all(column.has_offset_index and column.has_column_index for column in columns(groups))
    starts = [group.column(0).dictionary_page_offset or group.column(0).data_page_offset for group in groups]
    ends = [max(end_of(column) for column in columns([group])) for group in groups]
    assert starts[0] == 4
    assert all(0 <= start - end < 500 for end, (_, start) in zip(ends, pairwise(starts), strict=False))


def columns(groups: list[Any]) -> list[Any]:
    return [group.column(number) for group in groups for number in range(group.num_columns)]


def end_of(column: Any) -> int:
    first: int = column.dictionary_page_offset or column.data_page_offset
    return first + int(column.total_compressed_size)


def test_a_row_group_ends_with_the_first_row_that_reaches_its_size() -> None:
    records = [{"n": 1, "s": "x" * 10, "l": []}] * 7
    body = body_of(records, parquet(block=3 * len(rows_of(records)[0]) - 1))
    metadata = pq.read_metadata(io.BytesIO(body))
    assert [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)] == [3, 3, 1]


@pytest.mark.parametrize("dictionary", [True, False])
def test_dictionary_pages_can_be_disabled(dictionary: bool) -> None:
    records = [{**each, "s": "a text that repeats"} for each in RECORDS]
    metadata = pq.read_metadata(io.BytesIO(body_of(records, parquet(dictionary=dictionary))))
    assert metadata.row_group(0).column(1).has_dictionary_page == dictionary


def test_the_footer_has_no_metadata_of_arrow_and_the_field_ids_of_the_schema() -> None:
    file = pq.ParquetFile(io.BytesIO(body_of(RECORDS, parquet())))
    assert file.metadata.metadata is None
    assert [file.schema_arrow.field(name).metadata[b"PARQUET:field_id"] for name in "nsl"] == [b"1", b"2", b"3"]


def test_a_row_group_can_begin_behind_4_gib() -> None:
    """Its metadata has its offset; the bytes before it are never in memory."""
    position = (5 << 30) + 4
    block = parquet().block(BlockRows.of(pa.array(rows_of(RECORDS[:10]), pa.binary())), position)
    metadata = pq.read_metadata(io.BytesIO(block.index))
    assert metadata.row_group(0).column(0).data_page_offset == position
    assert len(block.data) < 10_000


def test_an_object_can_have_the_maximum_depth_of_lists() -> None:
    lists = Schema(SchemaType.INT32)
    value: object = 1
    for _ in range(49):
        lists, value = Schema(SchemaType.ARRAY, values=lists), [value]
    schema = Schema(SchemaType.STRUCT, fields=(Field("f", lists),))
    encoder = ParquetContainer(
        ParquetTableReader(schema, DATUMS),
        parquet_codec(FormatSpec()),
        block_size=1,
        dictionary=True,
    )
    row = DatumRows().encode(pa.array([datum_encoder(schema, DATUMS)({"f": value})], pa.binary()))
    body = b"".join(parts_of(row.to_pylist(), encoder))
    assert pq.read_table(io.BytesIO(body)).to_pylist() == [{"f": value}]


def test_a_codec_that_parquet_does_not_have_is_an_error() -> None:
    with pytest.raises(ValueError, match="the output Parquet has no compression Bzip2"):
        parquet("Bzip2")


SYMBOLS = [letter * 10_000 for letter in "ABC"]
COLOUR = Schema(
    SchemaType.STRING, optional=True, parameters=((ENUM, "E"), *((f"{ENUM}.{each}", each) for each in SYMBOLS))
)
ENUM_SCHEMA = Schema(
    SchemaType.STRUCT,
    name="r",
    fields=(
        Field("e", COLOUR),
        Field("l", Schema(SchemaType.ARRAY, values=COLOUR)),
        Field("m", Schema(SchemaType.MAP, keys=COLOUR, values=COLOUR)),
        Field(
            "s",
            Schema(
                SchemaType.STRUCT,
                name="i",
                optional=True,
                fields=(Field("e", structs.replace(COLOUR, optional=False)),),
            ),
        ),
    ),
)


def enum_block(records: list[dict[str, Any]], *, dictionary: bool) -> bytes:
    settings = FormatSpec(output=OutputFormat.PARQUET, parquet=ParquetSpec(dictionary=dictionary))
    encode = datum_encoder(ENUM_SCHEMA, DATUMS)
    rows = DatumRows().encode(pa.array(map(encode, records), pa.binary())).to_pylist()
    return b"".join(parts_of(rows, container_encoder(settings, ENUM_SCHEMA)("key")))


@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("count", [2, 100], ids=["row-wise", "column-wise"])
def test_enums_are_texts_for_a_reader(dictionary: bool, count: int) -> None:
    a, b, _ = SYMBOLS
    one: dict[str, Any] = {"e": a, "l": [b, None], "m": {a: b}, "s": {"e": b}}
    other: dict[str, Any] = {"e": None, "l": [], "m": {}, "s": None}
    records = [one, other] * (count // 2)
    body = enum_block(records, dictionary=dictionary)
    found = pq.read_table(io.BytesIO(body))
    assert [{**row, "m": dict(row["m"])} for row in found.to_pylist()] == records
    assert found.schema.field("e").type == pa.string()


@pytest.mark.parametrize("dictionary", [True, False])
def test_arrays_of_symbols_are_written_whose_texts_have_more_than_2_gib(dictionary: bool) -> None:
    count = (1 << 31) // 10_000 + 1
    one: dict[str, Any] = {"e": None, "m": {}, "s": None}
    rows = [datum_encoder(ENUM_SCHEMA, DATUMS)({**one, "l": SYMBOLS[:1] * each}) for each in (1, count)]
    prefixed = DatumRows().encode(pa.array(rows, pa.binary())).to_pylist()
    settings = FormatSpec(output=OutputFormat.PARQUET, parquet=ParquetSpec(dictionary=dictionary))
    body = b"".join(parts_of(prefixed, container_encoder(settings, ENUM_SCHEMA)("key")))
    assert len(body) < 1 << 20
    metadata = pq.read_metadata(io.BytesIO(body))
    paths = [metadata.row_group(0).column(number).path_in_schema for number in range(metadata.num_columns)]
    assert metadata.row_group(0).column(paths.index("l.list.element")).num_values == count + 1


WIDE = Schema(
    SchemaType.STRUCT,
    name="w",
    fields=tuple(Field(f"f{n}", Schema(SchemaType.INT64, optional=True)) for n in range(100)),
)


def test_a_block_is_several_row_groups_if_its_columns_are_much_larger_than_its_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(block_rows, "DATUM_BATCH", 1_000)
    encode = datum_encoder(WIDE, DATUMS)
    rows = DatumRows().encode(pa.array([encode({"f1": n}) for n in range(200)], pa.binary())).to_pylist()
    encoder = ParquetContainer(
        ParquetTableReader(WIDE, DATUMS), ParquetCodec("none"), block_size=10_000, dictionary=True
    )
    parts = parts_of(rows, encoder)
    assert in_rounds(rows, lambda: encoder, 100, [13, 50, 51, 160], 100, True) == parts
    file = pq.ParquetFile(io.BytesIO(b"".join(parts)))
    groups = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
    assert groups == [20, 20, 20, 20, 15, 20, 20, 20, 20, 15, 10]
    assert file.read(["f1"]).to_pylist() == [{"f1": n} for n in range(200)]
    columns = [file.metadata.row_group(number).column(1) for number in range(file.num_row_groups)]
    assert all(column.has_offset_index and column.has_column_index for column in columns)
