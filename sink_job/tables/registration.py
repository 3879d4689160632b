"""Adds the published objects of a topic to a table: load once, decide, commit once, remember; then again.

A commit that was rejected, or whose outcome is unknown, is thrown away with all that it was made from. The next attempt
loads the table and decides by its position. The commit requires the head that was loaded, so at most one of any number
of attempts, also of other processes and of delayed requests, adds the objects after a position. Manifests of attempts
without effect stay in the folder of the table: an unknown one may still be applied.
"""

from __future__ import annotations

import gc
import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from typing import Final

import msgspec
from pyiceberg.schema import Schema
from pyiceberg.table import StagedTable, Table
from pyiceberg.table.refs import MAIN_BRANCH

from sink_job.api.enums import TablePartitioning
from sink_job.api.errors import TransientError
from sink_job.engine.container_memory import release_free_memory
from sink_job.ledger.generations import generation_of
from sink_job.ledger.schemas.field_ids import LedgerFieldIds, SeedTable
from sink_job.ledger.state import ClosedObject
from sink_job.s3 import S3Client
from sink_job.tables import plan
from sink_job.tables.append import added_by
from sink_job.tables.avro_objects.header_reader import is_avro
from sink_job.tables.avro_objects.metadata_reader import MetadataReader
from sink_job.tables.avro_objects.row_columns import RowColumns, has_names_alone
from sink_job.tables.catalogs import CommitRejected, CommitUnknown, TableCatalog
from sink_job.tables.commit import TableChange, commit, with_schema
from sink_job.tables.files import DataFiles, ObjectFooter
from sink_job.tables.housekeeping import Housekeeping
from sink_job.tables.ledger_reader import ObjectLog
from sink_job.tables.memory import Memory, StoredMemory
from sink_job.tables.missing.footers import BatchFooters, read_batch
from sink_job.tables.missing.returned import skipped_objects
from sink_job.tables.missing.skipped import NONE_SKIPPED, SkippedObjects
from sink_job.tables.partitions.object_partitions import ObjectPartition, Partitioner
from sink_job.tables.partitions.partition_specs import SpecChange, spec_change
from sink_job.tables.plan import Acceptance, Batch, LedgerView, Request
from sink_job.tables.position import TablePosition, position_in

