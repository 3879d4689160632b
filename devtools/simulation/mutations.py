"""Deliberate defects: each omits one rule of the protocol, and the simulation must find it.

`python -m devtools.simulation.mutations` prints the number of runs until each defect is found.
"""

from __future__ import annotations

import gzip
import itertools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, cast
from unittest.mock import patch

import msgspec

from devtools.simulation.client import SimulatedS3
from devtools.simulation.config import UNUSUAL
from devtools.simulation.dead_letter_mutations import DEAD_LETTER_MUTATIONS, TOPIC_MUTATIONS
from devtools.simulation.null_mutations import NULL_MUTATIONS
from devtools.simulation.object_mutations import OBJECT_INCLUDE, OBJECT_MUTATIONS
from devtools.simulation.previous_writer_mutations import PREVIOUS_WRITER_INCLUDE, PREVIOUS_WRITER_MUTATIONS
from devtools.simulation.registry_mutations import REGISTRY_INCLUDE, REGISTRY_MUTATIONS
from devtools.simulation.repair_mutations import REPAIR_INCLUDE, REPAIR_MUTATIONS
from devtools.simulation.runner import FailedCase, new_cases, run_case
from devtools.simulation.skip_mutations import SKIP_INCLUDE, SKIP_MUTATIONS
from devtools.simulation.store import SimulatedStore
from devtools.simulation.transform_mutations import TRANSFORM_INCLUDE, TRANSFORM_MUTATIONS
from devtools.simulation.two_buckets import PLACE_INCLUDE, PLACE_MUTATIONS
from sink_job.api.errors import LedgerFenced
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.committer import Committer
from sink_job.coordinator.round_clock import RoundClock
from sink_job.coordinator.rounds import Rounds
from sink_job.coordinator.topic_claims import TopicClaims
from sink_job.ledger import generations, orphan_cleanup, ownership, publisher, sequence, session, state
from sink_job.ledger.handover import Handover
from sink_job.ledger.open_uploads import open_uploads
from sink_job.ledger.publisher import PublishOutcome, publish_all
from sink_job.ledger.store import Ledger
from sink_job.s3 import S3Client
from sink_job.s3.multipart import MultipartCalls
from sink_job.writer import object_writer

Patches = Sequence[AbstractContextManager[Any]]


def visible_before_recorded() -> Patches:
    """Objects become visible before a record lists them."""
    original = Committer.record

    def record(self: Committer, **given: Any) -> None:
        publish_all(self.s3, given.get("closed", ()), self._pool)
        original(self, **given)

    return [patch.object(Committer, "record", record)]


def no_listing_after_the_claim() -> Patches:
    """A driver acts on its claim without listing the ledger again."""
    return [patch.object(Ledger, "is_head", lambda self, claim, state: True)]


def unconditional_records() -> Patches:
    """Records are put without `If-None-Match`."""

    def append(self: Ledger, record: state.Record) -> None:
        self.s3.put(self.key_of(record.number), gzip.compress(msgspec.json.encode(record), mtime=0))

    return [patch.object(Ledger, "append", append)]


def fenced_driver_continues() -> Patches:
    """A record that is rejected counts as stored."""
    return [patch.object(Ledger, "_check_own", lambda self, record: None)]


def committed_without_a_check() -> Patches:
    """An idle driver commits offsets without a check of the ledger's head."""
    return [patch.object(Ledger, "check_head", lambda self, state: None)]


def acknowledged_before_visible() -> Patches:
    """A record acknowledges the objects that it closes."""
    original = Committer.record

    def record(self: Committer, **given: Any) -> None:
        original(self, **given)
        if given.get("closed"):
            original(
                self, **{**given, "closed": (), "partitions": {}, "acknowledged": [o.key for o in given["closed"]]}
            )

    return [patch.object(Committer, "record", record)]


