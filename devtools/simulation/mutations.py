"""Deliberate defects: each leaves one rule of the protocol out, and the simulation has to find that.

`python -m devtools.simulation.mutations` prints after how many worlds each one is found.
"""

from __future__ import annotations

import gzip
import itertools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any
from unittest.mock import patch

import msgspec

from devtools.simulation.runner import Failed, fails, fresh
from devtools.simulation.store import Store
from sink_job.coordinator.committer import Committer
from sink_job.ledger import generations, publisher, sequence, session, state, takeover
from sink_job.ledger.publisher import PublishOutcome, publish_all
from sink_job.ledger.store import Ledger
from sink_job.s3 import Part
from sink_job.writer import object_writer

Patches = Sequence[AbstractContextManager[Any]]


def visible_before_recorded() -> Patches:
    """Objects become visible before a record names them."""
    original = Committer.record

    def record(self: Committer, **given: Any) -> None:
        publish_all(self.s3, given.get("closed", ()), self._pool)
        original(self, **given)

    return [patch.object(Committer, "record", record)]


def no_listing_after_the_claim() -> Patches:
    """A claim is taken for the head without listing the ledger once more."""
    return [patch.object(Ledger, "is_head", lambda self, claim, state: True)]


def unconditional_records() -> Patches:
    """Records are put whether or not their numbers are free."""

    def append(self: Ledger, record: state.Record) -> None:
        self.s3.put(self.root + self._record_name(record.number), gzip.compress(msgspec.json.encode(record), mtime=0))

    return [patch.object(Ledger, "append", append)]


def acknowledged_before_visible() -> Patches:
    """A record acknowledges what it names."""
    original = Committer.record

    def record(self: Committer, **given: Any) -> None:
        original(self, **given)
        if given.get("closed"):
            original(
                self, **{**given, "closed": (), "partitions": {}, "acknowledged": [o.key for o in given["closed"]]}
            )

    return [patch.object(Committer, "record", record)]


def committed_before_acknowledged() -> Patches:
    """The group's offsets pass objects that are visible and not acknowledged yet."""
    original = Committer._acknowledge

    def acknowledge(self: Committer, clock: int, visible: set[str], *rest: Any, **given: Any) -> None:
        self._commit(state.committable_offsets(self.state, visible))
        original(self, clock, visible, *rest, **given)

    return [patch.object(Committer, "_acknowledge", acknowledge)]


def lost_is_taken_for_moved() -> Patches:
    """An object that is neither uploaded nor at its key passes for visible."""
    original = publisher.publish

    def lenient(*given: Any) -> PublishOutcome:
        original(*given)
        return PublishOutcome.VISIBLE

    return [patch.object(publisher, "publish", lenient)]


def completed_over_objects() -> Patches:
    """Completions replace what is at their key."""
    original = Store.complete

    def complete(self: Store, key: str, upload_id: str, parts: Sequence[Part], crc: int) -> str:
        if upload_id in self.uploads:
            self.take(key)
        return original(self, key, upload_id, parts, crc)

    return [patch.object(Store, "complete", complete)]


def staged_bytes_removed_early() -> Patches:
    """What a record replaces is removed before the record is put."""
    original = Committer.record

    def record(self: Committer, **given: Any) -> None:
        partitions: Mapping[Any, state.PartitionState] = given["partitions"]
        before = [p for tp in partitions if (p := self.state.partition(tp)) is not None]
        named = {name for p in before for name in p.staged()}
        kept = {name for p in partitions.values() for name in p.staged()}
        self.s3.delete(sorted(named - kept))
        original(self, **given)

    return [patch.object(Committer, "record", record)]


def clean_up_ignores_the_state() -> Patches:
    """Clean-up aborts uploads that the state names."""
    return [patch.object(state.LedgerState, "uploads", lambda self: set())]


def clean_up_before_the_claim() -> Patches:
    """Clean-up takes uploads that began after the claim."""
    return [patch.object(Ledger, "record_time", lambda self, number: 1 << 60)]


def no_intents() -> Patches:
    """Nothing is written down before uploads begin."""
    return [patch.object(Ledger, "write_intent", lambda self, intent: None)]


def clocks_forgotten() -> Patches:
    """The members of an object do not hold the round clocks under which they were seen."""
    original = object_writer.extend_sources
    return [
        patch(
            "sink_job.writer.partition_writer.extend_sources",
            lambda seen, start, end, clock: original(seen, start, end, 0),
        )
    ]


def reset_before_published() -> Patches:
    """A reset does not make visible first what was named."""
    return [patch.object(session.LedgerSession, "publish", lambda self, *given: 0)]


def commits_without_generation() -> Patches:
    """Commits do not carry their generation."""
    original = generations.commit_metadata
    return [patch("sink_job.coordinator.committer.commit_metadata", lambda generation, ledger: original(1, ledger))]


def claims_are_dropped() -> Patches:
    """Records that two snapshots cover are dropped, claims too."""
    original = sequence.droppable

    def droppable(records: Any, snapshots: Any, claims: Any, *rest: Any) -> Any:
        return original(records, snapshots, (), *rest)

    return [patch.object(sequence, "droppable", droppable)]


def staging_of_others_removed() -> Patches:
    """Clean-up deletes staging objects of any epoch and round."""
    return [patch.object(takeover, "is_expired", lambda name, epoch, recorded: True)]


MUTATIONS: dict[str, Callable[[], Patches]] = {
    each.__name__: each
    for each in (
        visible_before_recorded,
        no_listing_after_the_claim,
        unconditional_records,
        acknowledged_before_visible,
        committed_before_acknowledged,
        lost_is_taken_for_moved,
        completed_over_objects,
        staged_bytes_removed_early,
        clean_up_ignores_the_state,
        clean_up_before_the_claim,
        no_intents,
        clocks_forgotten,
        reset_before_published,
        commits_without_generation,
        claims_are_dropped,
        staging_of_others_removed,
    )
}


INCLUDE = {
    "no_listing_after_the_claim": ("slow-records", "second-driver"),
    "committed_before_acknowledged": ("eager-reader", "kill"),
    "reset_before_published": ("reset", "second-driver"),
    "commits_without_generation": ("reset",),
    "claims_are_dropped": ("slow-records",),
}
"""Features that all worlds have in which a defect is searched for."""


def search(name: str, worlds: int, base: int = 0) -> tuple[int, Failed] | None:
    """After how many worlds the defect is found, and how; None if it is not within `worlds`."""
    for number, case in enumerate(fresh(base, worlds, include=INCLUDE.get(name, ())), start=1):
        with ExitStack() as stack:
            for each in MUTATIONS[name]():
                stack.enter_context(each)
            failed = fails(case)
        if failed is None:
            continue
        without = fails(case)
        if without is None or without.kind != failed.kind:  # otherwise it is not the defect that was found
            return number, failed
    return None


def _report(names: Sequence[str], worlds: int) -> Iterator[str]:
    for name in names:
        found = search(name, worlds)
        if found is None:
            yield f"{name:32} not found in {worlds} worlds"
        else:
            yield f"{name:32} {found[0]:5} worlds: {found[1].message[:120]}"


if __name__ == "__main__":
    chosen = list(itertools.takewhile(lambda word: not word.isdigit(), sys.argv[1:])) or list(MUTATIONS)
    for line in _report(chosen, int(sys.argv[-1]) if sys.argv[-1].isdigit() else 2_000):
        print(line.splitlines()[0], flush=True)
