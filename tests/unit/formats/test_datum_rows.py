"""Containers: objects with header, blocks and footer, whose bytes depend on their records and settings alone."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.enums import CompressionCodec, OutputFormat
from sink_job.api.sections.format_section import CompressionSpec, FormatSpec
from sink_job.avro.container import AvroContainer, avro_codec, sync_marker
from sink_job.formats.base import ObjectEncoder
from sink_job.formats.datum_rows import DatumRows, datums, with_lengths
from sink_job.formats.part_assembler import PartAssembler
from sink_job.formats.pending import StagedPrefix
from sink_job.formats.remainder import Remainder
from sink_job.formats.spill_buffer import SpillPool

SCHEMA = {
    "type": "record",
    "name": "r",
    "fields": [{"name": "n", "type": "long"}, {"name": "s", "type": ["null", "string"]}],
}
RECORDS = st.lists(
    st.fixed_dictionaries({"n": st.integers(-(2**63), 2**63 - 1), "s": st.none() | st.text(max_size=60)}),
    min_size=1,
    max_size=30,
)
AVRO_CODECS = ("None", "Deflate", "Snappy", "Zstd", "Bzip2")
Encode = Callable[[], ObjectEncoder]


def avro(codec: str = "None", *, key: str = "topics/t/x.avro", block: int = 60) -> AvroContainer:
    chosen = avro_codec(
        FormatSpec(output=OutputFormat.AVRO, compression=CompressionSpec(codec=CompressionCodec(codec)))
    )
    return AvroContainer(json.dumps(SCHEMA), key, chosen, block_size=block)


def rows_of(records: list[dict[str, Any]]) -> list[bytes]:
    values = []
    for record in records:
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, SCHEMA, record)
        values.append(buffer.getvalue())
    rows: list[bytes] = DatumRows().encode(pa.array(values, pa.binary())).to_pylist()
    return rows


def append(assembler: PartAssembler, rows: list[bytes]) -> list[bytes]:
    ends = np.cumsum([len(r) for r in rows], dtype=np.int64)
    return list(map(bytes, assembler.append(memoryview(b"".join(rows)), ends)))


def parts_of(rows: list[bytes], encoder: ObjectEncoder, part_size: int = 100) -> list[bytes]:
    with SpillPool(1 << 30) as pool:
        assembler = PartAssembler(part_size=part_size, encoder=encoder, spool=pool)
        return [*append(assembler, rows), *map(bytes, assembler.finish())]


def prefix(chunks: list[bytes]) -> StagedPrefix:
    return StagedPrefix(sum(map(len, chunks)), lambda: b"".join(chunks))


def in_rounds(
    rows: list[bytes], encoder: Encode, part_size: int, rounds: list[int], limit: int, compact: bool
) -> list[bytes]:
    """The parts of an object whose rounds end before the rows `rounds`. Each round has a new assembler, which gets what
    the previous one has staged."""
    parts: list[bytes] = []
    staged: Remainder[list[bytes]] = Remainder([], [], [])
    for start, end in pairwise(sorted({0, len(rows), *(r for r in rounds if r < len(rows))})):
        with SpillPool(limit) as pool:
            assembler = PartAssembler(
                part_size=part_size,
                encoder=encoder(),
                spool=pool,
                staged=staged.map(prefix),
                position=sum(map(len, parts)),
            )
            parts += append(assembler, rows[start:end])
            if end == len(rows):
                return [*parts, *map(bytes, assembler.finish())]
            if compact:
                assembler.compact()
            staged = assembler.take_remainder().combine(
                staged, lambda new, chunks: [*(chunks if new.keeps_staged else []), new.data]
            )
    raise AssertionError("the last round closes the object")


@given(
    RECORDS,
    st.sampled_from(AVRO_CODECS),
    st.integers(1, 300),
    st.integers(10, 400),
    st.lists(st.integers(1, 30), max_size=8),
    st.integers(0, 200),
    st.booleans(),
)
def test_parts_of_an_avro_object_do_not_depend_on_rounds_restarts_or_memory(
    records: list[dict[str, Any]],
    codec: str,
    block: int,
    part_size: int,
    rounds: list[int],
    limit: int,
    compact: bool,
) -> None:
    rows = rows_of(records)
    expected = parts_of(rows, avro(codec, block=block), part_size)
    assert in_rounds(rows, lambda: avro(codec, block=block), part_size, rounds, limit, compact) == expected


@given(RECORDS, st.sampled_from(AVRO_CODECS), st.integers(1, 300))
def test_fastavro_reads_the_records_of_an_avro_object(records: list[dict[str, Any]], codec: str, block: int) -> None:
    data = b"".join(parts_of(rows_of(records), avro(codec, block=block)))
    assert list(fastavro.reader(io.BytesIO(data))) == records


def test_each_part_of_a_container_but_the_last_has_the_part_size() -> None:
    parts = parts_of(rows_of([{"n": n, "s": "x" * 40} for n in range(50)]), avro(block=500), 100)
    assert {len(part) for part in parts[:-1]} == {100}
    assert 0 < len(parts[-1]) <= 100


def test_a_record_larger_than_a_part_is_in_several_parts() -> None:
    records: list[dict[str, Any]] = [{"n": 1, "s": "x" * 1000}, {"n": 2, "s": None}]
    parts = parts_of(rows_of(records), avro(), 100)
    assert len(parts) > 10
    assert list(fastavro.reader(io.BytesIO(b"".join(parts)))) == records


def test_an_avro_block_ends_with_the_first_row_that_reaches_the_block_size() -> None:
    rows = rows_of([{"n": 1, "s": "x" * 10}] * 7)
    data = b"".join(parts_of(rows, avro(block=3 * len(rows[0]) - 1), 1 << 20))
    assert [block.num_records for block in fastavro.block_reader(io.BytesIO(data))] == [3, 3, 1]


def test_the_sync_marker_is_derived_from_the_key() -> None:
    rows = rows_of([{"n": 1, "s": None}])
    one, other = (b"".join(parts_of(rows, avro(key=key))) for key in ("a", "b"))
    assert one.endswith(sync_marker("a"))
    assert other.endswith(sync_marker("b"))
    assert sync_marker("a") != sync_marker("b")


def test_a_codec_that_avro_does_not_have_is_an_error() -> None:
    with pytest.raises(ValueError, match="the output Avro has no compression Lz4"):
        avro("Lz4")


@given(st.lists(st.binary(max_size=20)))
def test_datums_of_rows_are_the_encoded_values(values: list[bytes]) -> None:
    rows: list[bytes] = with_lengths(pa.array([b"other", *values], pa.binary())[1:]).to_pylist()
    assert [value for batch in datums(b"".join(rows)) for value in batch.to_pylist()] == values
