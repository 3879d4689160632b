"""Deliberate defects of registrations, as in `devtools.simulation.mutations`: `table_world` must find each.

A commit without the requirement of its head is none of them: Iceberg's metadata rejects its sequence number, too.
`python -m devtools.simulation.table_mutations` prints the seed that finds each defect.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Final
from unittest.mock import patch

import msgspec
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AssertRefSnapshotId, AssertTableUUID, SetPropertiesUpdate

from devtools.simulation.oracle import Violation
from devtools.simulation.table_catalog import SimulatedCatalog
from devtools.simulation.table_world import run_case
from sink_job.tables import commit as commit_module
from sink_job.tables import plan, registration
from sink_job.tables.avro_objects.table_names import TableNames
from sink_job.tables.catalogs import CommitRejected, CommitUnknown
from sink_job.tables.memory import Memory
from sink_job.tables.missing.skipped import NONE_SKIPPED, SkippedObjects
from sink_job.tables.plan import Request
from sink_job.tables.position import TablePosition, as_text, position_property
from sink_job.tables.registration import Registration

Patches = Sequence[AbstractContextManager[Any]]


def rejected_commits_rebased() -> Patches:
    """A rejected commit is repeated with the same files on the present head, as PyIceberg's transaction does."""
    original = commit_module.commit

    def commit(catalog: Any, table: Any, change: Any) -> Any:
        try:
            return original(catalog, table, change)
        except (CommitRejected, CommitUnknown):
            found = catalog.load("lake.log")
            return original(catalog, table if found is None else found, change)

    return [patch.object(registration, "commit", commit)]


def head_of_a_second_load() -> Patches:
    """The table is loaded again between the decision and the commit."""
    original = commit_module.commit

    def commit(catalog: Any, table: Any, change: Any) -> Any:
        return original(catalog, catalog.load("lake.log") or table, change)

    return [patch.object(registration, "commit", commit)]


def position_in_a_second_commit() -> Patches:
    """Objects and position are in two commits."""
    original = SimulatedCatalog.commit

    def commit(self: SimulatedCatalog, table: Any, requirements: Any, updates: Any) -> None:
        original(self, table, requirements, updates[:-1])
        uuids = tuple(each for each in requirements if isinstance(each, AssertTableUUID))
        original(self, table, uuids, (SetPropertiesUpdate(updates=dict(updates[-1].updates)),))

    return [patch.object(SimulatedCatalog, "commit", commit)]


def memory_after_the_table() -> Patches:
    """The memory is read after the table."""
    original = Registration._next

    def following(self: Registration, table: Any, memory: Memory | None, request: Request, limit: int) -> Any:
        return original(self, table, self._memory.read(), request, limit)

    return [patch.object(Registration, "_next", following)]


def rollbacks_ignored() -> Patches:
    """A position whose snapshot is no ancestor of the head does not stop a registration."""
    return [patch.object(plan, "is_rolled_back", lambda *given: False)]


def _start_after(changed: Callable[[TableMetadata | None, Memory | None], Any]) -> Patches:
    original = plan.start_after

    def start_after(table: TableMetadata | None, memory: Memory | None, *more: Any) -> int:
        return original(*changed(table, memory), *more)

    return [patch.object(plan, "start_after", start_after)]


def another_table_ignored() -> Patches:
    """A table with another UUID gets the objects after the position in the memory."""
    original = plan.start_after

    def start_after(table: TableMetadata | None, memory: Memory | None, *more: Any) -> int:
        if memory is not None and (table is None or str(table.table_uuid) != memory.uuid):
            return memory.record
        return original(table, memory, *more)

    return [patch.object(plan, "start_after", start_after)]


def history_and_memory_ignored() -> Patches:
    """The property alone decides: an older value or none stops no registration."""
    ignored = patch.object(plan, "last_committed", lambda *given: None)
    return [*_start_after(lambda table, memory: (table, None)), ignored]


def expiry_since_the_ids_ignored() -> Patches:
    """A table that gave its ids gets all objects without a command, whatever has expired since."""
    return [patch.object(plan, "_is_unused", lambda table, seeds: bool(seeds))]


