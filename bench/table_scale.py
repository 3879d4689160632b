"""Tables of many objects, with S3 in memory: `python -m bench.table_scale`.

Time and memory of what a registration reads of a ledger, when its table has all objects but the newest, and of
`verify --table`. The published log has 5,000 objects in a file.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from sink_job.api.enums import CatalogType
from sink_job.api.sections.tables_section import CatalogSpec
from sink_job.ledger.state import ClosedObject, LedgerState, OffsetChecksum
from sink_job.ledger.store import AuditEntry, Ledger
from sink_job.s3 import S3Client
from sink_job.tables.auditor import verify_table
from sink_job.tables.catalogs import IcebergCatalog, open_catalog
from sink_job.tables.commit import TableChange, commit, with_schema
from sink_job.tables.files import DataFiles, ObjectFooter
from sink_job.tables.housekeeping import Housekeeping
from sink_job.tables.ledger_reader import KnownFiles, PublishedLog, TopicObjects
from sink_job.tables.parquet_schema import ObjectColumns
from sink_job.tables.plan import LedgerView, next_batch
from tests.support.memory_s3 import MemoryS3

NAME = "lake.scale"
PER_FILE = 5_000
COLUMNS = 20
ROOT = "topics/_s3sink/x/"


def closed(number: int) -> ClosedObject:
    """Object `number`, which record `number` acknowledges; it has 1,000 records."""
    first = number * 1_000
    return ClosedObject(
        key=f"topics/log/year=2026/month=11/day=28/hour=00/log+0+{first:020d}.parquet",
        topic="log",
        partition=0,
        path="year=2026/month=11/day=28/hour=00",
        first=first,
        last=first + 999,
        bytes=10_000_000,
        crc=number,
        upload=f"{number:064x}",
        parts=(),
        sources=(),
        offsets=OffsetChecksum(1_000, number),
        settings=1,
        record=number,
        acknowledged=number,
        schema="1",
    )


def reset_peak() -> int:
    """Begins a measurement of the maximum memory; returns the present memory of this process in MiB."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status_mib("VmRSS")


def peak_mib() -> int:
    """The maximum memory of this process since the last `reset_peak`."""
    return _status_mib("VmHWM")


def _status_mib(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) >> 10


def publish(s3: MemoryS3, count: int) -> None:
    for start in range(0, count, PER_FILE):
        lines = (msgspec.json.encode(AuditEntry(object=closed(n))) for n in range(start + 1, start + PER_FILE + 1))
        name = f"{ROOT}published/{start:020d}-{start + PER_FILE:020d}.jsonl.gz"
        s3.put(name, gzip.compress(b"\n".join(lines) + b"\n", 5))


def objects_of(s3: MemoryS3, count: int, known: KnownFiles) -> TopicObjects:
    ledger = Ledger(cast("S3Client", s3), ROOT, "bench")
    return PublishedLog(ledger, LedgerState(number=count, audited_to=count), known).by_topic()["log"]


def fill(catalog: IcebergCatalog, count: int) -> None:
    """Commits all objects, without their footers."""
    schema = Schema(*(NestedField(n, f"c{n}", LongType(), required=False) for n in range(1, COLUMNS + 1)))
    columns = ObjectColumns(schema, tuple(range(1, COLUMNS + 1)))
    bounds = {n: (n).to_bytes(8, "little") for n in range(1, COLUMNS + 1)}
    counts = dict.fromkeys(bounds, 1_000)
    for start in range(0, count, PER_FILE):
        found = catalog.load(NAME)
        table = found or with_schema(catalog.stage(NAME, Housekeeping().new_table()), schema)
        files = DataFiles(schema)
        entries = []
        for o in map(closed, range(start + 1, start + PER_FILE + 1)):
            fields: Mapping[str, Any] = {
                "file_path": f"s3://archive/{o.key}",
                "record_count": o.offsets.count,
                "file_size_in_bytes": o.bytes,
                "column_sizes": counts,
                "value_counts": counts,
                "null_value_counts": counts,
                "lower_bounds": bounds,
                "upper_bounds": bounds,
                "split_offsets": [4],
            }
            entries.append(files.file(ObjectFooter(o, columns, fields)))
        commit(catalog, table, TableChange("sink", "ledger", 1, start + PER_FILE, schema, entries, {}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument("--no-verify", action="store_true", help="read the ledger alone")
    args = parser.parse_args()
    s3, lake = MemoryS3(), MemoryS3()
    publish(s3, args.objects)
    print(f"{args.objects:,} objects; memory with the stored log: {peak_mib():,} MiB")
    known = KnownFiles()
    for label in ("first read of a process", "later read"):
        begin = time.perf_counter()
        objects = objects_of(s3, args.objects, known)
        batch = next_batch(objects.after(args.objects - 10), args.objects - 10, args.objects)
        assert batch is not None
        assert len(batch.objects) == 10
        print(f"{label}: {time.perf_counter() - begin:.2f} s, {peak_mib():,} MiB")
    if args.no_verify:
        return
    with tempfile.TemporaryDirectory() as folder:
        uri = f"sqlite:///{Path(folder)}/catalog.db"
        spec = CatalogSpec(type=CatalogType.SQL, uri=uri, warehouse="s3://lake/tables")
        catalog = open_catalog(spec, lambda bucket: cast("S3Client", lake))
        fill(catalog, args.objects)
        print(f"registered: {peak_mib():,} MiB")
        view = LedgerView("sink", "ledger", args.objects)
        before = reset_peak()
        begin = time.perf_counter()
        audit = verify_table(catalog, NAME, "log", lambda: (view, {"log": objects}), "archive", ["topics/"])
        assert not audit.findings, audit.findings[:3]
        seconds = time.perf_counter() - begin
        print(f"verify --table: {seconds:.1f} s, {peak_mib() - before:,} MiB beside what was in memory")


if __name__ == "__main__":
    main()
