"""The encoding of each column of a row group: what becomes smaller, as a function of its values."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sink_job.api.enums import OutputFormat
from sink_job.api.sections.format_section import FormatSpec, ParquetSpec
from sink_job.avro.encoder import datum_encoder
from sink_job.codecs.containers import container_encoder
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.formats.datum_rows import DatumRows
from sink_job.parquet.encodings import DELTA, column_encodings
from tests.unit.formats.test_datum_rows import parts_of

ROWS = 20_000
RNG = np.random.default_rng(1)
IDS = np.arange(ROWS) + 10**9
UNIQUE = [random.Random(n).randbytes(16).hex() for n in range(ROWS)]
TIMES = pa.array(1_700_000_000_000_000 + 1_000 * np.cumsum(RNG.integers(0, 20, ROWS)))
COLUMNS: dict[str, tuple[pa.Array, str]] = {
    "ascending integers": (pa.array(IDS), DELTA),
    "times": (TIMES.view(pa.timestamp("us", "UTC")), DELTA),
    "days": (pa.array((IDS % 10_000).astype(np.int32)).view(pa.date32()), DELTA),
    "integers with nulls": (pa.array(IDS, mask=IDS % 3 == 0), DELTA),
    "some integers": (pa.array(RNG.integers(0, 9, ROWS) * 10**12), "dictionary"),
    "arbitrary integers": (pa.array(RNG.integers(-(2**62), 2**62, ROWS)), "plain"),
    "some texts": (pa.array([f"carrier {n}" for n in RNG.integers(0, 9, ROWS)]), "dictionary"),
    "5,000 texts": (pa.array([f"customer {n:016}" for n in RNG.integers(0, 5_000, ROWS)]), "dictionary"),
    "a dictionary just below its limit": (
        pa.array([f"{n:016}" for n in RNG.integers(0, 50_000, 300_000)]),
        "dictionary",
    ),
    "texts in turn": (pa.array([f"device {n % 4_000}" for n in range(ROWS)]), "dictionary"),
    "unique texts": (pa.array(UNIQUE), "plain"),
    "long texts": (pa.array([UNIQUE[n] * 10_000 for n in range(50)]), "plain"),
    "some floats": (pa.array(RNG.integers(0, 99, ROWS) / 10), "dictionary"),
    "arbitrary floats": (pa.array(RNG.random(ROWS)), "plain"),
    "booleans": (pa.array(IDS % 2 == 0), "plain"),
    "nulls": (pa.nulls(ROWS, pa.int64()), "dictionary"),
    "one value": (pa.array([1]), "plain"),
    "no values": (pa.array([], pa.string()), "dictionary"),
    "the limits of 64 bits": (pa.array(np.where(IDS % 2, 2**63 - 1, -(2**63))), "dictionary"),
    "uuids": (pa.ExtensionArray.from_storage(pa.uuid(), pa.array(map(bytes.fromhex, UNIQUE), pa.binary(16))), "plain"),
    "decimals": (pa.array(IDS).cast(pa.decimal128(38, 0)), "plain"),
}


def encoding(column: pa.Array, **settings: bool) -> str:
    found = column_encodings(pa.table({"a": column}), **{"dictionary": True, "compresses": True, **settings})
    return "dictionary" if found.dictionaries else found.encodings.get("a", "plain")


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_has_the_encoding_that_makes_it_smaller(name: str) -> None:
    column, expected = COLUMNS[name]
    assert encoding(column) == expected


def test_a_column_has_no_dictionary_without_the_setting() -> None:
    assert {encoding(column, dictionary=False) for column, _ in COLUMNS.values()} == {"plain", DELTA}


def test_a_choice_does_not_depend_on_the_chunks_of_a_column() -> None:
    whole = pa.table({name: column for name, (column, _) in COLUMNS.items() if len(column) == ROWS and name != "uuids"})
    parts = pa.concat_tables([whole.slice(start, 777) for start in range(0, ROWS, 777)])
    copied = pa.concat_tables([pa.Table.from_batches(parts.slice(0, 9_999).to_batches()), parts.slice(9_999)])
    settings = {"dictionary": True, "compresses": True}
    assert column_encodings(parts, **settings) == column_encodings(copied, **settings)


def test_two_columns_whose_paths_are_equal_have_one_encoding() -> None:
    """A name can contain dots. The encoding of one type must not be applied to another one."""
    both = pa.table({"a.b": pa.array(IDS), "a": pa.array([{"b": each} for each in UNIQUE])})
    assert column_encodings(both, dictionary=True, compresses=True).encodings == {}


SCHEMA = Schema(
    SchemaType.STRUCT,
    name="r",
    fields=(
        Field("id", Schema(SchemaType.INT64)),
        Field("text", Schema(SchemaType.STRING)),
        Field("some", Schema(SchemaType.STRING, optional=True)),
        Field("list", Schema(SchemaType.ARRAY, values=Schema(SchemaType.INT32))),
    ),
)
RECORDS: list[dict[str, Any]] = [
    {"id": int(IDS[n]), "text": UNIQUE[n], "some": None if n % 5 else "five", "list": [n, n + 1]} for n in range(5_000)
]


def body(*, dictionary: bool = True) -> bytes:
    settings = FormatSpec(output=OutputFormat.PARQUET, parquet=ParquetSpec(dictionary=dictionary))
    datums = DatumSettings.of(settings)
    assert datums
    rows = DatumRows().encode(pa.array(map(datum_encoder(SCHEMA, datums), RECORDS), pa.binary())).to_pylist()
    return b"".join(parts_of(rows, container_encoder(settings, SCHEMA)("key"), 1 << 20))


def test_an_object_has_the_encodings_of_its_columns_and_readers_find_the_values(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(body())
    metadata = pq.read_metadata(path).row_group(0)
    encodings = [set(metadata.column(number).encodings) for number in range(4)]
    assert [DELTA in each for each in encodings] == [True, False, False, True]
    assert [metadata.column(number).has_dictionary_page for number in range(4)] == [False, False, True, False]
    with duckdb.connect() as connection:
        assert connection.sql(f"select * from '{path}'").to_arrow_table().to_pylist() == RECORDS
    assert pl.read_parquet(path).to_dicts() == RECORDS
    assert pq.read_table(path).to_pylist() == RECORDS


def test_dictionaries_of_unique_values_do_not_enlarge_an_object() -> None:
    written = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(body())), written, store_schema=False)
    assert len(body()) < 0.9 * len(written.getvalue())
