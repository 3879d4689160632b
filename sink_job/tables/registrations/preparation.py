"""Prepares one commit of a registration: reads the footers of its objects, and checks that the table can have them."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyiceberg.schema import Schema
from pyiceberg.table import StagedTable, Table

from sink_job.connect.field_ids import FieldIds
from sink_job.ledger.generations import generation_of
from sink_job.ledger.schemas.field_ids import LedgerFieldIds
from sink_job.ledger.state import ClosedObject
from sink_job.s3 import S3Client
from sink_job.tables import plan
from sink_job.tables.avro_objects.metadata_reader import MetadataReader
from sink_job.tables.avro_objects.row_columns import RowColumns, has_names_alone
from sink_job.tables.catalogs import TableCatalog
from sink_job.tables.commit import TableChange, with_schema
from sink_job.tables.files import DataFiles, ObjectFooter
from sink_job.tables.memory import Memory
from sink_job.tables.missing.footers import BatchFooters, read_batch
from sink_job.tables.missing.skipped import NONE_SKIPPED, SkippedObjects
from sink_job.tables.partitions.object_partitions import ObjectPartition, Partitioner
from sink_job.tables.partitions.partition_specs import SpecChange, spec_change
from sink_job.tables.plan import Batch
from sink_job.tables.position import position_in
from sink_job.tables.registrations.topic_table import TopicTable
from sink_job.tables.successors.continuation import Continuation
from sink_job.tables.successors.fit import Fit, fit, is_new_table_better
from sink_job.tables.successors.leaving import chain_properties, left_at
from sink_job.tables.successors.ownership import check_next

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FoundObjects:
    """The objects of the next commit: their footers, the record of the position after it, and the number of objects
    that it skips. `skipped` are all that the table lacks then. `are_returned`: they were skipped before, and exist
    again."""

    footers: Sequence[ObjectFooter]
    record: int
    skipped: SkippedObjects
    missing: int = 0
    are_returned: bool = False

    @property
    def objects(self) -> Sequence[ClosedObject]:
        return [each.object for each in self.footers]


@dataclass(frozen=True)
class PreparedCommit:
    """The next commit: its objects, their footers, columns of rows and partitions, and the columns that the table has
    after it. `continued`: it is the last one. `rows`: None without objects."""

    found: FoundObjects
    footers: Sequence[ObjectFooter]
    rows: RowColumns | None
    schema: Schema
    added: tuple[str, ...]
    partitions: Sequence[ObjectPartition]
    specs: SpecChange
    continued: Continuation | None = None


class Preparation:
    """Prepares commits of one table."""

    def __init__(self, s3: S3Client, root: str, catalog: TableCatalog, target: TopicTable) -> None:
        """`root` is the ledger's prefix and ends with `/`."""
        self._s3 = s3
        self._root = root
        self._catalog = catalog
        self._target = target
        self._partitioner = Partitioner(target.partitioning, target.ledger.layouts)

    def read(self, table: Table | None, batch: Batch, *, may_lack: bool) -> BatchFooters:
        """Reads the footers of objects that the table can have. `may_lack`: objects may not exist."""
        if table is not None:
            sink_id, branch = self._target.ledger.sink_id, self._target.branch
            position = position_in(table.properties, sink_id) or plan.last_committed(table.metadata, sink_id, branch)
            plan.check_layout(table.metadata, self._target.partitioning, position)
            plan.check_branch(table.metadata, branch)
            self.check_location(table)
        properties = self._target.housekeeping.new_table() if table is None else table.properties
        reader = MetadataReader(self._s3, properties, self._partitioner.columns)
        read = read_batch(reader.find if may_lack else reader.read, batch)
        if read.missing:
            _log_missing(self._target.name, self._s3.bucket, read.missing)
        return read

    def prepared(self, table: Table | None, memory: Memory | None, objects: FoundObjects) -> PreparedCommit:
        """Checks that the table can have the objects, or those before the first one that it cannot have."""
        footers, is_own = objects.footers, False
        if table is not None:
            sink_id, branch = self._target.ledger.sink_id, self._target.branch
            is_own = plan.continued_from(table.metadata, memory, sink_id, branch) is not None
        metadata = None if table is None else table.metadata
        dropped = () if metadata is None else plan.dropped_columns(metadata)
        ids = LedgerFieldIds(self._s3, self._root).all(self._target.topic) if has_names_alone(footers) else None
        rows = RowColumns(metadata, dropped, ids, is_own=is_own)
        known = rows.schema.field_ids
        fits, continued = fit(rows, footers), None
        if fits.error is not None:
            continued = self._continued(table, fits, objects, ids, is_own=is_own)
            if not fits.footers:
                return self.leaving(table, memory, continued)
            footers = fits.footers
            objects = replace(objects, footers=footers, record=continued.record)
        footers = [*rows.resolved(footers)]
        found, paths = self._partitioner.with_path_columns(metadata, rows.schema, footers)
        partitions = [self._partitioner.partition(each, found, paths) for each in footers]
        _log_without(self._target.name, footers, partitions)
        added = tuple(each.name for each in found.fields if each.field_id not in known)
        specs = spec_change(metadata, found, partitions)
        return PreparedCommit(objects, footers, rows, found, added, partitions, specs, continued)

    def leaving(self, table: Table | None, memory: Memory | None, continued: Continuation) -> PreparedCommit:
        """A commit without objects, with a snapshot of its own: no commit for an earlier head can be applied then."""
        assert table is not None, "a new table has objects"
        plan.check_branch(table.metadata, self._target.branch)
        check_next(self._catalog, table, self._target.successors, self._target.ledger.sink_id)
        specs = SpecChange((), table.metadata.default_spec_id, ())
        found = FoundObjects((), continued.record, self.skipped(table, memory))
        return PreparedCommit(found, (), None, table.schema(), (), (), specs, continued)

    def _continued(
        self, table: Table | None, fits: Fit, objects: FoundObjects, ids: FieldIds | None, *, is_own: bool
    ) -> Continuation:
        """Where the objects that do not fit are. Raises their error if the table may not be left."""
        assert fits.error is not None
        target = self._target
        may_leave = target.successors.on_incompatible and target.successors.may_follow and (table is None or is_own)
        if objects.are_returned or not may_leave or not is_new_table_better(table, fits, objects.footers, ids):
            raise fits.error
        if fits.footers:  # otherwise the commit without objects checks it
            check_next(self._catalog, table, target.successors, target.ledger.sink_id)
        _log.warning("table %s is continued in %s: %s", target.name, target.successors.next_table, fits.error)
        return left_at(fits, target.successors, target.ledger, target.all_after)

    def skipped(self, table: Table | None, memory: Memory | None) -> SkippedObjects:
        """The objects that were skipped up to the position of the table."""
        if table is None:
            return NONE_SKIPPED
        sink_id = self._target.ledger.sink_id
        position = plan.continued_from(table.metadata, memory, sink_id, self._target.branch)
        return NONE_SKIPPED if position is None else SkippedObjects.of(position.skipped, table.properties, sink_id)

    def check_location(self, table: Table) -> None:
        """The table is neither among the objects nor in the folder of the ledger, which may be in another bucket."""
        bucket, _, folder = self._s3.url_of(self._root).removeprefix("s3://").partition("/")
        for location in plan.locations_of(table.metadata):
            plan.check_location(location, self._s3.bucket, self._target.prefixes)
            plan.check_location(location, bucket, [folder])

    def staged(self, prepared: PreparedCommit) -> StagedTable:
        """The new table. The first of its specs is its default."""
        staged = self._catalog.stage(self._target.name, self._target.housekeeping.new_table())
        return with_schema(staged, prepared.schema, prepared.specs.added[0])

    def change(self, prepared: PreparedCommit, table: Table) -> TableChange:
        ledger, files, keeps = self._target.ledger, DataFiles(prepared.schema), self._target.housekeeping
        found, skipped, rows = prepared.found, prepared.found.skipped, prepared.rows
        mapped = {} if rows is None else rows.properties
        is_new = isinstance(table, StagedTable)
        return TableChange(
            sink_id=ledger.sink_id,
            ledger=ledger.identity,
            generation=generation_of(found.record, ledger.resets),
            record=found.record,
            schema=prepared.schema,
            files=[
                files.file(footer, spec_id, [each.value for each in partition.values])
                for footer, spec_id, partition in zip(
                    prepared.footers, prepared.specs.of, prepared.partitions, strict=True
                )
            ],
            summary={f"s3sink.{ledger.sink_id}.offsets": json.dumps(_ends(found.objects))},
            branch=self._target.branch,
            specs=prepared.specs.added,
            default_spec=prepared.specs.default,
            partitioning=self._target.partitioning,
            expired=keeps.expired(table.metadata, ledger.sink_id, self._target.clock(), self._target.branch),
            properties={
                **keeps.changed(table.properties),
                **mapped,
                **skipped.changed(table.properties, ledger.sink_id),
                **chain_properties(self._target.successors, ledger.sink_id, prepared.continued, is_new=is_new),
            },
            same_columns=rows is not None and (rows.by_name or bool(mapped)),
            skipped=skipped.total,
            claim=ledger.claim_of(found.record),
        )