def committed_before_acknowledged() -> Patches:
    """The group's offsets pass objects that are visible but not acknowledged."""
    original = Committer._acknowledge

    def acknowledge(self: Committer, clock: int, visible: set[str], *rest: Any, **given: Any) -> None:
        self._group_offsets._commit(self.state, state.committable_offsets(self.state, visible))
        original(self, clock, visible, *rest, **given)

    return [patch.object(Committer, "_acknowledge", acknowledge)]


def lost_is_taken_for_moved() -> Patches:
    """An object without upload and without an object at its key counts as visible."""
    original = publisher.publish

    def lenient(*given: Any) -> PublishOutcome:
        original(*given)
        return PublishOutcome.VISIBLE

    return [patch.object(publisher, "publish", lenient)]


def completed_over_objects() -> Patches:
    """Completions replace the object at their key."""
    original = SimulatedStore.complete

    def complete(self: SimulatedStore, key: str, upload_id: str, *rest: Any, **given: Any) -> str:
        if upload_id in self.uploads:
            self.take(key)
        return original(self, key, upload_id, *rest, **given)

    return [patch.object(SimulatedStore, "complete", complete)]


def staged_bytes_removed_early() -> Patches:
    """Replaced uploads are aborted before the record is put."""
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
    """Clean-up aborts uploads that began after the claim."""
    return [patch.object(Ledger, "record_time", lambda self, number: 1 << 60)]


def no_intents() -> Patches:
    """No intent is written before uploads begin."""
    return [patch.object(Ledger, "write_intent", lambda self, intent: None)]


def clocks_forgotten() -> Patches:
    """The members of an object do not hold their round clocks."""
    original = object_writer.extend_sources
    return [
        patch(
            "sink_job.writer.object_writer.extend_sources",
            lambda seen, start, end, clock, breaks: original(seen, start, end, 0, breaks),
        )
    ]


def reset_before_published() -> Patches:
    """A reset does not publish closed objects first."""
    return [patch.object(session.LedgerSession, "publish", lambda self, *given: 0)]


def commits_without_generation() -> Patches:
    """Commits do not carry their generation."""
    original = generations.commit_metadata
    return [patch("sink_job.coordinator.group_offsets.commit_metadata", lambda generation, ledger: original(1, ledger))]


def claims_are_dropped() -> Patches:
    """Records that two snapshots cover are dropped, including claims."""
    original = sequence.droppable

    def droppable(records: Any, snapshots: Any, claims: Any, *rest: Any) -> Any:
        return original(records, snapshots, (), *rest)

    return [patch.object(sequence, "droppable", droppable)]


def staging_of_others_removed() -> Patches:
    """Clean-up deletes staging objects of any epoch and round."""
    return [patch.object(orphan_cleanup, "is_expired", lambda name, epoch, recorded: True)]


def tagged_after_the_acknowledgement() -> Patches:
    """Objects get the tags with their offsets after the record that acknowledges them."""
    original, tag = Committer._acknowledge, SimulatedS3.tag_offsets

    def acknowledge(self: Committer, clock: int, visible: set[str], *rest: Any, **given: Any) -> None:
        objects = [self.state.pending[key] for key in visible]
        original(self, clock, visible, *rest, **given)
        for o in objects:
            tag(self.s3, o.key, o.first, o.last, o.offsets.count)  # type: ignore[arg-type]

    return [
        patch.object(SimulatedS3, "tag_offsets", lambda self, *given: None),
        patch.object(Committer, "_acknowledge", acknowledge),
    ]


class _WithoutAborts:
    """A client whose aborts have no effect."""

    def __init__(self, s3: S3Client) -> None:
        self._s3 = s3

    def __getattr__(self, name: str) -> Any:
        return getattr(self._s3, name)

    def abort(self, key: str, upload_id: str) -> bool:
        return False


def repeated_completion_not_confirmed() -> Patches:
    """A completion that succeeds at a later attempt is not confirmed by a HEAD."""
    return [patch.object(MultipartCalls, "_check_exists", lambda self, key: None)]


