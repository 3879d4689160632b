"""A sink with Parquet objects and a table over them: buckets in memory, and PyIceberg's SQL catalog on SQLite."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import StagedTable, Table
from pyiceberg.table.update import TableRequirement, TableUpdate

from sink_job.api.enums import CatalogType, ConverterType, OutputFormat
from sink_job.api.parser import load_sink
from sink_job.api.sections.tables_section import CatalogSpec
from sink_job.ledger.schemas.field_ids import LedgerFieldIds
from sink_job.ledger.store import Ledger
from sink_job.tables.catalogs import CommitUnknown, IcebergCatalog, open_catalog
from sink_job.tables.field_ids.table_ids import seed_of, table_ids
from sink_job.tables.housekeeping import Housekeeping
from sink_job.tables.ledger_reader import read_ledger
from sink_job.tables.memory import Memory, StoredMemory
from sink_job.tables.plan import Request, head_of
from sink_job.tables.registration import Registration
from sink_job.tables.registrations.topic_table import RegistrationOutcome, TopicTable
from tests.support.memory_s3 import MemoryS3
from tests.support.memory_sink import MemorySinkFixture
from tests.support.schema_log import SchemaLog
from tests.support.sink_fixture import manifest

NAME = "lake.log"
SINK_ID = "default.log"
BEGIN = Request(from_beginning=True)
FORMAT = {"converter": "ConnectJson", "output": "Parquet"}


def parquet_log(records: int, ids: tuple[int, ...] = (1,), **given: Any) -> SchemaLog:
    """Records of the schemas `ids`; that with the id 2 has a field more."""
    return SchemaLog(
        records=records, ids=ids, converter=ConverterType.CONNECT_JSON, output=OutputFormat.PARQUET, **given
    )


class Killed(BaseException):
    """The process ends here."""


@dataclass
class FaultyCatalog:
    """A catalog whose commits go wrong. `before` and `after` are called around each commit; `holds`: it is kept for
    later, and the reply is lost."""

    inner: IcebergCatalog
    before: Callable[[], None] = lambda: None
    after: Callable[[], None] = lambda: None
    holds: bool = False
    held: list[Callable[[], None]] = field(default_factory=list)
    commits: int = 0

    def load(self, name: str) -> Table | None:
        return self.inner.load(name)

    def stage(self, name: str, properties: Any) -> StagedTable:
        return self.inner.stage(name, properties)

    def commit(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> None:
        self.commits += 1
        self.before()
        if self.holds:
            self.held.append(lambda: self.inner.commit(table, requirements, updates))
            raise CommitUnknown("the reply was lost")
        self.inner.commit(table, requirements, updates)
        self.after()


class TableSink:
    """A sink `default.log` with ten records in an object, and its table `lake.log`."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fixture = MemorySinkFixture(folder, monkeypatch)
        self.format: dict[str, Any] = FORMAT
        self.partition_by(type="Default")
        self.s3 = self.fixture.s3
        self.lake = MemoryS3()
        self.catalog = FaultyCatalog(open_catalog(self.catalog_spec(folder), self._client_of))
        self.effects: Callable[[], None] = lambda: None
        self.options: dict[str, Any] = {}
        self.housekeeping = Housekeeping()
        self.ahead_ms = 0
        """How far the clock of registrations is ahead."""

    def partition_by(self, **partitioner: Any) -> None:
        """Sets the partitioner of later drivers."""
        spec = {"format": self.format, "partitioner": partitioner}
        text = manifest("archive", "http://127.0.0.1:9", flush_size=10, name="log", spec=spec)
        self.fixture.sink = load_sink(text)

    @staticmethod
    def catalog_spec(folder: Path) -> CatalogSpec:
        return CatalogSpec(type=CatalogType.SQL, uri=f"sqlite:///{folder}/catalog.db", warehouse="s3://lake/tables")

    def _client_of(self, bucket: str) -> Any:
        return self.s3 if bucket == "archive" else self.lake

    @property
    def iceberg(self) -> Catalog:
        """The catalog itself, for changes by others."""
        return self.catalog.inner._catalog

    @property
    def root(self) -> str:
        return self.fixture.root

    def write(self, records: int, **given: Any) -> None:
        """Runs a driver until all of `records` are in objects."""
        self.fixture.run(parquet_log(records, **given))

    def write_as(self, output: OutputFormat, records: int, *ids: int) -> None:
        """The same with objects of this format, and records of the schemas `ids`."""
        spec = {"format": {**FORMAT, "output": output.value}, "partitioner": {"type": "Default"}}
        text = manifest("archive", "http://127.0.0.1:9", flush_size=10, name="log", spec=spec)
        self.fixture.sink = load_sink(text)
        self.fixture.run(replace(parquet_log(records, ids), output=output))

    def registration(self) -> Registration:
        """A registration of what the ledger has now."""
        s3: Any = self.s3
        view, objects = read_ledger(Ledger(s3, self.root, "register"), SINK_ID)
        target = TopicTable(
            name=NAME,
            topic="log",
            objects=objects.get("log", ()),
            ledger=view,
            prefixes=("topics/",),
            wait=lambda seconds: None,
            housekeeping=self.housekeeping,
            clock=lambda: time.time_ns() // 1_000_000 + self.ahead_ms,
            **self.options,
        )
        return Registration(s3, self.root, self.catalog, target)

    def register(self, request: Request = BEGIN, **given: Any) -> RegistrationOutcome:
        return self.registration().run(request, **given)

    def take_ids(self) -> None:
        """What a driver does for a new topic: the ids of the table, if it exists, are those of its first object."""
        s3: Any = self.s3
        found = self.catalog.load(NAME)
        if found is not None:
            LedgerFieldIds(s3, self.root).seed("log", seed_of([table_ids(NAME, found.metadata)]))

    def table(self) -> Table:
        found = self.catalog.load(NAME)
        assert found is not None
        return found

    def files(self) -> list[str]:
        """The keys of the objects in the branch of the table, sorted: an object that is in it twice is here twice."""
        table = self.table()
        head = head_of(table.metadata, self.options.get("branch", "main"))
        snapshot = None if head is None else table.snapshot_by_id(head)
        manifests = () if snapshot is None else snapshot.manifests(table.io)
        entries = (entry for each in manifests for entry in each.fetch_manifest_entry(table.io))
        return sorted(each.data_file.file_path.removeprefix("s3://archive/") for each in entries)

    def objects(self) -> Sequence[str]:
        """The keys of all objects of the sink, sorted."""
        return sorted(key for key in self.s3.objects if "/_s3sink/" not in key)

    def memory(self) -> Memory | None:
        s3: Any = self.s3
        return StoredMemory(s3, self.root, NAME).read()

    @contextmanager
    def killed_at(self, effect: int) -> Iterator[None]:
        """Kills the process at the effect with this number, from 0 on: before each put of a file, and before and after
        each commit. Suppresses it."""
        count = 0

        def step(call: str = "put", key: str = "") -> None:
            nonlocal count
            if call == "put":
                count += 1
                if count > effect:
                    raise Killed

        self.s3.fault = self.lake.fault = step
        self.catalog.before = self.catalog.after = step
        try:
            yield
        except Killed:
            pass
        finally:
            self.s3.fault = self.lake.fault = lambda call, key: None
            self.catalog.before = self.catalog.after = lambda: None
