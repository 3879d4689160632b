"""Which missing objects a lifecycle rule has removed on purpose (`s3.expireAfter`, `verify --removed-before`).

The store no longer has the time of a missing object. Its ledger record has been dropped, too, if two snapshots cover
it. So an object counts as old as the latest of what is surely older: the claim before its record, and the file of the
published log that ends before it. This time can be earlier than the object by the time between two snapshots, so a
rule never removes an object that is reported as missing, and one that was deleted by accident shortly before its
removal counts as removed. Pure functions.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import replace

from sink_job.ledger.state import ClosedObject
from sink_job.verify.audit_input import BucketState, GenerationAudit


class LedgerTimes:
    """The earliest time of ledger records: what is known of the records before them."""

    def __init__(self, claims: Mapping[int, int], published_to: Mapping[int, int]) -> None:
        """`claims`: the clock of each claim in ms, by number. `published_to`: when each file of the published log was
        written, in ms, by the number of its last record."""
        self._claims = _rising(claims.items())
        self._published = _rising(published_to.items())

    def earliest(self, record: int) -> int | None:
        """A time in ms before which record `record` was not written; None if nothing is known."""
        claim = bisect_right(self._claims, record, key=lambda each: each[0])
        published = bisect_left(self._published, record, key=lambda each: each[0])
        known = [*self._claims[:claim][-1:], *self._published[:published][-1:]]
        return max((at for _, at in known), default=None)


def _rising(times: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The times by number, none earlier than the one before: the host's clock may have gone back."""
    found: list[tuple[int, int]] = []
    for number, at in sorted(times):
        found.append((number, max(at, found[-1][1]) if found else at))
    return found


def with_removed(
    generation: GenerationAudit, bucket: BucketState, times: LedgerTimes, removed_before: int | None
) -> BucketState:
    """The deviations with the missing objects that count as removed: those written before `removed_before` (ms)."""
    if removed_before is None or not bucket.missing:
        return bucket

    def is_removed(o: ClosedObject) -> bool:
        at = times.earliest(o.record)
        return at is not None and at < removed_before

    removed = {o.key for o in generation.published if o.key in bucket.missing and is_removed(o)}
    return replace(bucket, removed=frozenset(removed))