def expiry_of_its_own() -> Patches:
    """Snapshots expire after the commit, without a condition."""
    original = Registration._added

    def added(self: Registration, *given: Any, **more: Any) -> Any:
        catalog: Any = self._catalog
        catalog._step("expire")
        if catalog.metadata is not None:
            catalog.expire()
        return original(self, *given, **more)

    return [patch.object(Registration, "_added", added)]


def position_after_the_present_record() -> Patches:
    """The position of a commit is beyond the objects that were read."""
    original = plan.next_batch

    def next_batch(objects: Any, after: int, end: int, limit: int) -> Any:
        found = original(objects, after, end, limit)
        return None if found is None else plan.Batch(found.objects, found.record + 1)

    return [patch.object(plan, "next_batch", next_batch)]


def names_not_mapped() -> Patches:
    """The names of new columns are not added to the mapping of the table."""
    return [patch.object(TableNames, "property", lambda self, table: {})]


def names_by_the_present_columns() -> Patches:
    """A name that no present column has gets a new id, and the mapping is made of the present columns."""

    def made(self: TableNames, table: TableMetadata | None, ids: Any, *, is_own: bool) -> None:
        given = table if table is None else table.model_copy(update={"schemas": [table.schema()], "properties": {}})
        original(self, given, ids, is_own=is_own)

    original = TableNames.__init__
    return [patch.object(TableNames, "__init__", made)]


def skipped_objects_forgotten() -> Patches:
    """A commit counts the objects that it skips, and none of those before."""
    original = plan.continued_from

    def continued_from(*given: Any) -> Any:
        found = original(*given)
        return None if found is None else msgspec.structs.replace(found, skipped=None)

    return [patch.object(plan, "continued_from", continued_from)]


def position_without_a_snapshot() -> Patches:
    """A commit without files sets the property alone: the head stays, and so does what delayed commits require."""
    original = commit_module.commit

    def commit(catalog: Any, table: Any, change: Any) -> Any:
        if change.files:
            return original(catalog, table, change)
        head = table.metadata.current_snapshot_id
        position = TablePosition(
            change.ledger, change.generation, change.record, head or 0, change_sequence(table), skipped=change.skipped
        )
        required = (
            AssertTableUUID(uuid=table.metadata.table_uuid),
            AssertRefSnapshotId.model_validate({"ref": "main", "snapshot-id": head}),
        )
        properties = {**change.properties, position_property(change.sink_id): as_text(position)}
        catalog.commit(table, required, (SetPropertiesUpdate(updates=properties),))
        return position

    return [patch.object(registration, "commit", commit)]


def change_sequence(table: Any) -> int:
    """The sequence number of the head."""
    head = table.current_snapshot()
    return 0 if head is None else head.sequence_number or 0


def returned_objects_by_absence() -> Patches:
    """All objects without a file are added again, also those in the file of a compaction."""
    return [
        patch.object(SkippedObjects, "among", lambda self, absent: list(absent)),
        patch.object(SkippedObjects, "without_objects", lambda self, objects: NONE_SKIPPED),
    ]


TABLE_MUTATIONS: Final[dict[str, Callable[[], Patches]]] = {
    each.__name__: each
    for each in (
        rejected_commits_rebased,
        head_of_a_second_load,
        position_in_a_second_commit,
        memory_after_the_table,
        rollbacks_ignored,
        another_table_ignored,
        history_and_memory_ignored,
        expiry_since_the_ids_ignored,
        expiry_of_its_own,
        names_not_mapped,
        names_by_the_present_columns,
        position_after_the_present_record,
        skipped_objects_forgotten,
        position_without_a_snapshot,
        returned_objects_by_absence,
    )
}


def violation(name: str, seed: int) -> Violation | None:
    """What the run violates with the defect."""
    with ExitStack() as stack:
        for each in TABLE_MUTATIONS[name]():
            stack.enter_context(each)
        return run_case(seed)


def search(name: str, runs: int, base: int = 0) -> int | None:
    """The first seed that finds the defect."""
    return next((seed for seed in range(base, base + runs) if violation(name, seed) is not None), None)


def main() -> None:
    logging.getLogger(registration.__name__).setLevel(logging.ERROR)
    for name in TABLE_MUTATIONS:
        seed = search(name, 600)
        print(name, seed, None if seed is None else violation(name, seed), flush=True)


if __name__ == "__main__":
    main()
