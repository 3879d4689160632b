"""The records of objects are read by the format of their extension."""

from __future__ import annotations

import gzip
import io
import json
import random
from typing import Any, cast

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.avro.schema import parse_avro
from sink_job.compare import record_streams
from sink_job.compare.compared_objects import ComparedObject
from sink_job.compare.record_streams import RecordStream, counts_records
from sink_job.formats.compression import zstd
from sink_job.verify.rows.canonical_values import canonical
from sink_job.verify.rows.container_rows import avro_text
from tests.support.memory_s3 import MemoryS3

FIELDS: list[dict[str, Any]] = [{"name": "n", "type": "long"}, {"name": "s", "type": ["null", "string"]}]
SCHEMA = {"type": "record", "name": "r", "fields": FIELDS}
ROWS = [{"n": n, "s": None if n % 3 else "x" * n} for n in range(300)]


def read(extension: str, body: bytes, separator: bytes = b"\n") -> tuple[list[bytes], RecordStream]:
    s3 = MemoryS3()
    key = f"topics/t/partition=0/t+0+0000000000{extension}"
    s3.put(key, body)
    stream = RecordStream(cast("Any", s3), [ComparedObject(key, key, "", 0, len(body))], separator)
    return [record for batch in stream.batches() for record in batch], stream


@given(st.lists(st.binary(max_size=20)), st.sampled_from([b"\n", b"--", b"ab"]), st.integers(1, 9))
def test_bytes_are_divided_at_separators_in_steps_of_any_size(values: list[bytes], separator: bytes, step: int) -> None:
    body = b"".join(value + separator for value in values)
    before = record_streams.STEP
    record_streams.STEP = step  # type: ignore[misc]
    try:
        records, _ = read(".bin", body, separator)
    finally:
        record_streams.STEP = before  # type: ignore[misc]
    expected = body.split(separator)
    assert records == (expected[:-1] if not expected[-1] else expected)


def test_bytes_without_a_separator_are_compared_in_steps() -> None:
    body = bytes(3_000_000)
    records, _ = read(".bin", body, b"")
    assert [len(record) for record in records] == [1 << 20, 1 << 20, 3_000_000 - (2 << 20)]


@pytest.mark.parametrize("extension", [".json", ".json.gz", ".json.zst"])
def test_lines_of_json_are_records_in_any_compression(extension: str) -> None:
    lines = [json.dumps(row).encode() for row in ROWS]
    body = b"\n".join(lines) + b"\n"
    compressed = {".json": body, ".json.gz": gzip.compress(body), ".json.zst": zstd.compress(body)}
    records, stream = read(extension, compressed[extension])
    assert records == lines
    assert stream.canonical(b'{"a" : 1}') == stream.canonical(b'{"a":1.0}')
    assert [(each.count, each.damage) for each in stream.read] == [(300, None)]


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard", "bzip2"])
def test_rows_of_avro_are_canonical_values(codec: str) -> None:
    out = io.BytesIO()
    fastavro.writer(out, SCHEMA, ROWS, codec=codec, sync_interval=100)
    records, stream = read(".avro", out.getvalue())
    assert records == [canonical(row) for row in ROWS]
    assert stream.read[0].schema == avro_text(parse_avro(json.dumps(SCHEMA)))


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
def test_rows_of_parquet_are_canonical_values(codec: str) -> None:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), out, compression=codec, row_group_size=100)
    assert read(".snappy.parquet", out.getvalue())[0] == [canonical(row) for row in ROWS]


@pytest.mark.parametrize("extension", [".avro", ".parquet", ".json.gz", ".json.zst"])
def test_a_damaged_object_ends_at_its_damage(extension: str) -> None:
    """Random bytes are cut off or changed; nothing else than a damage is reported."""
    out = io.BytesIO()
    if extension == ".avro":
        fastavro.writer(out, SCHEMA, ROWS, codec="deflate", sync_interval=100)
    elif extension == ".parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), out)
    else:
        lines = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)
        out.write(gzip.compress(lines) if extension == ".json.gz" else zstd.compress(lines))
    whole, chosen = out.getvalue(), random.Random(7)
    assert read(extension, whole)[1].read[0].damage is None
    for _ in range(60):
        at = chosen.randrange(len(whole))
        _, stream = read(extension, whole[:at])
        (found,) = stream.read
        assert found.damage is not None or found.count < len(ROWS), "a block of Avro may end at the cut"
        read(extension, whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])


@pytest.mark.parametrize("schema", [b"", b"{", b'{"type": "record"}', b'{"type":"array","items":"null"}'])
def test_an_avro_object_without_a_usable_schema_is_damaged(schema: bytes) -> None:
    header = b"Obj\x01\x02" + b"\x16avro.schema" + bytes([len(schema) * 2]) + schema + b"\x00" + bytes(16)
    assert "its Avro schema cannot be used" in str(read(".avro", header)[1].read[0].damage)


def test_records_of_bytes_may_contain_the_separator() -> None:
    names = [".json", ".json.gz", ".avro", ".snappy.parquet", ".bin", ".bin.gz"]
    assert [counts_records(f"k{name}") for name in names] == [True, True, True, True, False, False]
