"""Registers the tables of a topic: the first one, and those that continue it.

A table that was left is not loaded again once its memory has the continuation: it may be dropped.
"""

from __future__ import annotations

from dataclasses import replace

from sink_job.api.errors import TableNotRegistered
from sink_job.s3 import S3Client
from sink_job.tables import plan
from sink_job.tables.catalogs import TableCatalog
from sink_job.tables.memory import Memory, StoredMemory
from sink_job.tables.plan import Request
from sink_job.tables.registration import Registration
from sink_job.tables.registrations.topic_table import RegistrationOutcome, TopicTable
from sink_job.tables.successors.continuation import Continuation, Predecessor, successor_name


class ChainRegistration:
    """Registers one table and its successors."""

    def __init__(self, s3: S3Client, root: str, catalog: TableCatalog, target: TopicTable) -> None:
        """`root` is the ledger's prefix and ends with `/`. `target` is the first table."""
        self._s3 = s3
        self._root = root
        self._catalog = catalog
        self._target = target

    def run(self, request: Request, *, dry_run: bool = False, limit: int = plan.MAX_OBJECTS) -> RegistrationOutcome:
        """Adds all objects that are in no table yet. What a user accepts is about the last table. Raises as
        `Registration.run`."""
        outcome = RegistrationOutcome(self._target.name, self._target.topic)
        places = replace(self._target.successors, base=self._target.name)
        while True:
            name = successor_name(places.base, places.number)
            target = replace(self._target, name=name, successors=places)
            memory = StoredMemory(self._s3, self._root, name).read()
            if memory is not None and memory.continued is not None:
                left, uuid = memory.continued, memory.uuid
            else:
                found = self._registered(target, request, dry_run=dry_run, limit=limit)
                outcome = _together(outcome, found)
                if found.continued is None or found.uuid is None:
                    return outcome
                left, uuid = found.continued, found.uuid
                if found.commits:  # what was accepted is in the table now
                    request = replace(request, accepted=frozenset())
            self._check_ledger(left)
            places = replace(places, number=places.number + 1, start=left, predecessor=Predecessor(name, uuid))

    def _registered(self, target: TopicTable, request: Request, *, dry_run: bool, limit: int) -> RegistrationOutcome:
        """Registers one table. An error names a successor: its caller only knows the first one."""
        try:
            return Registration(self._s3, self._root, self._catalog, target).run(request, dry_run=dry_run, limit=limit)
        except TableNotRegistered as error:
            memory = StoredMemory(self._s3, self._root, target.name).read()
            if memory is not None and memory.continued is not None:  # it was left, and dropped, in the meantime
                return RegistrationOutcome(target.name, target.topic, continued=memory.continued, uuid=memory.uuid)
            if target.name == self._target.name:
                raise
            raise type(error)(f"{target.name}: {error}").with_traceback(error.__traceback__) from error

    def _check_ledger(self, left: Continuation) -> None:
        if left.ledger != self._target.ledger.identity:
            raise plan.other_ledger(left.ledger, self._target.ledger)
        if self._target.ledger.is_restored(left.record + bool(left.done), left.claim):
            raise TableNotRegistered(
                f"{left.table} begins after record {left.record:,} of the ledger, which is another one now: the ledger "
                "was restored to an older state, and has grown since. Tables have objects that it does not know, and "
                "lack others. Use another name in spec.tables"
            )


def last_memory(s3: S3Client, root: str, table: str) -> tuple[str, Memory | None]:
    """The name of the last table of a topic, as far as memories name it, and the memory of the last registration that
    has left one. `table` is the first one. Raises the errors of `StoredMemory.read`."""
    name, found = table, StoredMemory(s3, root, table).read()
    while found is not None and found.continued is not None:
        name = found.continued.table
        following = StoredMemory(s3, root, name).read()
        if following is None:
            break
        found = following
    return name, found


def _together(before: RegistrationOutcome, after: RegistrationOutcome) -> RegistrationOutcome:
    """The outcome of the last table, with what was added to those before."""
    return replace(
        after,
        objects=before.objects + after.objects,
        records=before.records + after.records,
        bytes=before.bytes + after.bytes,
        commits=before.commits + after.commits,
        created=before.created or after.created,
        columns=(*before.columns, *after.columns),
        without_partition={**before.without_partition, **after.without_partition},
    )