def _log_missing(table: str, bucket: str, missing: Sequence[ClosedObject]) -> None:
    text = (
        "table %s: %d objects do not exist and are not in the table (spec.tables[].onMissing: Skip), such as s3://%s/%s"
    )
    _log.warning(text, table, len(missing), bucket, missing[0].key)


def _log_without(table: str, footers: Sequence[ObjectFooter], partitions: Sequence[ObjectPartition]) -> None:
    """Logs the reason of the first object without a partition field, for each name."""
    counts, logged = counts_without(partitions), set[str]()
    for footer, partition in zip(footers, partitions, strict=True):
        for name, reason in (partition.without or {}).items():
            if name not in logged:
                where, count = footer.fields["file_path"], counts[name]
                _log.info("table %s: %d objects have no partition field %s; %s: %s", table, count, name, where, reason)
                logged.add(name)


def counts_without(partitions: Iterable[ObjectPartition]) -> Counter[str]:
    return Counter(name for each in partitions for name in each.without or ())


def _ends(objects: Sequence[ClosedObject]) -> Mapping[str, int]:
    """By partition, the offset after the last one of the objects."""
    ends: dict[str, int] = {}
    for o in objects:
        ends[str(o.partition)] = max(ends.get(str(o.partition), 0), o.last + 1)
    return ends
