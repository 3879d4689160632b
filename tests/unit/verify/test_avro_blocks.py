"""The blocks of Avro objects are read without trust in their lengths."""

from __future__ import annotations

import io
import json
from typing import Any, cast

import fastavro
import pytest

from sink_job.formats.compression import Uncompressed
from sink_job.verify.avro_blocks import AvroBlockReader
from sink_job.verify.object_reader import ObjectReader, ObjectUnreadable
from tests.support.memory_s3 import MemoryS3

SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}]}


def reader_of(body: bytes) -> AvroBlockReader:
    s3 = MemoryS3()
    s3.put("k", body)
    return AvroBlockReader(ObjectReader(cast("Any", s3), "k", Uncompressed(), step=16))


def body_of(codec: str) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, SCHEMA, [{"n": n} for n in range(200)], codec=codec, sync_interval=64)
    return out.getvalue()


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard", "bzip2"])
def test_blocks_of_each_codec_are_read(codec: str) -> None:
    reader = reader_of(body_of(codec))
    header = reader.header()
    assert (header.codec, json.loads(header.schema or b"")["name"]) == (codec, "r")
    blocks = list(reader.blocks())
    assert len(blocks) > 1
    assert sum(count for count, _ in blocks) == 200


def test_a_header_without_a_codec_is_one_without_compression() -> None:
    """The specification of Avro allows it."""
    reader = reader_of(b"Obj\x01\x00" + bytes(16) + b"\x02\x02\x06" + bytes(16))
    assert reader.header().codec is None
    assert list(reader.blocks()) == [(1, b"\x06")]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "ends within a block"),
        (b"{}{}{}", "is not an Avro object container file"),
        (b"Obj\x01\x02\x14avro.codec\x06xyz\x00" + bytes(16), "unknown Avro codec xyz"),
        (b"Obj\x01\x01" + bytes(16), "a length in the object is damaged"),
        (b"Obj\x01\x00" + bytes(16) + b"\x02\x02\x06" + b"x" * 16, "a sync marker of the object is damaged"),
        (b"Obj\x01\x00" + bytes(16) + b"\x02\xff\xff\xff\xff\x0f", "a length in the object is damaged"),
        (b"Obj\x01\x00" + bytes(16) + b"\x02\xfe\xff\x03", "ends within a block"),
    ],
)
def test_a_damaged_object_is_an_error(body: bytes, message: str) -> None:
    with pytest.raises(ObjectUnreadable, match=message):
        list(reader_of(body).blocks())
