"""Deliberate defects of tables that are continued in new ones, as in `table_mutations`: `table_successors` must find
each.

`python -m devtools.simulation.table_successor_mutations` prints the seed that finds each defect.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

import msgspec
from pyiceberg.table.update import AssertRefSnapshotId, AssertTableUUID, SetPropertiesUpdate

from devtools.simulation.oracle import Violation
from devtools.simulation.table_successors import run_case
from sink_job.tables import commit as commit_module
from sink_job.tables import registration
from sink_job.tables.commit import TableChange
from sink_job.tables.memory import Memory, StoredMemory
from sink_job.tables.position import position_in
from sink_job.tables.registration import Registration
from sink_job.tables.registrations import preparation
from sink_job.tables.successors import generations, leaving
from sink_job.tables.successors.continuation import Continuation

Patches = Sequence[AbstractContextManager[Any]]


def left_without_a_snapshot() -> Patches:
    """A table that is left without new objects gets the property alone."""
    return _property_alone(requires_head=True)


def left_without_the_head() -> Patches:
    """The same, whatever the head of the table is."""
    return _property_alone(requires_head=False)


def _property_alone(*, requires_head: bool) -> Patches:
    original = commit_module.commit

    def commit(catalog: Any, table: Any, change: Any) -> Any:
        if change.files or not _leaves(change):
            return original(catalog, table, change)
        head = {"ref": "main", "snapshot-id": table.metadata.current_snapshot_id}
        required = [AssertTableUUID(uuid=table.metadata.table_uuid)]
        heads = [AssertRefSnapshotId.model_validate(head)] if requires_head else []
        catalog.commit(table, (*required, *heads), (SetPropertiesUpdate(updates=dict(change.properties)),))
        return position_in(table.properties, change.sink_id)

    return [patch.object(registration, "commit", commit)]


def _leaves(change: TableChange) -> bool:
    return any(name.endswith(".continued") for name in change.properties)


def added_to_a_table_that_was_left() -> Patches:
    """The property is not read."""
    return [patch.object(registration, "left_in", lambda *given: None)]


def started_at_the_next_record() -> Patches:
    """The successor begins after the record that is divided."""
    original = leaving.left_after

    def left_after(record: int, successors: Any, ledger: Any, done: str = "") -> Continuation:
        return original(record + bool(done), successors, ledger)

    return [patch.object(leaving, "left_after", left_after)]


def started_with_the_whole_record() -> Patches:
    """The successor has all objects of the record that is divided and fit."""

    def remaining(self: Continuation, objects: Iterable[Any]) -> Iterable[Any]:
        return objects

    return [patch.object(Continuation, "remaining", remaining)]


def remembered_before_the_commit() -> Patches:
    """The memory says that the table was left before the commit."""
    original = commit_module.commit
    stores: list[StoredMemory] = []

    def commit(catalog: Any, table: Any, change: Any) -> Any:
        for name, text in change.properties.items():
            if name.endswith(".continued") and stores:
                left = msgspec.json.decode(text, type=Continuation)
                store = stores[-1]
                uuid = str(table.metadata.table_uuid)
                store.write(Memory(uuid, "ledger", 1, left.record, 0, continued=left))
        return original(catalog, table, change)

    opened = StoredMemory.__init__

    def init(self: StoredMemory, *given: Any) -> None:
        opened(self, *given)
        stores.append(self)

    return [patch.object(registration, "commit", commit), patch.object(StoredMemory, "__init__", init)]


def tables_of_others_used() -> Patches:
    """A table with the name of the successor is used, whoever has created it."""
    return [
        patch.object(registration, "check_owned", lambda *given: None),
        patch.object(preparation, "check_next", lambda *given: None),
    ]


def dropped_successors_created_again() -> Patches:
    """A successor without a table is created, whatever the memory says."""
    original = Registration._next

    def following(self: Registration, table: Any, memory: Memory | None, *more: Any) -> Any:
        is_first = self._target.successors.predecessor is None
        return original(self, table, memory if table is not None or is_first else None, *more)

    return [patch.object(Registration, "_next", following)]


def resets_ignored() -> Patches:
    """The objects after a reset are added to the same table."""

    def part_for(ledger: Any, record: int | None, beginning: int, *, continues: bool) -> Any:
        return replace(ledger, copied_from=beginning if record is None else 0)

    return [patch.object(registration, "part_for", part_for)]


def objects_before_a_reset_left_out() -> Patches:
    """A table is left at a reset without the objects that were published before it."""
    original = generations.part_for

    def part_for(ledger: Any, record: int | None, beginning: int, *, continues: bool) -> Any:
        found = original(ledger, record, beginning, continues=continues)
        if record is not None and found.number < ledger.number:
            return replace(found, number=max(record, 0))
        return found

    original_left = leaving.left_after

    def left_after(record: int, successors: Any, ledger: Any, done: str = "") -> Continuation:
        return original_left(min(each for each in ledger.copies if each > record), successors, ledger, done)

    return [patch.object(registration, "part_for", part_for), patch.object(registration, "left_after", left_after)]


SUCCESSOR_MUTATIONS: Final[dict[str, Callable[[], Patches]]] = {
    each.__name__: each
    for each in (
        left_without_a_snapshot,
        left_without_the_head,
        added_to_a_table_that_was_left,
        started_at_the_next_record,
        started_with_the_whole_record,
        remembered_before_the_commit,
        tables_of_others_used,
        dropped_successors_created_again,
        resets_ignored,
        objects_before_a_reset_left_out,
    )
}


def violation(name: str, seed: int) -> Violation | None:
    """What the run violates with the defect."""
    with ExitStack() as stack:
        for each in SUCCESSOR_MUTATIONS[name]():
            stack.enter_context(each)
        return run_case(seed)


def search(name: str, runs: int, base: int = 0) -> int | None:
    """The first seed that finds the defect."""
    return next((seed for seed in range(base, base + runs) if violation(name, seed) is not None), None)


def main() -> None:
    logging.getLogger("sink_job.tables").setLevel(logging.CRITICAL)
    for name in SUCCESSOR_MUTATIONS:
        seed = search(name, 600)
        print(name, seed, None if seed is None else violation(name, seed), flush=True)


if __name__ == "__main__":
    main()
