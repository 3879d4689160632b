"""The time of a commit to a table in the course of a day with one each minute: `python -m bench.table_commits`.

Each commit adds one object, through VersityGW and Iceberg's REST server or PyIceberg's SQL catalog. No snapshot expires
within a day.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from devtools.iceberg_rest.server import iceberg_rest_server
from devtools.s3 import credentials_secret, s3_server
from sink_job.api.enums import CatalogType
from sink_job.api.sections.tables_section import CatalogSpec
from sink_job.s3 import connect
from sink_job.tables.catalogs import TableCatalog, open_catalog
from sink_job.tables.file_io import clients_like
from sink_job.tables.plan import LedgerView, Request
from sink_job.tables.registration import Registration
from sink_job.tables.registrations.topic_table import TopicTable
from tests.support.synthetic_log import loopback_settings
from tests.unit.tables.parquet_objects import column, listed, parquet

NAME = "lake.commits"
COLUMNS = 20
SHOWN = 240
"""Number of commits of a row of figures."""


def content() -> bytes:
    """An object with some columns."""
    fields = [column(number, f"c{number}", pa.int64()) for number in range(1, COLUMNS + 1)]
    return parquet(fields, {each.name: [1, 2, 3] for each in fields})


@contextmanager
def catalog_of(kind: str, folder: Path, endpoint: str) -> Iterator[CatalogSpec]:
    if kind == "sql":
        yield CatalogSpec(type=CatalogType.SQL, uri=f"sqlite:///{folder}/catalog.db", warehouse="s3://lake/tables")
    else:
        with iceberg_rest_server(folder, endpoint, "s3://lake/tables") as url:
            yield CatalogSpec(type=CatalogType.REST, uri=url)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--catalog", choices=("rest", "sql"), default="rest")
    parser.add_argument("--commits", type=int, default=1_440)
    args = parser.parse_args()
    with s3_server() as s3, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for bucket in ("lake", "objects"):
            s3.client().create_bucket(Bucket=bucket)
        secret = folder / "secret"
        secret.mkdir()
        settings = loopback_settings(s3.endpoint, "objects", credentials_secret(secret))
        with catalog_of(args.catalog, folder, s3.endpoint) as spec:
            client, catalog = connect(settings), open_catalog(spec, clients_like(settings))
            body, identity, times = content(), uuid4().hex, []
            print("commits   median s   maximum s   snapshots   manifests   metadata bytes")
            for number in range(1, args.commits + 1):
                key = f"topics/log/{number}.parquet"
                client.put(key, body)
                target = TopicTable(
                    name=NAME,
                    topic="log",
                    objects=[listed(key, body, 3, acknowledged=number)],
                    ledger=LedgerView("sink", identity, number),
                    prefixes=("topics/",),
                    wait=time.sleep,
                )
                begin = time.perf_counter()
                Registration(client, "topics/_s3sink/x/", catalog, target).run(Request(from_beginning=True))
                times.append(time.perf_counter() - begin)
                if number % SHOWN == 0:
                    _show(catalog, number, times[-SHOWN:])


def _show(catalog: TableCatalog, number: int, times: list[float]) -> None:
    table = catalog.load(NAME)
    assert table is not None
    head = table.current_snapshot()
    assert head is not None
    print(
        f"{number:>7,} {statistics.median(times):>10.3f} {max(times):>11.3f} {len(table.metadata.snapshots):>11,}"
        f" {len(head.manifests(table.io)):>11,} {len(table.metadata.model_dump_json()):>16,}",
        flush=True,
    )


if __name__ == "__main__":
    main()
