"""A sink on a real S3 server, and tables over its objects in a catalog."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from devtools.iceberg_reader import read_table
from devtools.s3 import s3_client
from sink_job.api.enums import CatalogType
from sink_job.api.sections.tables_section import CatalogSpec, TableSpec
from sink_job.cli import main as cli
from sink_job.coordinator.context import StopCondition
from sink_job.ledger.schemas.field_ids import LedgerFieldIds
from sink_job.ledger.store import Ledger
from sink_job.tables.audit import TableAudit
from sink_job.tables.auditor import verify_table
from sink_job.tables.catalogs import IcebergCatalog, open_catalog
from sink_job.tables.field_ids.waiting_topics import WaitingTopics
from sink_job.tables.file_io import clients_like
from sink_job.tables.ledger_reader import read_ledger
from tests.support.sink_fixture import SinkFixture, manifest
from tests.support.synthetic_log import SyntheticLog
from tests.support.table_sink import FORMAT, SINK_ID, parquet_log

ALL: Final = StopCondition(until_caught_up=True, publish_open=True)
VALUES: Final = "result = connection.execute('select \"offset\", kind, seats from t order by 1').fetchall()"
"""The rows of a table."""


class LakeFixture:
    """A sink on a real S3 server, with tables in a catalog."""

    def __init__(
        self,
        sink: SinkFixture,
        rest: str | None = None,
        *,
        spec: CatalogSpec | None = None,
        catalog: IcebergCatalog | None = None,
    ) -> None:
        """`rest`: the URL of a REST catalog; None: a SQL catalog, or that of `spec`, which is open as `catalog`."""
        self.sink = sink
        if spec is not None:
            self.spec = spec
        elif rest is None:
            bucket = f"{sink.bucket}-lake"
            s3_client(sink.endpoint).create_bucket(Bucket=bucket)
            uri = f"sqlite:///{sink.folder}/catalog.db"
            self.spec = CatalogSpec(type=CatalogType.SQL, uri=uri, warehouse=f"s3://{bucket}/tables")
        else:
            self.spec = CatalogSpec(type=CatalogType.REST, uri=rest)
        self.catalog = catalog or open_catalog(self.spec, clients_like(sink.settings))
        self.given: dict[str, Any] = {"flush_size": 10}
        self.sections: dict[str, Any] = {"format": FORMAT}
        self.options: dict[str, Any] = {}
        self.name = "lake.{topic}"

    def run(self, records: int, ids: tuple[int, ...] = (1,), **given: Any) -> None:
        self.run_log(parquet_log(records, ids, **given))

    def run_log(self, log: SyntheticLog) -> None:
        """Runs the sink with its `sections` of the manifest until all records of the log are published."""
        self.sink.run(log, ALL, **self.given, spec=self.sections)

    def run_new(self, records: int, ids: tuple[int, ...] = (1,), name: str = "lake.log") -> None:
        """As `run`, by a sink whose manifest has the table: a new topic takes its field ids."""
        table, root = TableSpec(catalog=self.spec, name=name), f"topics/_s3sink/{SINK_ID}/"
        store = LedgerFieldIds(self.sink.s3, root)
        with WaitingTopics([table], store, lambda spec: self.catalog, str, ends=True) as waiting:
            self.sink.run(
                parquet_log(records, ids),
                ALL,
                **self.given,
                spec=self.sections,
                context={"held_topics": waiting.held},
            )

    def reset(self, records: int, on_existing: str, to: str = "Earliest") -> None:
        """`s3sink reset-offsets`, with `records` in the log."""
        spec = {"format": FORMAT}
        self.sink.reset(parquet_log(records), to, on_existing=on_existing, **self.given, spec=spec)

    def register(self, *arguments: str, name: str | None = None) -> int:
        """`s3sink register`, for tables of this name with `options`."""
        return self._command("register", name or self.name, *arguments)

    def verify_command(self, *arguments: str, name: str | None = None) -> int:
        """`s3sink verify --table`."""
        return self._command("verify", name or self.name, "--table", *arguments)

    def _command(self, command: str, name: str, *arguments: str) -> int:
        table = {"catalog": self.spec.model_dump(exclude_none=True, by_alias=True), "name": name, **self.options}
        spec = {**self.sections, "tables": [table]}
        document = json.loads(manifest(self.sink.bucket, self.sink.endpoint, **self.given, spec=spec))
        document["spec"]["s3"]["credentials"] = {"secret": "s3"}
        path = self.sink.folder / "sink.yaml"
        path.write_text(json.dumps(document))
        secret = f"s3={self.sink.settings.credentials_dir}"
        return cli.main([command, str(path), "--secret", secret, *arguments])

    def verify(self, name: str = "lake.log") -> TableAudit:
        """`s3sink verify --table`, for this table."""
        s3, sink_id = self.sink.s3, "default.log"
        ledger = Ledger(s3, f"topics/_s3sink/{sink_id}/", "verify")
        return verify_table(
            self.catalog, name, "log", lambda: read_ledger(ledger, sink_id), self.sink.bucket, ["topics/"]
        )

    def read(self, script: str, name: str = "lake.log") -> Any:
        table = self.catalog.load(name)
        assert table is not None
        return read_table(self.sink.endpoint, table.metadata_location, script)


def expected(records: int, ids_of: Callable[[int], int]) -> list[list[Any]]:
    """The rows of `VALUES` that the table must have; `ids_of` is the schema id of an offset."""
    rows = []
    for offset in range(records):
        item = parquet_log(records, (ids_of(offset),)).item(0, offset)
        rows.append([offset, item["kind"], item.get("seats")])
    return rows
