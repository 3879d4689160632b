"""Reads what the audit of a table compares: the live files of its present snapshot, and the ledger."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from pyiceberg.manifest import DataFileContent
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH

from sink_job.api.enums import TablePartitioning
from sink_job.api.errors import TableNotRegistered
from sink_job.ledger.state import ClosedObject
from sink_job.tables.audit import PathTexts, TableAudit, TableFile, audit_table, canonical
from sink_job.tables.catalogs import TableCatalog
from sink_job.tables.partitions.object_partitions import Partitioner
from sink_job.tables.partitions.partition_audit import PartitionReader
from sink_job.tables.plan import LedgerView, head_of, is_rolled_back
from sink_job.tables.position import TablePosition, position_in

ReadLedger = Callable[[], tuple[LedgerView, Mapping[str, Iterable[ClosedObject]]]]
"""Reads the ledger: its view and the acknowledged objects by topic."""


def verify_table(
    catalog: TableCatalog,
    name: str,
    topic: str,
    read: ReadLedger,
    bucket: str,
    prefixes: Sequence[str],
    branch: str = MAIN_BRANCH,
) -> TableAudit:
    """The audit of a branch of the table of a topic; `prefixes` are those of all keys of the sink. Only metadata is
    read. The ledger is read after the table, so it has every object of the table.

    Raises TableNotRegistered if the table does not exist, has no position of this ledger, or has files with deletes.
    """
    table = catalog.load(name)
    if table is None:
        raise TableNotRegistered(f"table {name} does not exist")
    partitions = PartitionReader(table.metadata)
    files = list(_files(table, branch, partitions))
    ledger, by_topic = read()
    objects = by_topic.get(topic, ())
    position = position_in(table.properties, ledger.sink_id)
    if position is None or position.ledger != ledger.identity:
        raise TableNotRegistered(f"table {name} has no position of this sink's ledger: it cannot be verified")
    return audit_table(
        files,
        {f"s3://{bucket}/{o.key}": o for o in objects},
        position,
        ledger.copied_from,
        [f"s3://{bucket}/{prefix}" for prefix in prefixes],
        is_rolled_back=is_rolled_back(table.metadata, position, branch),
        texts=_path_texts(partitions.names, position, ledger),
    )


def _path_texts(names: Collection[str], position: TablePosition, ledger: LedgerView) -> PathTexts:
    partitioner = Partitioner(position.partitioning, ledger.layouts)

    def texts(o: ClosedObject) -> Mapping[str, str]:
        if position.partitioning is not TablePartitioning.PATH:
            return {}
        return {name: text for name, text in partitioner.path_texts(o).items() if name in names}

    return texts


def _files(table: Table, branch: str, partitions: PartitionReader) -> Iterator[TableFile]:
    head = head_of(table.metadata, branch)
    snapshot = None if head is None else table.snapshot_by_id(head)
    for manifest in () if snapshot is None else snapshot.manifests(table.io):
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            file = entry.data_file
            if file.content is not DataFileContent.DATA:
                raise TableNotRegistered(
                    f"table {'.'.join(table.name())} has files with deletes, such as {file.file_path}: its records "
                    "cannot be verified by metadata"
                )
            found = partitions.read(file)
            texts = tuple(found.texts.items())
            path = canonical(file.file_path)
            yield TableFile(path, file.record_count, file.file_size_in_bytes, texts, found.problem)
