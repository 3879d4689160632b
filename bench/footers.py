"""Time and memory of the footer of a Parquet object.

`python -m bench.footers 5000 50` measures 5,000 row groups of 50 columns.
"""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sink_job.api.enums import OutputFormat
from sink_job.api.sections.format_section import FormatSpec
from sink_job.codecs.containers import container_encoder
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.parquet.container import MAGIC, _serialized

ROWS = 100


def index_of(columns: int) -> bytes:
    """The index of a row group with numbers and texts."""
    numbers, texts = range(ROWS), [f"text {number}" for number in range(ROWS)]
    table = pa.table({f"column_{n}": numbers if n % 2 else texts for n in range(columns)})
    writer = pq.ParquetWriter(io.BytesIO(), table.schema, write_page_index=True, store_schema=False)
    writer.write_table(table)
    writer.close()
    return _serialized(writer.writer.metadata)


def main(row_groups: int, columns: int) -> str:
    index = index_of(columns)
    settings = FormatSpec(output=OutputFormat.PARQUET)
    schema = Schema(SchemaType.STRUCT, fields=(Field("a", Schema(SchemaType.INT64)),))
    encoder = container_encoder(settings, schema)("key")
    encoder.footer([index])
    before, started = _peak(), time.process_time()
    footer = encoder.footer([index] * row_groups)
    seconds, total = time.process_time() - started, row_groups * len(index)
    rows = pq.read_metadata(io.BytesIO(MAGIC + footer)).num_rows
    assert rows == row_groups * ROWS
    memory = _peak() - before
    return (
        f"{total} bytes of indexes, {seconds:.2f} s, {memory / 2**20:.0f} MiB, {memory / total:.1f} times the indexes"
    )


def _peak() -> int:
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    print(main(int(sys.argv[1]), int(sys.argv[2])))
