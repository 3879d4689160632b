"""Memory and CPU time of registrations in a process that has Arrow loaded already, as a driver has.

`python -m bench.registration_memory 10000 20` registers 10,000 objects of 20 columns in a table with a SQL catalog; the
buckets are in memory, and the objects share their bytes.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.support.memory_s3 import MemoryS3
from tests.unit.tables.parquet_objects import column, listed, parquet

ROWS = 1_000


class _SameObject(MemoryS3):
    """A bucket whose Parquet objects all have the same content, kept once."""

    content = b""

    def get_range(
        self, key: str, offset: int, length: int, *, etag: str | None = None, version: str | None = None
    ) -> bytes:
        return self.content[offset : offset + length]


def main(objects: int, columns: int) -> str:
    fields = [column(n + 1, f"column_{n}", pa.string() if n % 2 else pa.int64()) for n in range(columns)]
    values = {each.name: [f"text {n}" if each.type == pa.string() else n for n in range(ROWS)] for each in fields}
    store = _SameObject()
    store.content = parquet(fields, values)
    all_listed = [
        listed(f"topics/log/log+0+{n * ROWS:019}.parquet", store.content, ROWS, n + 1) for n in range(objects)
    ]
    before, started = _peak(), time.process_time()
    outcome = _register(store, all_listed)
    seconds, memory = time.process_time() - started, _peak() - before
    assert outcome.objects == objects
    return f"{objects} objects of {columns} columns: {outcome.commits} commits, {seconds:.1f} CPU-s, {memory >> 20} MiB"


def _register(store: Any, objects: Any) -> Any:
    from sink_job.api.enums import CatalogType
    from sink_job.api.sections.tables_section import CatalogSpec
    from sink_job.tables.catalogs import open_catalog
    from sink_job.tables.plan import LedgerView, Request
    from sink_job.tables.registration import Registration
    from sink_job.tables.registrations.topic_table import TopicTable

    lake: Any = MemoryS3()
    with tempfile.TemporaryDirectory() as folder:
        spec = CatalogSpec(type=CatalogType.SQL, uri=f"sqlite:///{folder}/catalog.db", warehouse="s3://lake/tables")
        catalog = open_catalog(spec, lambda bucket: store if bucket == "archive" else lake)
        view = LedgerView("sink", "ledger", len(objects))
        target = TopicTable("lake.log", "log", objects, view, ("topics/",), lambda seconds: None)
        return Registration(store, "topics/_s3sink/x/", catalog, target).run(Request(from_beginning=True))


def _peak() -> int:
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    print(main(int(sys.argv[1]), int(sys.argv[2])))
