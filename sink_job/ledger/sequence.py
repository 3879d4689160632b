"""The record numbers of a ledger: which records to read, whether a claim is the head, and which records to delete.

Pure functions. Drivers coordinate through the record numbers alone (P4). Without one of these rules the protocol model
finds a counter-example (tests/model).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple


class Chain(NamedTuple):
    """The files to read: a snapshot (0: none), then the records `snapshot + 1` to `head`, inclusive."""

    snapshot: int
    head: int

    @property
    def records(self) -> range:
        return range(self.snapshot + 1, self.head + 1)


def chain(records: Collection[int], snapshots: Collection[int]) -> Chain | None:
    """The files of the newest state in a listing; None if a number is missing: then list again.

    Records with a number at or below the newest snapshot are never applied, also if they still exist.
    """
    snapshot = max(snapshots, default=0)
    after = {number for number in records if number > snapshot}
    head = max(after, default=snapshot)
    return Chain(snapshot, head) if len(after) == head - snapshot else None


def is_head(claim: int, records: Collection[int], snapshots: Collection[int], read_from: int | None = None) -> bool:
    """Whether the claim that was just written is the head: no record has a higher number, and no snapshot an equal or
    higher number.

    With such a snapshot the claim took the number of a deleted record and fences no driver. `read_from` is the number
    of the snapshot that the claim's state was read from. If two snapshots have higher numbers, records after
    `read_from` may have been deleted and replaced by such a claim: the state may be one that the ledger never had.
    """
    if read_from is not None and sum(number > read_from for number in snapshots) > 1:
        return False
    return max(records, default=0) == claim and max(snapshots, default=0) < claim


def droppable(
    records: Collection[int], snapshots: Collection[int], claims: Collection[int], unacknowledged: int
) -> list[int]:
    """The records to delete: those that two snapshots and the published log cover, except claims (P4, P10).

    `unacknowledged` is the number of the first record with a closed object that is not acknowledged yet.
    """
    if len(snapshots) < 2:
        return []
    covered = min(sorted(snapshots)[-2], unacknowledged - 1)
    kept = set(claims)
    return sorted(number for number in records if number <= covered and number not in kept)


def superseded_snapshots(snapshots: Collection[int]) -> list[int]:
    """All snapshots but the newest two."""
    return sorted(snapshots)[:-2]
