"""Size, write time and read time of Parquet files over the same rows: `python -m bench.parquet_files`.

Each table is written by s3sink's encoder of row groups, by the same one with a dictionary for each column (Arrow's
default), and by DuckDB, polars and Spark, all with Snappy and their other defaults. A row group of s3sink has 64 MiB
of columns. CPU times are those of this process, medians of the runs; Spark's writer runs in the JVM and has none. The
reader is DuckDB, which sums a hash of each column.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, cast
from unittest.mock import patch

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from demo.flights import Flights
from sink_job.api.enums import OutputFormat
from sink_job.api.sections.format_section import FormatSpec, ParquetSpec
from sink_job.parquet.container import MAGIC, ParquetContainer, parquet_codec
from sink_job.parquet.encodings import Encodings
from sink_job.parquet.statistics import decoded_size, leaves
from sink_job.parquet.table_reader import ParquetTableReader

ROWS: Final = 400_000
GROUP_BYTES: Final = 64 << 20
WRITERS: Final = ("s3sink", "all dictionaries", "DuckDB", "polars", "Spark")
Write = Callable[[pa.Table, Path], object]


def tables() -> Iterator[tuple[str, pa.Table]]:
    """The shapes of rows: name and table."""
    rng = np.random.default_rng(1)
    ids, steps = np.arange(ROWS) + 10**9, rng.integers(0, 20, ROWS)
    micros = pa.array((1_700_000_000_000 + np.cumsum(steps)) * 1_000).view(pa.timestamp("us", "UTC"))
    yield "flights (JSON with nested fields)", _flights()
    yield (
        "values of 1 KB",
        pa.table({"id": ids[:60_000], "at": micros[:60_000], **{f"s{n}": _texts(60_000, 70, n) for n in range(13)}}),
    )
    yield "ids and timestamps", pa.table({"id": ids, "at": micros, "user": rng.integers(0, 10**6, ROWS)})
    walk = np.cumsum(rng.normal(0, 0.1, ROWS))
    yield (
        "floats",
        pa.table({"x": rng.random(ROWS), "walk": walk, "price": rng.gamma(2, 30, ROWS).round(2), "t": walk.round(1)}),
    )
    for distinct in (16, 5_000):
        yield f"texts, {distinct:,} distinct", pa.table({n: _choices(rng, distinct) for n in "abcd"})
    yield "texts, all distinct", pa.table({"a": _texts(ROWS, 32, 1), "b": _texts(ROWS, 16, 2)})


def _flights() -> pa.Table:
    values = b"\n".join(each.value for each in Flights(6).records() if each.value is not None)
    return pyarrow.json.read_json(io.BytesIO(values)).combine_chunks()


def _texts(count: int, length: int, seed: int) -> pa.Array:
    digits = random.Random(seed).randbytes(count * length // 2).hex()
    return pa.array([digits[n * length : (n + 1) * length] for n in range(count)])


def _choices(rng: np.random.Generator, distinct: int) -> pa.Array:
    return pa.array([f"customer-{n:08}" for n in range(distinct)]).take(pa.array(rng.integers(0, distinct, ROWS)))


@dataclass(frozen=True)
class _Columns:
    """Replaces the reader of rows: the columns are there already."""

    arrow_schema: pa.Schema
    symbols_size: int = 0


def by_s3sink(table: pa.Table, path: Path) -> None:
    settings, block_size = FormatSpec(output=OutputFormat.PARQUET), ParquetSpec().row_group
    reader = cast("ParquetTableReader", _Columns(table.schema))
    encoder = ParquetContainer(reader, parquet_codec(settings), block_size=block_size, dictionary=True)
    data, metadata = io.BytesIO(MAGIC), []
    data.seek(0, io.SEEK_END)
    step = max(1, len(table) * GROUP_BYTES // decoded_size(table))
    for start in range(0, len(table), step):
        group = io.BytesIO()
        metadata.append(encoder._row_group(group, table.slice(start, step).combine_chunks(), data.tell()))
        data.write(group.getvalue())
    indexes = []
    for each in metadata:
        index = io.BytesIO()
        each.write_metadata_file(index)
        indexes.append(index.getvalue())
    path.write_bytes(data.getvalue() + encoder.footer(indexes))


def by_all_dictionaries(table: pa.Table, path: Path) -> None:
    with patch("sink_job.parquet.container.column_encodings", _all_dictionaries):
        by_s3sink(table, path)


def _all_dictionaries(table: pa.Table, **_: bool) -> Encodings:
    found = zip(table.column_names, table.columns, strict=True)
    return Encodings([leaf.path for name, column in found for leaf in leaves(name, column)], {})


def by_duckdb(table: pa.Table, path: Path) -> None:
    with duckdb.connect() as connection:
        connection.register("rows", table)
        connection.execute(f"copy rows to '{path}' (format parquet)")


def by_polars(table: pa.Table, path: Path) -> None:
    pl.DataFrame(table).write_parquet(path, compression="snappy")


def by_spark(table: pa.Table, path: Path) -> None:
    source, folder = path.with_suffix(".source"), path.with_suffix(".folder")
    pq.write_table(table, source)
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    spark.read.parquet(str(source)).coalesce(1).write.parquet(str(folder))
    next(folder.glob("*.parquet")).rename(path)


def read(path: Path) -> Any:
    with duckdb.connect() as connection:
        connection.execute("set threads = 1")
        names = [name for name, *_ in connection.execute(f"describe from '{path}'").fetchall()]
        sums = ", ".join(f'sum(hash("{name}")::hugeint)' for name in names)
        return connection.execute(f"select {sums} from '{path}'").fetchall()


def cpu_seconds(function: Callable[[], object]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


_BY: Final[dict[str, Write]] = dict(
    zip(WRITERS, (by_s3sink, by_all_dictionaries, by_duckdb, by_polars, by_spark), strict=True)
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=6)
    repeat = parser.parse_args().repeat
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout
    model = next(line.split(": ")[1] for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line)
    print(f"{datetime.now(UTC).date()}, {os.cpu_count()} cores, {model}, commit {commit.strip()}, {repeat} runs\n")
    print("MB; CPU s to write; CPU s to read\n")
    print(f"| rows | {' | '.join(WRITERS)} |\n|---|{'---|' * len(WRITERS)}")
    for name, table in tables():
        print(f"| {name} | {' | '.join(_cells(table, repeat))} |", flush=True)


def _cells(table: pa.Table, repeat: int) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        paths = {writer: Path(folder) / f"{n}.parquet" for n, writer in enumerate(WRITERS)}
        by_spark(table, paths["Spark"])
        writes: dict[str, list[float]] = {writer: [] for writer in WRITERS if writer != "Spark"}
        reads: dict[str, list[float]] = {writer: [] for writer in WRITERS}
        for run in range(repeat):  # in turns, and each time in the other order: the first one has cold caches
            for writer, times in list(writes.items())[:: 1 if run % 2 else -1]:
                times.append(cpu_seconds(partial(_BY[writer], table, paths[writer])))
            for writer, times in list(reads.items())[:: 1 if run % 2 else -1]:
                times.append(cpu_seconds(partial(read, paths[writer])))
        for writer in WRITERS:
            write = f"{statistics.median(writes[writer]):.2f}" if writer in writes else "–"
            size = paths[writer].stat().st_size / 1e6
            yield f"{size:.1f}; {write}; {statistics.median(reads[writer]):.2f}"


if __name__ == "__main__":
    main()
