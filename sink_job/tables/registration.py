"""Adds the published objects of a topic to a table: load once, decide, commit once, remember; then again.

A commit that was rejected, or whose outcome is unknown, is thrown away with all that it was made from. The next attempt
loads the table and decides by its position. The commit requires the head that was loaded, so at most one of any number
of attempts, also of other processes and of delayed requests, adds the objects after a position. Manifests of attempts
without effect stay in the folder of the table: an unknown one may still be applied.
"""

from __future__ import annotations

import gc
import logging
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import Final

import msgspec
from pyiceberg.table import Table

from sink_job.api.errors import TransientError
from sink_job.engine.container_memory import release_free_memory
from sink_job.ledger.generations import generation_of
from sink_job.ledger.schemas.field_ids import LedgerFieldIds, SeedTable
from sink_job.ledger.state import ClosedObject
from sink_job.s3 import S3Client
from sink_job.tables import plan
from sink_job.tables.append import added_by
from sink_job.tables.avro_objects.header_reader import is_avro
from sink_job.tables.catalogs import CommitRejected, CommitUnknown, TableCatalog
from sink_job.tables.commit import commit
from sink_job.tables.memory import Memory, StoredMemory
from sink_job.tables.missing.returned import skipped_objects
from sink_job.tables.missing.skipped import SkippedObjects
from sink_job.tables.plan import Acceptance, Batch, LedgerView, Request
from sink_job.tables.position import TablePosition, position_in
from sink_job.tables.registrations.preparation import FoundObjects, Preparation, PreparedCommit, counts_without
from sink_job.tables.registrations.topic_table import RegistrationOutcome, TopicTable
from sink_job.tables.successors.continuation import Continuation
from sink_job.tables.successors.generations import known_record, part_for
from sink_job.tables.successors.leaving import left_after, left_in
from sink_job.tables.successors.ownership import check_owned

ATTEMPTS: Final = 6
"""Number of commits without an effect in a row after which a registration ends."""
LARGE: Final = 1_000
"""Number of objects of a commit after which its memory is released. A collection visits all objects of the process and
keeps its other threads from running, so it is left out after smaller ones."""
LARGE_STATISTICS: Final = 20_000
"""The same for the number of statistics of columns."""

_log = logging.getLogger(__name__)


