"""The encoders of containers: which settings of a sink they take, and what they have by default."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sink_job.api.enums import CompressionCodec, OutputFormat
from sink_job.api.sections.format_section import AvroSpec, CompressionSpec, FormatSpec, ParquetSpec
from sink_job.avro.encoder import datum_encoder
from sink_job.codecs.containers import container_encoder, datum_settings
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.field_ids import FieldIds
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.formats.base import ObjectEncoder
from sink_job.formats.datum_rows import DatumRows
from tests.support.format_settings import with_blocks
from tests.unit.formats.test_datum_rows import parts_of

SCHEMA = Schema(
    SchemaType.STRUCT, name="r", fields=(Field("n", Schema(SchemaType.INT64)), Field("s", Schema(SchemaType.STRING)))
)
KEY = "topics/t/partition=0/t+0+0000000000"


def settings(output: str, **given: Any) -> FormatSpec:
    return FormatSpec(output=OutputFormat(output), **given)


def encoder(given: FormatSpec, key: str = KEY, *, ids: FieldIds | None = None) -> ObjectEncoder:
    return container_encoder(given, SCHEMA, ids)(key)


def written(given: FormatSpec, *, ids: FieldIds | None = None) -> bytes:
    encode = datum_encoder(SCHEMA, datum_settings(given))
    rows = DatumRows().encode(pa.array([encode({"n": n, "s": "text"}) for n in range(100)], pa.binary())).to_pylist()
    return b"".join(parts_of(rows, encoder(given, ids=ids), part_size=1 << 20))


def test_an_avro_object_has_the_schema_and_the_codec_of_the_settings() -> None:
    body = written(settings("Avro", compression=CompressionSpec(codec=CompressionCodec.DEFLATE)))
    reader = fastavro.reader(io.BytesIO(body))
    assert [each["n"] for each in reader if isinstance(each, dict)] == list(range(100))
    assert reader.metadata["avro.codec"] == "deflate"


def test_an_avro_object_has_blocks_of_the_requested_size() -> None:
    small, default = with_blocks(settings("Avro", avro=AvroSpec()), 1), settings("Avro")
    blocks = [len(list(fastavro.block_reader(io.BytesIO(written(given))))) for given in (small, default)]
    assert blocks == [100, 1]
    assert encoder(default).block_size == AvroSpec().block


def test_two_avro_objects_differ_in_their_sync_markers() -> None:
    given = settings("Avro")
    assert encoder(given).header() == encoder(given).header()
    assert encoder(given).header() != encoder(given, f"{KEY}1").header()


def test_a_parquet_object_has_the_codec_and_row_groups_of_the_settings() -> None:
    compression = CompressionSpec(codec=CompressionCodec.GZIP)
    given = with_blocks(settings("Parquet", parquet=ParquetSpec(dictionary=False), compression=compression), 100)
    found = pq.read_metadata(io.BytesIO(written(given)))
    assert found.num_row_groups > 1
    column = found.row_group(0).column(1)
    assert column.compression == "GZIP"
    assert not column.has_dictionary_page


def test_a_parquet_object_has_by_default_one_row_group_with_a_dictionary_and_snappy() -> None:
    found = pq.read_metadata(io.BytesIO(written(settings("Parquet"))))
    assert found.num_row_groups == 1
    column = found.row_group(0).column(1)
    assert (column.compression, column.has_dictionary_page) == ("SNAPPY", True)


def test_the_columns_of_parquet_have_the_ids_that_are_given() -> None:
    body = written(settings("Parquet"), ids={"n": 7, "s": 3})
    assert pq.read_schema(io.BytesIO(body)).field("n").metadata == {b"PARQUET:field_id": b"7"}


def test_all_parquet_objects_of_a_schema_share_an_encoder() -> None:
    of_key = container_encoder(settings("Parquet"), SCHEMA)
    assert of_key("a") is of_key("b")


@pytest.mark.parametrize("output", ["Avro", "Parquet"])
def test_both_are_containers_with_datums_as_rows(output: str) -> None:
    given = settings(output)
    assert encoder(given).is_container
    assert datum_settings(given).output is OutputFormat(output)


def test_a_schema_that_parquet_cannot_express_is_rejected() -> None:
    with pytest.raises(InvalidSchema):
        container_encoder(settings("Parquet"), Schema(SchemaType.STRUCT, name="empty", fields=()))
