"""Statistics of Parquet objects: readers that order NaN after every number find all rows."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from sink_job.api.enums import OutputFormat
from sink_job.api.sections.format_section import FormatSpec
from sink_job.avro.encoder import datum_encoder
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.formats.datum_rows import DatumRows
from sink_job.parquet.container import ParquetContainer, parquet_codec
from sink_job.parquet.statistics import columns_with_statistics
from sink_job.parquet.table_reader import ParquetTableReader
from tests.unit.formats.test_datum_rows import parts_of

DATUMS = DatumSettings(OutputFormat.PARQUET)
DOUBLE = Schema(SchemaType.FLOAT64)
SCHEMA = Schema(
    SchemaType.STRUCT,
    fields=(
        Field("f", Schema(SchemaType.FLOAT64, optional=True)),
        Field("n", Schema(SchemaType.INT64)),
        Field("s", Schema(SchemaType.STRUCT, fields=(Field("f", Schema(SchemaType.FLOAT32)),))),
        Field("l", Schema(SchemaType.ARRAY, values=DOUBLE)),
        Field("m", Schema(SchemaType.MAP, keys=Schema(SchemaType.STRING), values=DOUBLE)),
    ),
)


def body_of(values: list[float | None], *, block: int = 1 << 20) -> bytes:
    """An object with these numbers in each column of floats."""
    encode, settings = datum_encoder(SCHEMA, DATUMS), FormatSpec(output=OutputFormat.PARQUET)
    encoder = ParquetContainer(
        ParquetTableReader(SCHEMA, DATUMS), parquet_codec(settings), block_size=block, dictionary=True
    )
    data = [
        encode({"f": each, "n": 1, "s": {"f": each or 0.0}, "l": [each or 0.0], "m": {"k": each or 0.0}})
        for each in values
    ]
    return b"".join(parts_of(DatumRows().encode(pa.array(data, pa.binary())).to_pylist(), encoder))


def with_statistics(body: bytes) -> dict[str, bool]:
    """Whether the first row group has statistics and a column index, by the path of the column."""
    group = pq.read_metadata(io.BytesIO(body)).row_group(0)
    columns: list[Any] = [group.column(number) for number in range(group.num_columns)]
    assert all(each.is_stats_set == each.has_column_index for each in columns)
    return {each.path_in_schema: each.is_stats_set for each in columns}


def test_columns_without_nan_have_statistics() -> None:
    assert all(with_statistics(body_of([1.0, None, math.inf])).values())


def test_columns_with_nan_have_no_statistics() -> None:
    assert with_statistics(body_of([1.0, math.nan])) == {
        "f": False,
        "n": True,
        "s.f": False,
        "l.list.element": False,
        "m.key_value.key": True,
        "m.key_value.value": False,
    }


def test_duckdb_finds_nan_in_a_row_group_with_smaller_numbers(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(body_of([1.0, 2.0, math.nan, 3.0, None, 9.0], block=60))
    assert pq.read_metadata(path).num_row_groups == 3
    with duckdb.connect() as connection:
        found = connection.execute(f"select list(f order by f), max(f) from '{path}' where f > 5").fetchall()
    assert repr(found) == "[([9.0, nan], nan)]"


def test_columns_with_the_same_path_have_no_statistics_if_one_has_nan() -> None:
    """A name with a dot can give the path of a field in a struct, and Arrow's writer finds columns by their paths."""
    nested = pa.StructArray.from_arrays([pa.array([1.0, math.nan])], names=["b"])
    table = pa.table({"a": nested, "a.b": pa.array([1.0, 2.0]), "c": pa.array([1.0, 2.0])})
    assert columns_with_statistics(table) == ["c"]
