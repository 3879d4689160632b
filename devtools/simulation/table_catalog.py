"""A catalog with tables in memory, whose replies get lost and whose commits are delayed, and other programs that
change a table. Metadata, requirements and manifests are PyIceberg's own."""

from __future__ import annotations

import io
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestFile
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table import StagedTable, Table, Transaction
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import (
    AddSchemaUpdate,
    RemovePropertiesUpdate,
    RemoveSnapshotsUpdate,
    SetCurrentSchemaUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
    update_table_metadata,
)
from pyiceberg.table.update.snapshot import _FastAppendFiles
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField

from sink_job.api.errors import TransientError
from sink_job.tables.catalogs import CommitRejected, CommitUnknown

NAME: Final = "lake.log"
"""The table that is meant without a name."""
LOCATION: Final = "s3://lake/tables/log"
COLUMNS: Final = Schema(NestedField(1, "c", LongType(), required=False))
FAULTS: Final = ("conflict", "server error", "lost", "lost reply")
Draw = Callable[[], str | None]
"""The fault of a commit; None: none."""


class MemoryIO(FileIO):
    """Files of metadata."""

    def __init__(self) -> None:
        super().__init__({})
        self.files: dict[str, bytes] = {}

    def new_input(self, location: str) -> InputFile:
        return _Input(location, self.files)

    def new_output(self, location: str) -> OutputFile:
        return _Output(location, self.files)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        raise AssertionError("a registration deletes no file")


class _Input(InputFile):
    def __init__(self, location: str, files: dict[str, bytes]) -> None:
        super().__init__(location)
        self._files = files

    def __len__(self) -> int:
        return len(self._files[self.location])

    def exists(self) -> bool:
        return self.location in self._files

    def open(self, seekable: bool = True) -> io.BytesIO:
        return io.BytesIO(self._files[self.location])


class _Output(OutputFile):
    def __init__(self, location: str, files: dict[str, bytes]) -> None:
        super().__init__(location)
        self._files = files

    def __len__(self) -> int:
        return len(self._files[self.location])

    def exists(self) -> bool:
        return self.location in self._files

    def to_input_file(self) -> InputFile:
        return _Input(self.location, self._files)

    def create(self, overwrite: bool = False) -> io.BytesIO:
        files, location = self._files, self.location

        class Written(io.BytesIO):
            def close(self) -> None:
                if not self.closed:
                    files[location] = self.getvalue()
                super().close()

        return Written()


