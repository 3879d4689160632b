"""Avro and Parquet objects are compared with their records by decoding their blocks."""

from __future__ import annotations

import io
import json
from typing import Any, cast

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.enums import CompressionCodec, OutputFormat
from sink_job.api.sections.format_section import CompressionSpec, FormatSpec
from sink_job.codecs.containers import container_encoder
from sink_job.connect.schema import Schema
from sink_job.formats.datum_rows import DatumRows
from sink_job.formats.part_assembler import PartAssembler, PartBody
from sink_job.formats.spill_buffer import SpillPool
from sink_job.ledger.state import OffsetChecksum
from sink_job.s3 import S3Client
from sink_job.verify.container_content import container_content
from sink_job.verify.object_content import Difference, ObjectContent
from sink_job.verify.object_reader import ObjectUnreadable
from sink_job.writer.row_slices import RowSlice
from tests.support.format_settings import with_blocks
from tests.support.memory_s3 import MemoryS3
from tests.unit.avro.avro_data import record
from tests.unit.parquet.test_table_reader import datums, samples

KEY = "topics/t/partition=0/t+0+0000000000"
AVRO_CODECS = ["None", "Deflate", "Snappy", "Zstd", "Bzip2"]
SAMPLE = record(("n", "long"), ("s", "string"))
VALUES = [{"n": n, "s": "x" * n} for n in range(40)]


def settings(output: str, codec: str = "None") -> FormatSpec:
    found = FormatSpec(output=OutputFormat(output), compression=CompressionSpec(codec=CompressionCodec(codec)))
    return with_blocks(found, 200)


def rows_of(data: pa.BinaryArray) -> RowSlice:
    rows: list[bytes] = DatumRows().encode(data).to_pylist()
    ends = np.cumsum([len(row) for row in rows], dtype=np.int64)
    return RowSlice(memoryview(b"".join(rows)), ends, np.arange(len(rows)), OffsetChecksum())


def body_of(given: FormatSpec, schema: Schema, rows: RowSlice) -> bytes:
    with SpillPool(1 << 30) as pool:
        assembler = PartAssembler(part_size=1 << 20, encoder=container_encoder(given, schema)(KEY), spool=pool)
        return b"".join(map(PartBody.__bytes__, [*assembler.append(rows.data, rows.ends), *assembler.finish()]))


def content_of(given: FormatSpec, schema: Schema, body: bytes) -> ObjectContent:
    s3 = MemoryS3()
    s3.put(KEY, body)
    return container_content(cast("S3Client", s3), KEY, given, schema, 64)


def compared(content: ObjectContent, rows: RowSlice) -> list[Difference | str | None]:
    return [content.compare(rows), content.remaining()]


@pytest.mark.parametrize("output", ["Avro", "Parquet"])
@given(sample=samples())
def test_an_object_of_any_schema_has_its_records(output: str, sample: tuple[Any, list[Any]]) -> None:
    schema, data = datums(*sample)
    if len(data):
        rows = rows_of(data)
        given = settings(output)
        assert compared(content_of(given, schema, body_of(given, schema, rows)), rows) == [None, None]


@pytest.mark.parametrize("codec", AVRO_CODECS)
def test_avro_blocks_of_each_codec_are_read(codec: str) -> None:
    schema, data = datums(SAMPLE, VALUES)
    rows, given = rows_of(data), settings("Avro", codec)
    assert compared(content_of(given, schema, body_of(given, schema, rows)), rows) == [None, None]


@pytest.mark.parametrize("output", ["Avro", "Parquet"])
def test_a_different_record_is_found(output: str) -> None:
    given = settings(output)
    schema, data = datums(SAMPLE, VALUES)
    _, changed = datums(SAMPLE, [*VALUES[:17], {"n": -17, "s": "x" * 17}, *VALUES[18:]])
    content = content_of(given, schema, body_of(given, schema, rows_of(changed)))
    assert content.compare(rows_of(data)) == Difference(17, is_missing=False)


