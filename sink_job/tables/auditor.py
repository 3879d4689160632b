"""Reads what the audit of a table compares: the live files of its present snapshot, the ledger, and with `RowAccess`
the rows of files of others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH

from sink_job.api.enums import TablePartitioning
from sink_job.api.errors import TableNotRegistered
from sink_job.ledger.schemas.field_ids import LedgerFieldIds
from sink_job.ledger.state import ClosedObject
from sink_job.s3 import S3Client
from sink_job.tables.append import added_by
from sink_job.tables.audit import MetadataAudit, PathTexts, TableAudit
from sink_job.tables.audits.envelope_rows import COLUMNS, EnvelopeIds, EnvelopeRows, RowBatch
from sink_job.tables.audits.file_index import FileIndex
from sink_job.tables.audits.offset_ranges import OffsetRanges
from sink_job.tables.audits.row_audit import NeedsObject, OwnRows, RowAudit, RowResult
from sink_job.tables.audits.table_files import OtherFile, TableFiles
from sink_job.tables.avro_objects.name_mapping import PROPERTY, NameMapping
from sink_job.tables.catalogs import TableCatalog
from sink_job.tables.file_io import SinkFileIO
from sink_job.tables.missing.skipped import SkippedObjects
from sink_job.tables.partitions.object_partitions import Partitioner
from sink_job.tables.partitions.partition_audit import PartitionReader
from sink_job.tables.plan import LedgerView, is_rolled_back
from sink_job.tables.position import TablePosition, other_positions, position_in
from sink_job.tables.successors.continuation import Continuation
from sink_job.tables.successors.parts import TablePart
from sink_job.verify.parquet_footers import is_parquet

ReadLedger = Callable[[], tuple[LedgerView, Mapping[str, Iterable[ClosedObject]]]]
"""Reads the ledger: its view and the acknowledged objects by topic, which can be iterated again."""

_NO_ENVELOPE: Final = (
    "the rows of files of others cannot be verified: format.envelope was not set when their records were written, so "
    "rows have no topic, partition and offset"
)


@dataclass(frozen=True)
class RowAccess:
    """What reads the rows of a table: the client of the sink's bucket, and the prefix of the ledger."""

    s3: S3Client
    root: str


def verify_table(
    catalog: TableCatalog,
    name: str,
    topic: str,
    read: ReadLedger,
    bucket: str,
    prefixes: Sequence[str],
    branch: str = MAIN_BRANCH,
    rows: RowAccess | None = None,
    part: tuple[Continuation | None, Continuation | None] = (None, None),
) -> TableAudit:
    """The audit of a branch of the table of a topic; `prefixes` are those of all keys of the sink. Only metadata is
    read, and with `rows` the rows of files that are not the sink's. The ledger is read after the table, so it has every
    object of the table. `part`: what the tables before have, and where the objects after those of this table are.

    Raises TableNotRegistered if the table does not exist, has no position of this ledger, has files with deletes, or
    files whose rows cannot be read.
    """
    table = catalog.load(name)
    if table is None:
        raise TableNotRegistered(f"table {name} does not exist")
    partitions = PartitionReader(table.metadata)
    files = TableFiles(table, branch, partitions)
    index = FileIndex(files, [f"s3://{bucket}/{prefix}" for prefix in prefixes])
    ledger, by_topic = read()
    own = TablePart(by_topic.get(topic, ()), *part)
    position = position_in(table.properties, ledger.sink_id)
    if position is None or position.ledger != ledger.identity:
        raise TableNotRegistered(f"table {name} has no position of this sink's ledger: it cannot be verified")
    texts = _path_texts(partitions.names, position, ledger)
    audit = MetadataAudit(index, files, own.position(position), own.copied_from(ledger, position), texts)
    moved = _MovedObjects(ledger)
    skipped = SkippedObjects.of(position.skipped, table.properties, ledger.sink_id)
    audit.skip(skipped, _with_paths(own, bucket))
    audit.compare(_with_paths(own, bucket), moved.see)
    is_back = is_rolled_back(table.metadata, position, branch, lambda: added_by(table, branch))
    if rows is None or not len(index.others):
        return audit.result(is_rolled_back=is_back)
    if not moved.enveloped and moved.without:
        return replace(audit.result(is_rolled_back=is_back), notes=(_NO_ENVELOPE,))
    reader = _TableRowReader(table, files, index, own, ledger, topic, rows)
    is_shared = bool(other_positions(table.properties, ledger.sink_id))
    found = RowAudit(moved.ranges.components(), reader, audit.findings).run(
        allows_foreign=is_shared, without=moved.without
    )
    result = audit.result(is_rolled_back=is_back, by_rows=True)
    return replace(result, proven=found.proven, notes=tuple(_notes(found, moved.without, is_shared=is_shared)))


