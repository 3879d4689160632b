"""Rows of a compaction, compared with the ledger, with S3 in memory: `python -m bench.table_rows`.

Time and memory of `verify --table --deep` for files of a compaction whose rows are in random order. An object had 1,000
records. Metadata of the table is not read.
"""

from __future__ import annotations

import argparse
import io
import time
from collections.abc import Iterator
from typing import cast

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.table_scale import closed, peak_mib, reset_peak
from sink_job.ledger.offset_checksum import checksum
from sink_job.parquet.types import FIELD_ID
from sink_job.s3 import S3Client
from sink_job.tables.audits.envelope_rows import EnvelopeIds, EnvelopeRows, RowBatch
from sink_job.tables.audits.findings import Findings
from sink_job.tables.audits.offset_ranges import OffsetRanges
from sink_job.tables.audits.row_audit import NeedsObject, OwnRows, RowAudit
from sink_job.tables.audits.table_files import OtherFile
from tests.support.memory_s3 import MemoryS3

PER_FILE = 2_000_000
PER_OBJECT = 1_000
IDS = EnvelopeIds(topic=1, partition=2, offset=3)


class Compacted:
    """Files of a compaction with these offsets of partition 0, in a bucket in memory."""

    def __init__(self, offsets: np.ndarray) -> None:
        self._s3 = MemoryS3()
        self._reader = EnvelopeRows(IDS, "log")
        self._files = []
        types = {"topic": pa.string(), "partition": pa.int32(), "offset": pa.int64()}
        fields = [pa.field(name, kind, metadata={FIELD_ID: str(n)}) for n, (name, kind) in enumerate(types.items(), 1)]
        for start in range(0, len(offsets), PER_FILE):
            rows = offsets[start : start + PER_FILE]
            topics = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(rows), np.int8)), ["log"]).cast(pa.string())
            columns = [topics, pa.array(np.zeros(len(rows), np.int32)), pa.array(rows)]
            out = io.BytesIO()
            pq.write_table(pa.Table.from_arrays(columns, schema=pa.schema(fields)), out, row_group_size=500_000)
            key = f"{start}.parquet"
            self._s3.put(key, out.getvalue())
            self._files.append(OtherFile(key, len(rows), True, None))

    def others(self) -> list[OtherFile]:
        return self._files

    def read(self, file: OtherFile) -> Iterator[RowBatch]:
        return self._reader.read(cast("S3Client", self._s3), file.path)

    def own(self, is_needed: NeedsObject) -> Iterator[OwnRows]:
        return iter(())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    args = parser.parse_args()
    offsets = np.random.default_rng(1).permutation(args.rows)
    table, ranges = Compacted(offsets), OffsetRanges()
    for number in range(args.rows // PER_OBJECT):
        records = checksum(np.arange(number * PER_OBJECT, (number + 1) * PER_OBJECT))
        ranges.add(msgspec.structs.replace(closed(number), offsets=records), is_own=False)
    before, begin = reset_peak(), time.perf_counter()
    findings = Findings()
    found = RowAudit(ranges.components(), table, findings).run(allows_foreign=False, without=0)
    seconds = time.perf_counter() - begin
    assert (found.proven, findings.sorted()) == (args.rows, [])
    print(f"{args.rows:,} rows: {seconds:.1f} s, {peak_mib() - before:,} MiB beside what was in memory")


if __name__ == "__main__":
    main()
