"""Avro object container files, as fastavro reads them."""

from __future__ import annotations

import io
import json
import zlib

import fastavro
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from sink_job.api.enums import CompressionCodec, OutputFormat
from sink_job.api.sections.format_section import CompressionSpec, FormatSpec
from sink_job.arrow import columns
from sink_job.arrow.varints import encode_long
from sink_job.avro.container import MAGIC, AvroContainer, avro_codec, sync_marker
from sink_job.formats.block_rows import BlockRows

SCHEMA = '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}]}'
NAMES = {
    CompressionCodec.NONE: "null",
    CompressionCodec.DEFLATE: "deflate",
    CompressionCodec.SNAPPY: "snappy",
    CompressionCodec.ZSTD: "zstandard",
    CompressionCodec.BZIP2: "bzip2",
}


def settings(codec: CompressionCodec) -> FormatSpec:
    return FormatSpec(output=OutputFormat.AVRO, compression=CompressionSpec(codec=codec))


def container(codec: CompressionCodec = CompressionCodec.NONE, key: str = "k") -> AvroContainer:
    return AvroContainer(SCHEMA, key, avro_codec(settings(codec)), block_size=100)


def rows(numbers: list[int]) -> BlockRows:
    return BlockRows.of(columns.binaries([encode_long(number) for number in numbers]))


@pytest.mark.parametrize("codec", NAMES)
@examples(max_examples=20)
@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20), max_size=3))
def test_fastavro_reads_the_records_of_all_blocks(codec: CompressionCodec, blocks: list[list[int]]) -> None:
    encoder = container(codec)
    found = encoder.header() + b"".join(encoder.block(rows(block), 0).data for block in blocks) + encoder.footer([])
    reader = fastavro.reader(io.BytesIO(found))
    assert reader.codec == NAMES[codec]
    assert json.loads(reader.metadata["avro.schema"]) == json.loads(SCHEMA)
    assert [record["n"] for record in reader] == [number for block in blocks for number in block]  # type: ignore[index,call-overload]


def test_a_block_of_snappy_ends_with_the_crc_of_its_data() -> None:
    compress = avro_codec(settings(CompressionCodec.SNAPPY)).compress
    assert compress is not None
    assert compress(b"abc")[-4:] == zlib.crc32(b"abc").to_bytes(4, "big")


@pytest.mark.parametrize("codec", [each for each in CompressionCodec if each not in NAMES])
def test_another_codec_is_none_of_avro(codec: CompressionCodec) -> None:
    with pytest.raises(ValueError, match=f"the output Avro has no compression {codec}"):
        avro_codec(settings(codec))


def test_the_sync_marker_depends_on_the_key_alone() -> None:
    assert sync_marker("k") == sync_marker("k") != sync_marker("l")
    assert container(key="k").header().endswith(sync_marker("k"))
    assert container(key="k").block(rows([1]), 0).data == container(key="k").block(rows([1]), 999).data


def test_the_header_begins_with_avros_magic_and_a_block_needs_no_footer() -> None:
    assert container().header().startswith(MAGIC)
    assert (container().block(rows([1]), 0).index, container().footer([b""])) == (b"", b"")
    assert (container().is_container, container().block_size) == (True, 100)


@pytest.mark.parametrize(("codec", "library"), [("Deflate", "isal"), ("Zstd", "zstd"), ("Snappy", "pyarrow")])
def test_a_codec_names_the_library_that_determines_its_bytes(codec: str, library: str) -> None:
    assert (avro_codec(settings(CompressionCodec(codec))).library or "").startswith(f"{library} ")


@pytest.mark.parametrize("codec", [CompressionCodec.NONE, CompressionCodec.BZIP2])
def test_the_other_codecs_depend_on_no_library(codec: CompressionCodec) -> None:
    assert avro_codec(settings(codec)).library is None
