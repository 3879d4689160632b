"""Which snapshots a commit expires, and which properties it sets. Pure.

The commit that adds objects expires old snapshots, too: it requires the head that was loaded, and moves the position to
its own snapshot. So no snapshot expires from which a rollback could be seen. No file is deleted: objects belong to the
sink, and the removal of orphan files finds the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH

from sink_job.api.errors import TableNotRegistered
from sink_job.tables.position import other_positions

DAY_MS: Final = 86_400_000
GC: Final = "gc.enabled"
NEW_TABLE: Final = {
    "format-version": "2",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.min-count-to-merge": "100",
}
"""Properties of new tables, beside that of `Housekeeping.keep_objects`."""


@dataclass(frozen=True)
class Housekeeping:
    """`history`: the age in ms from which on snapshots expire. `keep_objects`: Iceberg's clients delete no objects."""

    history: int = 7 * DAY_MS
    keep_objects: bool = True

    def new_table(self) -> Mapping[str, str]:
        """The properties of a new table."""
        return {**NEW_TABLE, **self.changed({})}

    def changed(self, properties: Mapping[str, str]) -> Mapping[str, str]:
        """The properties that a table with these has to get."""
        is_kept = properties.get(GC, "true").lower() == "false"
        return {GC: "false"} if self.keep_objects and not is_kept else {}

    def expired(self, table: TableMetadata, sink_id: str, now: int, branch: str = MAIN_BRANCH) -> Sequence[int]:
        """The ids of the snapshots that the next commit of the sink to `branch` expires; `now` is in ms.

        They are older than its head. The targets of branches and tags are kept, with the whole history of those that
        have a retention of their own. So are the snapshots since the position of another sink in the same table: its
        rollbacks have to be seen.
        """
        try:
            others = other_positions(table.properties, sink_id)
        except TableNotRegistered:
            return ()
        head = table.snapshot_by_name(branch)
        if head is None:
            return ()
        kept = _referred(table)
        end = min([head.sequence_number or 0, *_sequence_numbers(table, {each.snapshot for each in others})])
        return [
            each.snapshot_id
            for each in table.snapshots
            if each.timestamp_ms < now - self.history
            and each.snapshot_id not in kept
            and (each.sequence_number or 0) < end
        ]


def _sequence_numbers(table: TableMetadata, snapshots: Collection[int]) -> list[int]:
    """The sequence numbers of those that the table knows."""
    return [each.sequence_number or 0 for each in table.snapshots if each.snapshot_id in snapshots]


def _referred(table: TableMetadata) -> set[int]:
    kept = {each.snapshot_id for each in table.refs.values()}
    parents = {each.snapshot_id: each.parent_snapshot_id for each in table.snapshots}
    for ref in table.refs.values():
        if ref.max_snapshot_age_ms is not None or ref.min_snapshots_to_keep is not None:
            at: int | None = ref.snapshot_id
            while at in parents:
                kept.add(at)
                at = parents[at]
    return kept
