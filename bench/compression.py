"""CPU time and ratio of compressed JSON lines, in one process on one core: no Kafka, no Spark, no S3.

`python -m bench.compression [--repeat 5] [--block-mib 1]` prints a table. Values of 1 KB are converted, encoded and
assembled into parts, as a task does it; `library` is the compression of the same blocks alone. Each figure is the
median of several turns.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from bench import data
from bench.converters import BATCH_BYTES, BATCHES, large_value
from sink_job.api.enums import ConverterType
from sink_job.arrow import columns as arrow_columns
from sink_job.codecs.converters import converter_for
from sink_job.converters.base import BatchSource
from sink_job.formats.compression import BLOCK_BYTES, Compression, Gzip, Uncompressed, Zstd
from sink_job.formats.datum_rows import ConcatenatedBlocks
from sink_job.formats.part_assembler import PartAssembler
from sink_job.formats.spill_buffer import SpillPool
from sink_job.json.lines import JsonLines

PART_BYTES: Final = 25 << 20
_COUNT: Final = 4 * BATCHES * BATCH_BYTES // 1_000
COMPRESSIONS: Final[Mapping[str, Compression]] = {
    "None": Uncompressed(),
    "Gzip, level 2": Gzip(2),
    "Gzip, level 3": Gzip(3),
    "Zstd, level 1": Zstd(1),
    "Zstd, level 3": Zstd(3),
    "Zstd, level 9": Zstd(9),
}


class Row(NamedTuple):
    """A row of the table: MB of values per second of CPU, CPU seconds per GB, also of the library alone, and bytes of
    lines for each byte of the object."""

    mb_per_s: float
    cpu_s_per_gb: float
    library: float
    ratio: float


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--repeat", type=int, default=5)
    arguments.add_argument("--block-mib", type=int, default=BLOCK_BYTES >> 20)
    arguments.add_argument("--only", action="append", help="compressions whose names start with this")
    given = arguments.parse_args()
    print("| values | compression | MB/s | CPU-s/GB | library | ratio |\n|---|---|---|---|---|---|")
    for kind, values in (("text", _texts()), ("fields", _fields())):
        batches = list(_batches(values))
        for name, compression in COMPRESSIONS.items():
            if given.only is None or name.startswith(tuple(given.only)):
                compression.block_size = compression.block_size and given.block_mib << 20
                row = measure(batches, compression, given.repeat)
                costs = f"{row.mb_per_s:.0f} | {row.cpu_s_per_gb:.2f} | {row.library:.2f}"
                print(f"| {kind} | {name} | {costs} | {row.ratio:.2f} |", flush=True)


def _texts() -> Iterator[bytes]:
    """The values of 1 KB of the topics, without a repetition of texts that a large window would find."""
    return itertools.islice(data.values(1_000, _COUNT), _COUNT)


def _fields() -> Iterator[bytes]:
    """The values of 1 KB of the converters, as JSON."""
    rng = random.Random(1)
    return (json.dumps(large_value(rng, number), separators=(",", ":")).encode() for number in range(_COUNT))


def _batches(values: Iterable[bytes]) -> Iterator[pa.BinaryArray]:
    rest = iter(values)
    while rows := list(itertools.islice(rest, BATCH_BYTES // 1_000)):
        yield pa.array(rows, pa.binary())


def measure(batches: Sequence[pa.BinaryArray], compression: Compression, repeat: int) -> Row:
    """Writes the same object `repeat` times."""
    turns = [_turn(batches, compression) for _ in range(repeat)]
    alone = statistics.median(_library(batches, compression) for _ in range(repeat))
    size = sum(len(each) for batch in batches for each in batch.to_pylist())
    seconds, written = statistics.median(seconds for seconds, _ in turns), turns[0][1]
    return Row(
        size / 1e6 / seconds, seconds / (size / 1e9), alone / (size / 1e9), (size + sum(map(len, batches))) / written
    )


def _turn(batches: Sequence[pa.BinaryArray], compression: Compression) -> tuple[float, int]:
    """CPU seconds of one object, and its size in bytes."""
    converter, lines, source = converter_for(ConverterType.JSON, ()), JsonLines(ConverterType.JSON), BatchSource("b")
    written, started = 0, time.process_time()
    with SpillPool(1 << 30) as pool:
        assembler = PartAssembler(part_size=PART_BYTES, encoder=ConcatenatedBlocks(compression), spool=pool)
        for batch in batches:
            converted = converter.convert(batch, source)
            rows = converted.lines if converted.lines is not None else lines.encode(converted.values)
            bounds = arrow_columns.bounds(rows)
            content = memoryview(arrow_columns.content(rows).data)[bounds[0] : bounds[-1]]
            written += sum(
                part.size for part in assembler.append(content, np.asarray(bounds[1:] - bounds[0], np.int64))
            )
        written += sum(part.size for part in assembler.finish())
    return time.process_time() - started, written


def _library(batches: Sequence[pa.BinaryArray], compression: Compression) -> float:
    """CPU seconds of the compression of the lines in blocks alone."""
    lines = b"".join(value + b"\n" for batch in batches for value in batch.to_pylist())
    size = compression.block_size or len(lines)
    blocks = [lines[at : at + size] for at in range(0, len(lines), size)]
    started = time.process_time()
    for block in blocks:
        compression.compress(block)
    return time.process_time() - started


if __name__ == "__main__":
    main()
