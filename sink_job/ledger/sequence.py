"""Reading a ledger's listing: which numbers make the head, whether a claim is still it, and what may be dropped.

Pure, and the heart of P4: drivers agree through the numbers of the records alone. Each rule here closes a
counter-example that the protocol's model finds when it is left out (tests/model).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple


class Chain(NamedTuple):
    """What to read: the snapshot (0: none) and the records `snapshot + 1 … head` in order."""

    snapshot: int
    head: int

    @property
    def records(self) -> range:
        return range(self.snapshot + 1, self.head + 1)


def chain(records: Collection[int], snapshots: Collection[int]) -> Chain | None:
    """The newest state that a listing shows; None when a number is missing: then list again.

    Records numbered at or below the newest snapshot are never applied, whatever is still there of them.
    """
    snapshot = max(snapshots, default=0)
    after = {number for number in records if number > snapshot}
    head = max(after, default=snapshot)
    return Chain(snapshot, head) if len(after) == head - snapshot else None


def is_head(claim: int, records: Collection[int], snapshots: Collection[int], read_from: int | None = None) -> bool:
    """Whether the record `claim`, just written, is the head: nothing above it, and no snapshot at or above it.

    A snapshot at or above means that the claim fell into numbers which had been dropped: it fences nobody. `read_from`:
    the snapshot behind which the records were read that led to the claim. With two snapshots above it, some of them may
    have been dropped by then, and such a claim read in their place: what it was built on may never have been decided.
    """
    if read_from is not None and sum(number > read_from for number in snapshots) > 1:
        return False
    return max(records, default=0) == claim and max(snapshots, default=0) < claim


def droppable(
    records: Collection[int], snapshots: Collection[int], claims: Collection[int], unacknowledged: int
) -> list[int]:
    """The records that two snapshots and the published list cover, claims never among them (P4, P10).

    `unacknowledged` is the first record that named an object which no record has acknowledged yet.
    """
    if len(snapshots) < 2:
        return []
    covered = min(sorted(snapshots)[-2], unacknowledged - 1)
    kept = set(claims)
    return sorted(number for number in records if number <= covered and number not in kept)


def superseded_snapshots(snapshots: Collection[int]) -> list[int]:
    """The snapshots that two newer ones make unnecessary."""
    return sorted(snapshots)[:-2]