def inherited_completion_not_confirmed() -> Patches:
    """A completion that another driver may have tried is not confirmed by a HEAD."""
    original = publisher.publish
    return [patch.object(publisher, "publish", lambda s3, o, was_tried=False: original(s3, o, False))]


def unusable_upload_not_aborted() -> Patches:
    """An upload that cannot be completed is not aborted before its object is rebuilt."""
    original = publisher.publish

    def without_aborts(s3: S3Client, *given: Any) -> PublishOutcome:
        return original(cast("S3Client", _WithoutAborts(s3)), *given)

    return [patch.object(publisher, "publish", without_aborts)]


def replaced_uploads_aborted_early() -> Patches:
    """The uploads of rebuilt open objects are aborted before the record that replaces them."""
    original = Rounds._rebuild_open

    def rebuild_open(self: Rounds, *given: Any) -> Any:
        rebuilt, lost = original(self, *given)
        for key, upload in open_uploads({tp: self.state_of(tp) for tp in rebuilt}, self.state.settings):
            self._s3.abort(key, upload)
        return rebuilt, lost

    return [patch.object(Rounds, "_rebuild_open", rebuild_open)]


def fenced_driver_aborts_all() -> Patches:
    """A driver that is fenced aborts all uploads of its state."""
    original = Committer.record

    def record(self: Committer, **given: Any) -> None:
        try:
            original(self, **given)
        except LedgerFenced:
            partitions = {TopicPartition.parse(name): p for name, p in self.state.partitions.items()}
            for key, upload in open_uploads(partitions, self.state.settings):
                self.s3.abort(key, upload)
            raise

    return [patch.object(Committer, "record", record)]


def clock_goes_back() -> Patches:
    """The round clock follows the host's, also while objects are open."""

    def advance(self: RoundClock) -> int:
        self.ms = self._host.now()
        return self.ms

    return [patch.object(RoundClock, "advance", advance)]


def ownership_not_checked_after_the_claim() -> Patches:
    """A driver does not check its ownership again after its claim."""
    return [patch.object(TopicClaims, "check_after_claim", lambda self, topics: None)]


def previous_ledger_not_fenced() -> Patches:
    """The ledger of the previous owner is neither marked nor claimed."""
    return [patch.object(Handover, "fence", lambda self, predecessor: {})]


def hand_over_not_marked() -> Patches:
    """The ledger of the previous owner is claimed, but not marked as handed over."""
    return [patch.object(ownership, "mark_handed_over", lambda s3, root, owner: True)]


def owners_replaced_unconditionally() -> Patches:
    """The file of an owner is replaced without `If-Match`."""

    def replace(s3: S3Client, key: str, etag: str, content: Any) -> str:
        return s3.put(key, msgspec.json.encode(content)).etag

    return [patch.object(ownership, "_replace", replace)]


MUTATIONS: dict[str, Callable[[], Patches]] = {
    each.__name__: each
    for each in (
        visible_before_recorded,
        no_listing_after_the_claim,
        unconditional_records,
        fenced_driver_continues,
        committed_without_a_check,
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
        tagged_after_the_acknowledgement,
        repeated_completion_not_confirmed,
        inherited_completion_not_confirmed,
        unusable_upload_not_aborted,
        replaced_uploads_aborted_early,
        fenced_driver_aborts_all,
        clock_goes_back,
        ownership_not_checked_after_the_claim,
        previous_ledger_not_fenced,
        hand_over_not_marked,
        owners_replaced_unconditionally,
    )
} | {
    **DEAD_LETTER_MUTATIONS,
    **SKIP_MUTATIONS,
    **NULL_MUTATIONS,
    **REPAIR_MUTATIONS,
    **OBJECT_MUTATIONS,
    **REGISTRY_MUTATIONS,
    **PREVIOUS_WRITER_MUTATIONS,
    **PLACE_MUTATIONS,
    **TRANSFORM_MUTATIONS,
}