class Registration:
    """Registers one table."""

    def __init__(self, s3: S3Client, root: str, catalog: TableCatalog, target: TopicTable) -> None:
        """`root` is the ledger's prefix and ends with `/`."""
        self._s3 = s3
        self._root = root
        self._catalog = catalog
        self._target = target
        self._memory = StoredMemory(s3, root, target.name)
        self._preparation = Preparation(s3, root, catalog, target)
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
            left = left_in(table, memory, self._target.ledger.sink_id)
            if left is not None:
                assert table is not None, "only a table is left"
                return self._followed(outcome, table, left, dry_run=dry_run)
            step = self._next(table, memory, request, limit)
            if step is None or (table is None and isinstance(step, FoundObjects) and not step.footers):
                outcome = outcome if step is None else replace(outcome, skipped=step.missing)
                return self._done(outcome, table, memory, request, dry_run=dry_run)
            prepared = self._prepared(table, memory, step)
            if dry_run:
                return self._added(outcome, prepared, created=table is None)
            loaded = table if table is not None else self._preparation.staged(prepared)
            self._preparation.check_location(loaded)
            try:
                position = commit(self._catalog, loaded, self._preparation.change(prepared, loaded))
            except (CommitRejected, CommitUnknown) as error:
                failed += 1
                self._failed(error, failed)
                continue
            failed = 0
            self._memory.write(_memory(loaded, position, None, self._target.branch, prepared.continued))
            request = replace(request, accepted=frozenset())  # what was accepted is in the table now
            outcome = replace(self._added(outcome, prepared, created=table is None), position=position)
            if outcome.continued is not None:
                return replace(outcome, uuid=str(loaded.metadata.table_uuid))
            is_large = _is_large(prepared)
            del prepared, step, loaded, table  # the next ones are made beside them
            if is_large:
                gc.collect()
                release_free_memory()
            if position.record >= self._target.ledger.number and not self._rechecks:
                return outcome

    def _followed(
        self, outcome: RegistrationOutcome, table: Table, left: Continuation, *, dry_run: bool
    ) -> RegistrationOutcome:
        """Remembers that the table was left."""
        ledger = self._target.ledger
        position = position_in(table.properties, ledger.sink_id) or TablePosition(
            left.ledger, generation_of(left.record, ledger.resets), left.record, 0
        )
        if not dry_run:
            self._memory.write(_memory(table, position, None, self._target.branch, left))
        return replace(outcome, position=position, continued=left, uuid=str(table.metadata.table_uuid))

    def _next(
        self, table: Table | None, memory: Memory | None, request: Request, limit: int
    ) -> FoundObjects | Continuation | None:
        """The objects of the next commit, or where they are if the table is to be left without any; None if nothing is
        new. Only the first object that exists creates a table: without one there are no columns."""
        target, metadata = self._target, None if table is None else table.metadata
        whole, begin = target.ledger, target.beginning
        if target.successors.start is not None:
            request = replace(request, creates=True)
        elif request.creates and table is not None and memory is None:
            request = replace(request, seeds=self._seeds())
        if table is not None and (memory is None or memory.uuid == str(table.metadata.table_uuid) or request.accepted):
            check_owned(table, target.successors, whole.sink_id)
        added = partial(_added_by, table, target.branch)
        while True:
            record = known_record(metadata, memory, whole.sink_id, target.branch)
            ledger = part_for(whole, record, begin, continues=target.successors.continues_after_reset)
            after = plan.start_after(metadata, memory, ledger, request, target.branch, added)
            found = self._found(table, memory, ledger, after, limit)
            if (found is not None and (table is not None or found.footers)) or ledger.number == whole.number:
                return found
            if record is not None:
                is_new = next(iter(target.after(ledger.number)), None) is not None
                return left_after(ledger.number, target.successors, whole) if is_new else None
            begin = ledger.number + 1

    def _found(
        self, table: Table | None, memory: Memory | None, ledger: LedgerView, after: int, limit: int
    ) -> FoundObjects | None:
        """The next objects of a part of the ledger after a record; None if there are none."""
        target, skipped = self._target, self._preparation.skipped(table, memory)
        is_known = after <= ledger.number  # another registration may have read more of the ledger
        if self._rechecks and is_known and table is not None and skipped.total.objects:
            returned = self._returned(table, ledger, after, skipped, limit)
            if returned is not None:
                return returned
        self._rechecks = False
        found: FoundObjects | None = None
        while (batch := plan.next_batch(target.after(after), after, ledger.number, limit)) is not None:
            read = self._preparation.read(table, batch, may_lack=target.skips_missing)
            skipped = skipped.with_objects(read.missing)
            before = 0 if found is None else found.missing
            found = FoundObjects(read.footers, read.record, skipped, before + len(read.missing))
            if table is not None or read.footers:
                return found
            after = read.record
        return found

    def _prepared(
        self, table: Table | None, memory: Memory | None, step: FoundObjects | Continuation
    ) -> PreparedCommit:
        if isinstance(step, FoundObjects):
            return self._preparation.prepared(table, memory, step)
        return self._preparation.leaving(table, memory, step)

    def _seeds(self) -> tuple[SeedTable, ...]:
        """The tables that have given their field ids before the first object of the topic. Avro objects have none, so
        they may be older."""
        first = next(iter(self._target.after(0)), None)
        if first is not None and is_avro(first):
            return ()
        return tuple(LedgerFieldIds(self._s3, self._root).seeded_by(self._target.topic))

    def _returned(
        self, table: Table, ledger: LedgerView, record: int, skipped: SkippedObjects, limit: int
    ) -> FoundObjects | None:
        """The next of the skipped objects that exist again; None without any. `ledger`: the part with those of the
        table."""
        target, start = self._target, self._target.successors.start
        begin = ledger.copied_from if start is None else max(ledger.copied_from, start.record)
        up_to = takewhile(lambda o: o.acknowledged <= record, target.after(begin))
        lacking = skipped_objects(table, target.branch, up_to, skipped, self._s3.bucket)
        left = [o for o in sorted(lacking, key=_order) if _order(o) > self._checked]
        while left:
            read = self._preparation.read(table, Batch(left[:limit], record), may_lack=True)
            count = len(read.footers) + len(read.missing)
            self._checked = _order(left[count - 1])
            left = left[count:]
            if read.footers:
                found = [each.object for each in read.footers]
                return FoundObjects(read.footers, record, skipped.without_objects(found), are_returned=True)
        return None

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

    def _added(self, outcome: RegistrationOutcome, prepared: PreparedCommit, *, created: bool) -> RegistrationOutcome:
        objects = prepared.found.objects
        return replace(
            outcome,
            objects=outcome.objects + len(objects),
            records=outcome.records + sum(o.offsets.count for o in objects),
            bytes=outcome.bytes + sum(o.bytes for o in objects),
            commits=outcome.commits + 1,
            created=outcome.created or created,
            columns=(*outcome.columns, *prepared.added),
            without_partition=Counter(outcome.without_partition) + counts_without(prepared.partitions),
            skipped=outcome.skipped + prepared.found.missing,
            continued=prepared.continued,
        )


def _order(o: ClosedObject) -> tuple[int, str]:
    return o.acknowledged, o.key


def _is_large(prepared: PreparedCommit) -> bool:
    footers = prepared.found.footers
    return len(footers) >= LARGE or sum(len(each.columns.leaves) for each in footers) >= LARGE_STATISTICS


def _added_by(table: Table | None, branch: str) -> Collection[int]:
    return () if table is None else added_by(table, branch)


def _memory(
    table: Table,
    position: TablePosition,
    before: Memory | None,
    branch: str,
    continued: Continuation | None = None,
) -> Memory:
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
        continued=continued,
    )