def _with_paths(objects: Iterable[ClosedObject], bucket: str) -> Iterator[tuple[str, ClosedObject]]:
    return ((f"s3://{bucket}/{o.key}", o) for o in objects)


def _notes(found: RowResult, without: int, *, is_shared: bool) -> Iterator[str]:
    """What is no finding, but not verified. `is_shared`: other sinks write to the table."""
    if found.foreign and is_shared:
        yield f"{found.foreign:,} rows are of other topics: another sink writes to the table, too"
    if without or (found.without and is_shared):
        yield (
            f"{found.without:,} rows have no topic, partition and offset: they were written without format.envelope. "
            "Only their number is verified"
        )


class _MovedObjects:
    """The objects that the table must have, by their offsets. `enveloped` and `without` are the numbers of records of
    those that it does not have, with and without an envelope."""

    def __init__(self, ledger: LedgerView) -> None:
        self._ledger = ledger
        self.ranges = OffsetRanges()
        self.enveloped = self.without = 0

    def see(self, o: ClosedObject, is_in_table: bool) -> None:
        has_envelope = o.settings in self._ledger.enveloped
        if is_in_table or has_envelope:
            self.ranges.add(o, is_own=is_in_table)
        if not is_in_table:
            self.enveloped += o.offsets.count if has_envelope else 0
            self.without += 0 if has_envelope else o.offsets.count


class _TableRowReader:
    """Reads the rows of a table."""

    def __init__(
        self,
        table: Table,
        files: TableFiles,
        index: FileIndex,
        objects: Iterable[ClosedObject],
        ledger: LedgerView,
        topic: str,
        access: RowAccess,
    ) -> None:
        self._io = table.io
        self._index = index
        self._objects = objects
        self._ledger = ledger
        self._access = access
        ids = EnvelopeIds(*self._ids(table, topic))
        self._reader = EnvelopeRows(ids, topic)
        self._others = list(files.others(index, ids.offset))

    def _ids(self, table: Table, topic: str) -> Sequence[int]:
        """The ids of the columns: those of the names of Avro objects, otherwise those of the ledger."""
        text = table.properties.get(PROPERTY)
        mapping = NameMapping() if text is None else NameMapping.parse(text)
        known = LedgerFieldIds(self._access.s3, self._access.root).all(topic)
        mapped = {name: column.number for name in COLUMNS if (column := mapping.find(None, name)) is not None}
        ids = {name: mapped.get(name, known.get(name)) for name in COLUMNS}
        found = [number for number in ids.values() if number is not None and number in table.schema().field_ids]
        dropped = [name for name, number in ids.items() if number not in found]
        if dropped:
            raise TableNotRegistered(
                f"table {'.'.join(table.name())} has no column {', '.join(dropped)} any more: rows of a compaction "
                "cannot be verified without topic, partition and offset"
            )
        return found

    def others(self) -> Iterable[OtherFile]:
        return self._others

    def read(self, file: OtherFile) -> Iterator[RowBatch]:
        if not file.is_parquet:
            raise TableNotRegistered(f"{file.path} is not a Parquet file: only rows of Parquet files can be verified")
        assert isinstance(self._io, SinkFileIO), "all catalogs have this one"
        return self._reader.read(*self._io.place(file.path))

    def own(self, is_needed: NeedsObject) -> Iterator[OwnRows]:
        s3 = self._access.s3
        for o in self._objects:
            path = f"s3://{s3.bucket}/{o.key}"
            if is_needed(o.partition, o.first, o.last) and self._index.is_found(path):
                is_readable = is_parquet(o) and o.settings in self._ledger.enveloped
                yield OwnRows(path, o.partition, o.first, self._reader.read(s3, o.key) if is_readable else None)


def _path_texts(names: Collection[str], position: TablePosition, ledger: LedgerView) -> PathTexts:
    partitioner = Partitioner(position.partitioning, ledger.layouts)

    def texts(o: ClosedObject) -> Mapping[str, str]:
        if position.partitioning is not TablePartitioning.PATH:
            return {}
        return {name: text for name, text in partitioner.path_texts(o).items() if name in names}

    return texts