INCLUDE = {
    **SKIP_INCLUDE,
    **TRANSFORM_INCLUDE,
    **REPAIR_INCLUDE,
    **OBJECT_INCLUDE,
    **REGISTRY_INCLUDE,
    **PREVIOUS_WRITER_INCLUDE,
    **PLACE_INCLUDE,
    **dict.fromkeys(DEAD_LETTER_MUTATIONS, ("dead-letters",)),
    **dict.fromkeys(TOPIC_MUTATIONS, ("dead-letters", "dead-letter-topic")),
    "accepted_records_rebuilt_as_dead_letters": ("dead-letters", "lifecycle"),
    "own_transactional_id_of_each_driver": ("dead-letters", "dead-letter-topic", "sleep", "second-driver"),
    "expired_number_not_searched": ("dead-letters", "dead-letter-topic", "group-forgotten", "kill"),
    "dead_letters_acknowledged_beside_lost_objects": ("dead-letters", "dead-letter-topic", "lifecycle", "kill"),
    "no_listing_after_the_claim": ("slow-records", "second-driver"),
    "committed_without_a_check": ("group-back",),
    "committed_before_acknowledged": ("eager-reader", "kill"),
    "reset_before_published": ("reset", "second-driver"),
    "commits_without_generation": ("reset",),
    "claims_are_dropped": ("slow-records",),
    "nulls_not_rebuilt": ("null-values", "containers", "lost-uploads"),
    "tagged_after_the_acknowledgement": ("offset-tags",),
    "repeated_completion_not_confirmed": ("torn-completion",),
    "inherited_completion_not_confirmed": ("torn-completion",),
    "unusable_upload_not_aborted": ("late-conflict", "eager-reader"),
    "replaced_uploads_aborted_early": ("lifecycle", "second-driver", "many-uploads"),
    "fenced_driver_aborts_all": ("second-driver",),
    "clock_goes_back": ("clock",),
    "staging_of_others_removed": ("second-driver", "sleep", "slow-records"),
    "ownership_not_checked_after_the_claim": ("take-over", "slow-records", "second-driver"),
    "previous_ledger_not_fenced": ("take-over", "other-ledger"),
    "hand_over_not_marked": ("take-over", "other-ledger", "slow-records", "second-driver"),
    "owners_replaced_unconditionally": ("take-over", "other-ledger"),
}
"""Features of all runs that search for a defect. Only those for a defect of containers have containers, and so on."""


EXCLUDE = {
    "unusable_upload_not_aborted": ("slow-records", "torn-completion", "kill", "reader"),
}
"""Features that no run has that searches for a defect: they hide it."""


def search(name: str, runs: int, base: int = 0) -> tuple[int, FailedCase] | None:
    """The number of runs until the defect is found, and its failure; None if `runs` do not find it."""
    include = INCLUDE.get(name, ())
    excluded = {*UNUSUAL} - {*include} | {*EXCLUDE.get(name, ())}
    for number, case in enumerate(new_cases(base, runs, excluded, include), start=1):
        with ExitStack() as stack:
            for each in MUTATIONS[name]():
                stack.enter_context(each)
            failed = run_case(case)
        if failed is None:
            continue
        without = run_case(case)
        if without is None or without.kind != failed.kind:  # otherwise the failure is not due to the defect
            return number, failed
    return None


def _report(names: Sequence[str], runs: int) -> Iterator[str]:
    for name in names:
        found = search(name, runs)
        if found is None:
            yield f"{name:32} not found in {runs} runs"
        else:
            yield f"{name:32} {found[0]:5} runs: {found[1].message[:120]}"


if __name__ == "__main__":
    chosen = list(itertools.takewhile(lambda word: not word.isdigit(), sys.argv[1:])) or list(MUTATIONS)
    for line in _report(chosen, int(sys.argv[-1]) if sys.argv[-1].isdigit() else 2_000):
        print(line.splitlines()[0], flush=True)
