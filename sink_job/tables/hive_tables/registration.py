"""Adds the directories of the published objects of a topic to a table as partitions: load, add, remember.

The position is in the ledger's folder alone. It is written after all partitions were added, and adding is idempotent,
so a process that ends before it, or two at once, repeat what is there already.
"""

from __future__ import annotations

from typing import Final

from sink_job.api.errors import TableNotRegistered
from sink_job.ledger.generations import generation_of
from sink_job.s3 import S3Client
from sink_job.tables.hive_tables.directories import partitions_of
from sink_job.tables.hive_tables.store import PartitionedTable, PartitionStore
from sink_job.tables.memory import Memory, StoredMemory
from sink_job.tables.plan import Request, beyond
from sink_job.tables.position import TablePosition
from sink_job.tables.registrations.topic_table import RegistrationOutcome, TopicTable

BATCH: Final = 100
"""Maximum number of partitions in a request: that of BatchCreatePartition."""
_NO_SNAPSHOT: Final = 0


class PartitionRegistration:
    """Registers one table."""

    def __init__(self, s3: S3Client, root: str, store: PartitionStore, target: TopicTable) -> None:
        """`root` is the ledger's prefix and ends with `/`."""
        self._s3 = s3
        self._store = store
        self._target = target
        self._memory = StoredMemory(s3, root, target.name)

    def run(self, request: Request, *, dry_run: bool = False) -> RegistrationOutcome:
        """Adds the directories of all objects that were acknowledged after the position; with `from_beginning`, or
        after the table was created again, of all objects.

        Raises TableNotRegistered or a subclass, ConfigurationError, TransientError and the errors of the store.
        """
        target = self._target
        memory, table = self._memory.read(), self._store.table(target.name)
        if table is None:
            raise TableNotRegistered(
                f"table {target.name} does not exist: create it with the output of {self._store.command}"
            )
        after = self._after(table, memory, request)
        objects = list(target.after(after))
        partitions = partitions_of(table, objects, self._s3.bucket)
        batches = [partitions[at : at + BATCH] for at in range(0, len(partitions), BATCH)]
        outcome = RegistrationOutcome(
            target.name,
            target.topic,
            objects=len(objects),
            records=sum(o.offsets.count for o in objects),
            bytes=sum(o.bytes for o in objects),
            commits=len(batches),
            partitions=len(partitions),
            position=self._position(after),
        )
        if dry_run or not objects:
            return outcome
        for batch in batches:
            self._store.add(table, batch)
        return self._remembered(outcome, table)

    def _after(self, table: PartitionedTable, memory: Memory | None, request: Request) -> int:
        ledger = self._target.ledger
        is_known = memory is not None and (memory.uuid, memory.ledger) == (table.identity, ledger.identity)
        if memory is None or not is_known or request.from_beginning:
            return ledger.copied_from
        if memory.record > ledger.number:
            raise beyond(memory.record, ledger)
        if ledger.is_restored(memory.record, memory.claim):
            return ledger.copied_from
        return max(memory.record, ledger.copied_from)

    def _position(self, record: int) -> TablePosition:
        ledger = self._target.ledger
        return TablePosition(ledger.identity, generation_of(record, ledger.resets), record, _NO_SNAPSHOT)

    def _remembered(self, outcome: RegistrationOutcome, table: PartitionedTable) -> RegistrationOutcome:
        position = self._position(self._target.ledger.number)
        self._memory.write(
            Memory(
                table.identity,
                position.ledger,
                position.generation,
                position.record,
                position.snapshot,
                claim=self._target.ledger.claim_of(position.record),
            )
        )
        return RegistrationOutcome(**{**vars(outcome), "position": position})