@pytest.mark.parametrize("output", ["Avro", "Parquet"])
def test_a_missing_and_a_further_record_are_found(output: str) -> None:
    given = settings(output)
    schema, data = datums(SAMPLE, VALUES)
    rows, fewer = rows_of(data), rows_of(data[:30])
    assert content_of(given, schema, body_of(given, schema, fewer)).compare(rows) == Difference(30, is_missing=True)
    content = content_of(given, schema, body_of(given, schema, rows))
    assert compared(content, fewer) == [None, "the object has more content after its last record"]


def test_a_wrong_count_of_a_block_is_found() -> None:
    schema, data = datums(record(("a", "string")), [{"a": ""}])
    rows, given = rows_of(data), settings("Avro")
    body = body_of(given, schema, rows)
    assert body[-19:-16] == b"\x02\x02\x00"
    content = content_of(given, schema, body[:-19] + b"\x04" + body[-18:])
    assert compared(content, rows) == [None, "the blocks of the object count 2 records and not 1"]


@pytest.mark.parametrize("output", ["Avro", "Parquet"])
def test_an_object_of_another_schema_is_reported(output: str) -> None:
    given = settings(output)
    schema, data = datums(SAMPLE, VALUES)
    other, _ = datums(record(("n", "long"), ("t", "string")), [])
    body = body_of(given, schema, rows_of(data))
    with pytest.raises(ObjectUnreadable, match=r"the object has another .* schema than its records"):
        content_of(given, other, body).compare(rows_of(data))


@given(
    output=st.sampled_from(["Avro", "Parquet"]),
    codec=st.sampled_from(["None", "Snappy", "Zstd"]),
    at=st.floats(0, 1, exclude_max=True),
    flipped=st.integers(1, 255),
    cut=st.booleans(),
)
def test_a_damaged_object_is_reported_and_raises_nothing_else(
    output: str, codec: str, at: float, flipped: int, cut: bool
) -> None:
    given = settings(output, codec)
    schema, data = datums(SAMPLE, VALUES)
    rows = rows_of(data)
    body = body_of(given, schema, rows)
    place = int(at * len(body))
    damaged = body[:place] if cut else body[:place] + bytes([body[place] ^ flipped]) + body[place + 1 :]
    try:
        found = compared(content_of(given, schema, damaged), rows)
    except ObjectUnreadable:
        return
    if output == "Avro" and found == [
        None,
        None,
    ]:  # a copy within a Snappy block from another place with the same bytes
        assert list(fastavro.reader(io.BytesIO(damaged))) == VALUES, json.dumps(place)


def test_a_damaged_name_in_the_header_of_an_avro_object_is_reported() -> None:
    schema, data = datums(SAMPLE, [{"n": 1, "s": "x"}])
    rows, given = rows_of(data), settings("Avro")
    damaged = body_of(given, schema, rows).replace(b"avro.codec", b"avro.coded")
    with pytest.raises(ObjectUnreadable, match=r"the header of the object has no avro\.codec"):
        content_of(given, schema, damaged).compare(rows)


def test_a_name_in_a_parquet_object_that_is_not_utf8_is_reported() -> None:
    schema, data = datums(record(("field", "int")), [{"field": 1}])
    rows, given = rows_of(data), settings("Parquet")
    damaged = body_of(given, schema, rows).replace(b"field", b"fi\xffld")
    with pytest.raises(ObjectUnreadable, match="the object is not a valid Parquet file"):
        content_of(given, schema, damaged).compare(rows)


def test_a_damaged_length_of_a_snappy_block_is_reported_before_memory_is_allocated() -> None:
    schema, data = datums(SAMPLE, [{"n": 1, "s": "x"}])
    rows, given = rows_of(data), settings("Avro", "Snappy")
    body = body_of(given, schema, rows)
    block, after = body[-25:-16], body[-16:]
    assert block[:2] == b"\x03\x08", "three bytes, as a literal"
    damaged = body[:-25] + b"\xff\xff\xff\xff\x7f" + block[5:] + after
    with pytest.raises(ObjectUnreadable, match="its uncompressed length is damaged"):
        content_of(given, schema, damaged).compare(rows)
