"""Memory and time to encode one row group or Avro block: `python -m bench.encoding_memory`.

Each case runs in a process of its own. The peak is that of the process above its memory with the rows in it, plus the
rows, in multiples of their size; `memory_budget.PER_ROW_GROUP` has to cover it.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from msgspec import structs

from sink_job.api.enums import CompressionCodec, OutputFormat
from sink_job.api.sections.format_section import AvroSpec, CompressionSpec, FormatSpec
from sink_job.api.units.quantities import MI
from sink_job.avro import to_connect as avro_to_connect
from sink_job.avro.encoder import datum_encoder
from sink_job.codecs.containers import container_encoder
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.engine.container_memory import keep_freed_memory, release_free_memory
from sink_job.formats.block_rows import LENGTH, BlockRows

SIZE = 64 * MI
BATCH = 2 * MI
DISTINCT = 50_000
CODECS = (("Parquet", "Snappy"), ("Parquet", "Zstd"), ("Avro", "None"), ("Avro", "Zstd"))
LONG = Schema(SchemaType.INT64)
TEXT = Schema(SchemaType.STRING, optional=True)
SYMBOLS = [f"{letter * 999}{n}" for n, letter in enumerate("ABCDEFGH")]
ENUM = Schema(
    SchemaType.STRING,
    parameters=((avro_to_connect.ENUM, "E"), *((f"{avro_to_connect.ENUM}.{each}", each) for each in SYMBOLS)),
)
Value = dict[str, Any]


class Shape(NamedTuple):
    """The fields of records, and the function that makes the value of a record from its number."""

    fields: dict[str, Schema]
    value: Callable[[random.Random, int], Value]


def pairs(count: int, length: int) -> Shape:
    """`count` pairs of an integer and a text of `length` characters. Texts are random, so that dictionaries and codecs
    gain little."""
    fields = {f"{name}{n}": of for n in range(count) for name, of in (("n", LONG), ("s", TEXT))}
    return Shape(fields, lambda rng, n: {f"n{k}": n * k for k in range(count)} | _texts(rng, count, length))


def _texts(rng: random.Random, count: int, length: int) -> Value:
    return {f"s{k}": rng.randbytes(length // 2 + 1).hex()[:length] for k in range(count)}


def _eight(schema: Schema, value: Callable[[random.Random], object]) -> Shape:
    """Eight fields of one type."""
    fields = {f"f{n}": schema for n in range(8)}
    return Shape(fields, lambda rng, _: {name: value(rng) for name in fields})


def _array(schema: Schema) -> Schema:
    return Schema(SchemaType.ARRAY, values=schema)


SHAPES = {
    "100 B": pairs(4, 16),
    "1 KB": pairs(12, 70),
    "1 KB, 200 columns": pairs(100, 4),
    "100 KB": pairs(4, 25_000),
    "8 small integers": _eight(LONG, lambda rng: rng.randrange(64)),
    "1,000 nulls": Shape({f"f{n}": structs.replace(LONG, optional=True) for n in range(1_000)}, lambda *_: {}),
    "lists of 100 small integers": _eight(_array(LONG), lambda rng: [rng.randrange(64) for _ in range(100)]),
    "lists of 100 nulls": _eight(_array(TEXT), lambda _: [None] * 100),
    "empty lists": _eight(_array(TEXT), lambda _: []),
    "8 enums of 1,000 B": _eight(ENUM, lambda rng: rng.choice(SYMBOLS)),
    "lists of 100 enums of 1,000 B": _eight(_array(ENUM), lambda rng: rng.choices(SYMBOLS, k=100)),
}


def schema_of(shape: Shape) -> Schema:
    return Schema(SchemaType.STRUCT, name="row", fields=tuple(Field(*each) for each in shape.fields.items()))


def rows_of(shape: Shape, size: int, settings: FormatSpec) -> BlockRows:
    """Rows of at least `size` bytes."""
    rng, datums = random.Random(1), DatumSettings.of(settings)
    assert datums is not None
    encode, encoded = datum_encoder(schema_of(shape), datums), list[bytes]()
    while len(encoded) < DISTINCT and sum(map(len, encoded[-1:])) * len(encoded) < size:
        encoded.append(encode(shape.value(rng, len(encoded))))
    ends = np.cumsum([LENGTH.size + len(row) for row in encoded])
    times, rest = divmod(size, int(ends[-1]))
    some = encoded[: int(np.searchsorted(ends, rest)) + 1]
    lengths = [b"".join(LENGTH.pack(len(row)) for row in rows) for rows in (encoded, some)]
    content = b"".join(encoded) * times + b"".join(some)
    return BlockRows(_batches(content), lengths[0] * times + lengths[1])


def _batches(content: bytes) -> list[memoryview]:
    """The content in memory of Arrow, as the converters of a task leave it."""
    batches = []
    for at in range(0, len(content), BATCH):
        batch = pa.allocate_buffer(min(BATCH, len(content) - at))
        memoryview(batch).cast("B")[:] = content[at : at + BATCH]
        batches.append(memoryview(batch).cast("B"))
    return batches


def measure(case: str, output: str, codec: str) -> dict[str, Any]:
    keep_freed_memory()  # as in a task
    shape = SHAPES[case]
    settings = FormatSpec(output=OutputFormat(output), compression=CompressionSpec(codec=CompressionCodec(codec)))
    encoder = container_encoder(settings, schema_of(shape))("key")
    size = SIZE if output == "Parquet" else (settings.avro or AvroSpec()).block
    encoder.block(rows_of(shape, 1 << 20, settings), 4)
    rows = rows_of(shape, size, settings)
    release_free_memory()
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before, started = _kilobytes("VmRSS"), time.process_time()
    block = encoder.block(rows, 4)
    seconds = time.process_time() - started
    peak = _kilobytes("VmHWM")
    return {
        "case": case,
        "output": output,
        "codec": codec,
        "rows_mb": round(rows.size / 1e6, 1),
        "object_mb": round(len(block.data) / 1e6, 1),
        "mb_per_cpu_s": round(rows.size / 1e6 / seconds),
        "peak_per_size": round(1 + (peak - before) * 1024 / rows.size, 2),
    }


def _kilobytes(name: str) -> int:
    (line,) = (each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith(name))
    return int(line.split()[1])


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(measure(*sys.argv[1:])))
        return
    print(f"| rows | {' | '.join(map(' '.join, CODECS))} |\n|---|{'---|' * len(CODECS)}")
    for case in SHAPES:
        cells = []
        for output, codec in CODECS:
            command = [sys.executable, "-m", "bench.encoding_memory", case, output, codec]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            cells.append(f"{found['mb_per_cpu_s']}, {found['peak_per_size']:.1f}")
        print(f"| {case} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