class SimulatedCatalog:
    """A `TableCatalog`. `step` is called before and after each request, and `draw` for the fault of a commit."""

    def __init__(self, rng: random.Random, step: Callable[[str], None], draw: Draw, load_fails: Draw) -> None:
        self._rng = rng
        self._step = step
        self._draw = draw
        self._load_fails = load_fails
        self.io = MemoryIO()
        self.tables: dict[str, TableMetadata] = {}
        self.delayed: list[Callable[[], None]] = []
        self._compacted: dict[str, Mapping[str, int]] = {}
        self._contents: dict[int, Mapping[str, int]] = {}

    @property
    def metadata(self) -> TableMetadata | None:
        """That of the table `NAME`; None if it does not exist."""
        return self.tables.get(NAME)

    # -- requests ------------------------------------------------------------------------------------------------------

    def load(self, name: str) -> Table | None:
        self._step("load")
        if self._load_fails() is not None:
            raise TransientError("500")
        found = self._table(name)
        self._step("reply to load")
        return found

    def stage(self, name: str, properties: Mapping[str, str]) -> StagedTable:
        metadata = new_table_metadata(
            COLUMNS, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, LOCATION, dict(properties)
        )
        catalog: Any = None
        return StagedTable(tuple(name.split(".")), metadata, f"{LOCATION}/metadata/0.json", self.io, catalog)

    def commit(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> None:
        self._step("commit")
        name = ".".join(table.name())
        fault = self._draw()
        if fault == "conflict":
            raise CommitRejected("409")
        if fault == "server error":
            raise CommitUnknown("500")
        if fault == "lost":
            self.delayed.append(lambda: self._apply(requirements, updates, name))
            raise CommitUnknown("timeout")
        try:
            self._apply(requirements, updates, name)
        except CommitFailedException as error:
            if fault != "lost reply":
                raise CommitRejected(str(error)) from error
        except ValueError as error:  # a snapshot that is to expire has expired meanwhile
            raise CommitUnknown(str(error)) from error
        if fault == "lost reply":
            raise CommitUnknown("connection lost")
        self._step("reply to commit")

    def land(self) -> None:
        """A delayed commit arrives."""
        request = self.delayed.pop(self._rng.randrange(len(self.delayed)))
        try:
            request()
        except (CommitFailedException, ValueError):
            return

    def _table(self, name: str = NAME) -> Table | None:
        metadata = self.tables.get(name)
        if metadata is None:
            return None
        catalog: Any = None
        return Table(tuple(name.split(".")), metadata, f"{LOCATION}/metadata/1.json", self.io, catalog)

    def _apply(
        self, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...], name: str = NAME
    ) -> None:
        base = self.tables.get(name)
        for each in requirements:
            each.validate(base)
        self.tables[name] = update_table_metadata(
            MetastoreCatalog._empty_table_metadata() if base is None else base, updates, enforce_validation=base is None
        )

    # -- what the table has --------------------------------------------------------------------------------------------

    def contents(self, name: str = NAME) -> Mapping[str, int]:
        """How often the table has each object, by its path."""
        metadata = self.tables.get(name)
        head = None if metadata is None else metadata.current_snapshot()
        if head is None:
            return {}
        if head.snapshot_id not in self._contents:
            found: Counter[str] = Counter()
            for manifest in head.manifests(self.io):
                for entry in manifest.fetch_manifest_entry(self.io):
                    path = entry.data_file.file_path
                    found.update(self._compacted.get(path, {path: 1}))
            self._contents[head.snapshot_id] = found
        return self._contents[head.snapshot_id]

    # -- other programs ------------------------------------------------------------------------------------------------

    def compact(self, name: str = NAME) -> None:
        """All objects are in one file of another program then."""
        self._snapshot(name, _Replacing, self.contents(name))

    def append(self, name: str = NAME) -> None:
        """A snapshot of another program, without files."""
        self._snapshot(name, _FastAppendFiles, None)

    def _snapshot(self, name: str, kind: type[_FastAppendFiles], contents: Mapping[str, int] | None) -> None:
        table = self._table(name)
        assert table is not None
        producer = kind(Operation.APPEND, Transaction(table), self.io)
        if contents is not None:
            path = f"s3://lake/compacted/{len(self._compacted)}"
            self._compacted[path] = dict(contents)
            producer.append_data_file(_file(path))
        updates, _ = producer._commit()
        self._apply((), updates, name)

    def expire(self, name: str = NAME) -> None:
        """All snapshots but the head."""
        metadata = self.tables[name]
        old = [each.snapshot_id for each in metadata.snapshots if each != metadata.current_snapshot()]
        if old:
            self._apply((), (RemoveSnapshotsUpdate.model_validate({"snapshot-ids": old}),), name)

    def drop_column(self, number: int, name: str = NAME) -> None:
        """Objects may have any type in the column then."""
        metadata = self.tables[name]
        fields = [each for each in metadata.schema().fields if each.field_id != number]
        schema = Schema(*fields, schema_id=max(each.schema_id for each in metadata.schemas) + 1)
        current = SetCurrentSchemaUpdate.model_validate({"schema-id": -1})
        self._apply((), (AddSchemaUpdate(schema=schema), current), name)

    def roll_back(self) -> bool:
        """To any ancestor of the head; returns whether there is one."""
        assert self.metadata is not None
        known = {each.snapshot_id: each.parent_snapshot_id for each in self.metadata.snapshots}
        at = known.get(self.metadata.current_snapshot_id or 0)
        earlier = []
        while at in known:
            earlier.append(at)
            at = known[at]
        if earlier:
            given = {"snapshot-id": self._rng.choice(earlier), "ref-name": "main", "type": "branch"}
            self._apply((), (SetSnapshotRefUpdate.model_validate(given),))
        return bool(earlier)

    def create(self) -> TableMetadata:
        """An empty table, before the first registration."""
        self.tables[NAME] = self.stage(NAME, {"format-version": "2"}).metadata
        return self.tables[NAME]

    def snapshots(self) -> Sequence[Snapshot]:
        return [] if self.metadata is None else self.metadata.snapshots

    def replace(self) -> None:
        """Another program drops the table, and perhaps creates an empty one with the same columns."""
        del self.tables[NAME]
        if self._rng.random() < 0.5:
            self.create()

    def change_columns(self, rng: random.Random) -> None:
        """Another program renames a column or drops one."""
        table = self._table()
        assert table is not None
        names = [each.name for each in table.schema().fields]
        chosen, update = rng.choice(names), Transaction(table).update_schema()
        if len(names) > 1 and rng.random() < 0.3:
            update.delete_column(chosen)
        else:
            update.rename_column(chosen, f"renamed_{rng.getrandbits(32)}")
        updates, _ = update._commit()
        self._apply((), updates)

    def set_property(self, name: str, value: str | None) -> None:
        update: TableUpdate = (
            RemovePropertiesUpdate(removals=[name]) if value is None else SetPropertiesUpdate(updates={name: value})
        )
        self._apply((), (update,))


class _Replacing(_FastAppendFiles):
    """Makes a snapshot without the files of its parent."""

    def _existing_manifests(self) -> list[ManifestFile]:
        return []


def _file(path: str) -> DataFile:
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_format=FileFormat.PARQUET,
        file_path=path,
        partition=Record(),
        record_count=1,
        file_size_in_bytes=1,
    )