ATTEMPTS: Final = 6
"""Number of commits without an effect in a row after which a registration ends."""
LARGE: Final = 1_000
"""Number of objects of a commit after which its memory is released. A collection visits all objects of the process and
keeps its other threads from running, so it is left out after smaller ones."""
LARGE_STATISTICS: Final = 20_000
"""The same for the number of statistics of columns."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RegistrationOutcome:
    """What a registration has done, or with `dry_run` would do first. `position` is that of the table afterwards; None
    if there is no table. `columns` are the columns that the table gets or has got. `without_partition`: by the name in
    their paths, the number of objects whose partition has no such field. `partitions`: the number of directories of the
    objects for a table of Hive's kind: `commits` are requests then. `skipped`: the number of objects that did not exist
    and were left out."""

    table: str
    topic: str
    objects: int = 0
    records: int = 0
    bytes: int = 0
    commits: int = 0
    created: bool = False
    position: TablePosition | None = None
    columns: tuple[str, ...] = ()
    without_partition: Mapping[str, int] = field(default_factory=dict)
    partitions: int = 0
    skipped: int = 0

    @property
    def lacking(self) -> int:
        """The number of all objects that were left out, as far as it is known."""
        position = self.position
        return self.skipped if position is None or position.skipped is None else position.skipped.objects


@dataclass(frozen=True)
class TopicTable:
    """A table and what is to be in it. `prefixes` are those of all keys of the sink; `wait` is called with the seconds
    before the next attempt. `branch` is the one to which objects are added. `clock` is in ms. `skips_missing`: objects
    that do not exist are left out; without it they stop the registration."""

    name: str
    topic: str
    objects: Sequence[ClosedObject] | ObjectLog
    ledger: LedgerView
    prefixes: Sequence[str]
    wait: Callable[[float], None] = field(compare=False)
    partitioning: TablePartitioning = TablePartitioning.NONE
    branch: str = MAIN_BRANCH
    housekeeping: Housekeeping = field(default_factory=Housekeeping)
    clock: Callable[[], int] = field(default=lambda: int(time.time() * 1000), compare=False)
    skips_missing: bool = False

    def after(self, record: int) -> Iterable[ClosedObject]:
        """The objects that later records than `record` have acknowledged, in the order of these records."""
        if isinstance(self.objects, Sequence):
            return (o for o in self.objects if o.acknowledged > record)
        return self.objects.after(record)


@dataclass(frozen=True)
class _Found:
    """The objects of the next commit: their footers, the record of the position after it, and the number of objects
    that it skips. `skipped` are all that the table lacks then."""

    footers: Sequence[ObjectFooter]
    record: int
    skipped: SkippedObjects
    missing: int = 0

    @property
    def objects(self) -> Sequence[ClosedObject]:
        return [each.object for each in self.footers]


@dataclass(frozen=True)
class _Prepared:
    """The next commit: its objects, their footers, columns of rows and partitions, and the columns that the table has
    after it."""

    found: _Found
    footers: Sequence[ObjectFooter]
    rows: RowColumns
    schema: Schema
    added: tuple[str, ...]
    partitions: Sequence[ObjectPartition]
    specs: SpecChange


class Registration:
    """Registers one table."""

    def __init__(self, s3: S3Client, root: str, catalog: TableCatalog, target: TopicTable) -> None:
        """`root` is the ledger's prefix and ends with `/`."""
        self._s3 = s3
        self._root = root
        self._catalog = catalog
        self._target = target
        self._memory = StoredMemory(s3, root, target.name)
        self._partitioner = Partitioner(target.partitioning, target.ledger.layouts)
        self._rechecks = False  # whether skipped objects may exist again
        self._checked = (0, "")  # record and key of the last one that was looked at

    def run(self, request: Request, *, dry_run: bool = False, limit: int = plan.MAX_OBJECTS) -> RegistrationOutcome:
        """Adds all objects that are not in the table yet, at most `limit` in a commit. With `dry_run` it prepares the
        first commit, and writes nothing.

        Raises TableNotRegistered or a subclass, TransientError if the outcome of the last commit is not known, and the
        errors of the store.
        """
        outcome = RegistrationOutcome(self._target.name, self._target.topic)
        self._rechecks, self._checked = request.from_beginning, (0, "")
        failed = 0
        while True:
            memory = self._memory.read()  # before the table, which is then never behind it
            table = self._catalog.load(self._target.name)
            found = self._next(table, memory, request, limit)
            if found is None or (table is None and not found.footers):
                outcome = outcome if found is None else replace(outcome, skipped=found.missing)
                return self._done(outcome, table, memory, request, dry_run=dry_run)
            prepared = self._prepare(table, memory, found)
            if dry_run:
                return self._added(outcome, prepared, created=table is None)
            loaded = table if table is not None else self._staged(prepared)
            self._check_location(loaded)
            try:
                position = commit(self._catalog, loaded, self._change(prepared, loaded))
            except (CommitRejected, CommitUnknown) as error:
                failed += 1
                self._failed(error, failed)
                continue
            failed = 0
            self._memory.write(_memory(loaded, position, None, self._target.branch))
            request = replace(request, accepted=frozenset())  # what was accepted is in the table now
            outcome = replace(self._added(outcome, prepared, created=table is None), position=position)
            is_large = _is_large(prepared)
            del prepared, found, loaded, table  # the next ones are made beside them
            if is_large:
                gc.collect()
                release_free_memory()
            if position.record >= self._target.ledger.number and not self._rechecks:
                return outcome

    def _next(self, table: Table | None, memory: Memory | None, request: Request, limit: int) -> _Found | None:
        """The objects of the next commit; None without any. Only the first object that exists creates a table: without
        one there are no columns."""
        target, metadata = self._target, None if table is None else table.metadata
        if request.creates and table is not None and memory is None:
            request = replace(request, seeds=self._seeds())
        added = partial(_added_by, table, target.branch)
        after = plan.start_after(metadata, memory, target.ledger, request, target.branch, added)
        skipped = self._skipped(table, memory)
        is_known = after <= target.ledger.number  # another registration may have read more of the ledger
        if self._rechecks and is_known and table is not None and skipped.total.objects:
            returned = self._returned(table, after, skipped, limit)
            if returned is not None:
                return returned
        self._rechecks = False
        found: _Found | None = None
        while (batch := plan.next_batch(target.after(after), after, target.ledger.number, limit)) is not None:
            read = self._read(table, batch, may_lack=target.skips_missing)
            skipped = skipped.with_objects(read.missing)
            before = 0 if found is None else found.missing
            found = _Found(read.footers, read.record, skipped, before + len(read.missing))
            if table is not None or read.footers:
                return found
            after = read.record
        return found

    def _seeds(self) -> tuple[SeedTable, ...]:
        """The tables that have given their field ids before the first object of the topic. Avro objects have none, so
        they may be older."""
        first = next(iter(self._target.after(0)), None)
        if first is not None and is_avro(first):
            return ()
        return tuple(LedgerFieldIds(self._s3, self._root).seeded_by(self._target.topic))

    def _skipped(self, table: Table | None, memory: Memory | None) -> SkippedObjects:
        """The objects that were skipped up to the position of the table."""
        if table is None:
            return NONE_SKIPPED
        sink_id = self._target.ledger.sink_id
        position = plan.continued_from(table.metadata, memory, sink_id, self._target.branch)
        return NONE_SKIPPED if position is None else SkippedObjects.of(position.skipped, table.properties, sink_id)

    def _returned(self, table: Table, record: int, skipped: SkippedObjects, limit: int) -> _Found | None:
        """The next of the skipped objects that exist again; None without any."""
        target = self._target
        up_to = takewhile(lambda o: o.acknowledged <= record, target.after(target.ledger.copied_from))
        lacking = skipped_objects(table, target.branch, up_to, skipped, self._s3.bucket)
        left = [o for o in sorted(lacking, key=_order) if _order(o) > self._checked]
        while left:
            read = self._read(table, Batch(left[:limit], record), may_lack=True)
            count = len(read.footers) + len(read.missing)
            self._checked = _order(left[count - 1])
            left = left[count:]
            if read.footers:
                found = [each.object for each in read.footers]
                return _Found(read.footers, record, skipped.without_objects(found))
        return None

    def _read(self, table: Table | None, batch: Batch, *, may_lack: bool) -> BatchFooters:
        """Reads the footers of objects that the table can have. `may_lack`: objects may not exist."""
        if table is not None:
            sink_id, branch = self._target.ledger.sink_id, self._target.branch
            position = position_in(table.properties, sink_id) or plan.last_committed(table.metadata, sink_id, branch)
            plan.check_layout(table.metadata, self._target.partitioning, position)
            plan.check_branch(table.metadata, branch)
            self._check_location(table)
        properties = self._target.housekeeping.new_table() if table is None else table.properties
        reader = MetadataReader(self._s3, properties, self._partitioner.columns)
        read = read_batch(reader.find if may_lack else reader.read, batch)
        if read.missing:
            _log_missing(self._target.name, self._s3.bucket, read.missing)
        return read

    def _prepare(self, table: Table | None, memory: Memory | None, objects: _Found) -> _Prepared:
        """Checks that the table can have the objects."""
        footers, is_own = objects.footers, False
        if table is not None:
            sink_id, branch = self._target.ledger.sink_id, self._target.branch
            is_own = plan.continued_from(table.metadata, memory, sink_id, branch) is not None
        metadata = None if table is None else table.metadata
        dropped = () if metadata is None else plan.dropped_columns(metadata)
        ids = LedgerFieldIds(self._s3, self._root).all(self._target.topic) if has_names_alone(footers) else None
        rows = RowColumns(metadata, dropped, ids, is_own=is_own)
        known = rows.schema.field_ids
        for footer in footers:
            rows.add(footer)
        footers = [*rows.resolved(footers)]
        found, paths = self._partitioner.with_path_columns(metadata, rows.schema, footers)
        partitions = [self._partitioner.partition(each, found, paths) for each in footers]
        _log_without(self._target.name, footers, partitions)
        added = tuple(each.name for each in found.fields if each.field_id not in known)
        specs = spec_change(metadata, found, partitions)
        return _Prepared(objects, footers, rows, found, added, partitions, specs)

    def _check_location(self, table: Table) -> None:
        """The table is neither among the objects nor in the folder of the ledger, which may be in another bucket."""
        bucket, _, folder = self._s3.url_of(self._root).removeprefix("s3://").partition("/")
        for location in plan.locations_of(table.metadata):
            plan.check_location(location, self._s3.bucket, self._target.prefixes)
            plan.check_location(location, bucket, [folder])

    def _staged(self, prepared: _Prepared) -> StagedTable:
        """The new table. The first of its specs is its default."""
        staged = self._catalog.stage(self._target.name, self._target.housekeeping.new_table())
        return with_schema(staged, prepared.schema, prepared.specs.added[0])

    def _change(self, prepared: _Prepared, table: Table) -> TableChange:
        ledger, files, keeps = self._target.ledger, DataFiles(prepared.schema), self._target.housekeeping
        found, skipped = prepared.found, prepared.found.skipped
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
                **prepared.rows.properties,
                **skipped.changed(table.properties, ledger.sink_id),
            },
            same_columns=prepared.rows.by_name or bool(prepared.rows.properties),
            skipped=skipped.total,
            claim=ledger.claim_of(found.record),
        )

    def _failed(self, error: CommitRejected | CommitUnknown, failed: int) -> None:
        name, self._checked = self._target.name, (0, "")
        if failed >= ATTEMPTS:
            raise TransientError(
                f"table {name}: {failed} commits in a row had no known effect. The last one: {error}. Register again: "
                "the position in the table says what is in it"
            ) from error
        _log.warning("table %s: a commit is tried again from the present table: %s", name, error)
        self._target.wait(min(2.0 ** (failed - 1), 10.0))

    def _done(
        self,
        outcome: RegistrationOutcome,
        table: Table | None,
        memory: Memory | None,
        request: Request,
        *,
        dry_run: bool,
    ) -> RegistrationOutcome:
        """Remembers what the user has accepted, and a commit whose process ended before it could."""
        position = None if table is None else position_in(table.properties, self._target.ledger.sink_id)
        if table is None or position is None:
            return outcome
        branch = self._target.branch
        found = _memory(table, position, memory, branch)
        if Acceptance.ROLLED_BACK in request.accepted:
            head = table.snapshot_by_name(branch)
            at = (0, 0) if head is None else (head.snapshot_id, head.sequence_number or 0)
            found = msgspec.structs.replace(
                found, accepted=position.snapshot, accepted_head=at[0], accepted_sequence=at[1]
            )
        if found != memory and not dry_run:
            self._memory.write(found)
        return replace(outcome, position=position)

    def _added(self, outcome: RegistrationOutcome, prepared: _Prepared, *, created: bool) -> RegistrationOutcome:
        objects = prepared.found.objects
        return replace(
            outcome,
            objects=outcome.objects + len(objects),
            records=outcome.records + sum(o.offsets.count for o in objects),
            bytes=outcome.bytes + sum(o.bytes for o in objects),
            commits=outcome.commits + 1,
            created=outcome.created or created,
            columns=(*outcome.columns, *prepared.added),
            without_partition=Counter(outcome.without_partition) + _without(prepared.partitions),
            skipped=outcome.skipped + prepared.found.missing,
        )


def _order(o: ClosedObject) -> tuple[int, str]:
    return o.acknowledged, o.key


def _is_large(prepared: _Prepared) -> bool:
    footers = prepared.found.footers
    return len(footers) >= LARGE or sum(len(each.columns.leaves) for each in footers) >= LARGE_STATISTICS


def _log_missing(table: str, bucket: str, missing: Sequence[ClosedObject]) -> None:
    text = (
        "table %s: %d objects do not exist and are not in the table (spec.tables[].onMissing: Skip), such as s3://%s/%s"
    )
    _log.warning(text, table, len(missing), bucket, missing[0].key)


def _log_without(table: str, footers: Sequence[ObjectFooter], partitions: Sequence[ObjectPartition]) -> None:
    """Logs the reason of the first object without a partition field, for each name."""
    counts, logged = _without(partitions), set[str]()
    for footer, partition in zip(footers, partitions, strict=True):
        for name, reason in (partition.without or {}).items():
            if name not in logged:
                where, count = footer.fields["file_path"], counts[name]
                _log.info("table %s: %d objects have no partition field %s; %s: %s", table, count, name, where, reason)
                logged.add(name)


def _without(partitions: Iterable[ObjectPartition]) -> Counter[str]:
    return Counter(name for each in partitions for name in each.without or ())


def _added_by(table: Table | None, branch: str) -> Collection[int]:
    return () if table is None else added_by(table, branch)


def _memory(table: Table, position: TablePosition, before: Memory | None, branch: str) -> Memory:
    """The memory of a position. `before` has what was accepted, if it is of the same branch."""
    is_same = before is not None and before.branch == branch
    accepted = (before.accepted, before.accepted_head, before.accepted_sequence) if before and is_same else (0, 0, 0)
    return Memory(
        uuid=str(table.metadata.table_uuid),
        ledger=position.ledger,
        generation=position.generation,
        record=position.record,
        snapshot=position.snapshot,
        accepted=accepted[0],
        accepted_head=accepted[1],
        accepted_sequence=accepted[2],
        branch=branch,
        skipped=position.skipped,
        claim=position.claim,
        sequence=position.sequence,
    )


def _ends(objects: Sequence[ClosedObject]) -> Mapping[str, int]:
    """By partition, the offset after the last one of the objects."""
    ends: dict[str, int] = {}
    for o in objects:
        ends[str(o.partition)] = max(ends.get(str(o.partition), 0), o.last + 1)
    return ends
