"""An exclusive ledger session of a command: the command claims the ledger, which fences every driver, and publishes the
closed objects (P2, P4). `discard-open`, `reset-offsets` and `forget-schema` use it.

A command does not read from Kafka. If a closed object is lost, the command fails; a driver can rebuild the object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sink_job.api.errors import ConfigurationError
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.thread_pools import pool
from sink_job.ledger import ownership
from sink_job.ledger.clocks import checked_now
from sink_job.ledger.dead_letters import objects_for_topics
from sink_job.ledger.first_claim.checks import check_first_start
from sink_job.ledger.generations import open_object_ranges
from sink_job.ledger.open_uploads import open_uploads
from sink_job.ledger.orphan_cleanup import OrphanCleaner
from sink_job.ledger.publisher import PublishOutcome, publish_all
from sink_job.ledger.state import ClosedObject, LedgerState, PartitionState, Record
from sink_job.ledger.store import Intent, Ledger
from sink_job.ledger.takeover import ownership_checked_first, take_over
from sink_job.ledger.transitions import apply
from sink_job.s3 import S3Client

PUBLISHERS = 16


@dataclass(frozen=True, kw_only=True)
class LedgerAccess:
    """Access of one process to a ledger.

    `root` is the ledger's prefix, `attempt` an id that is unique to this process. `clock` returns ms since the epoch.
    `store_clock` returns the store's clock in ms by its last response, or None to skip the comparison with `clock`.
    `succession`: the hand-over from a previous owner of the ledger.
    """

    s3: S3Client
    root: str
    owner: ownership.Owner
    attempt: str
    clock: Callable[[], int]
    store_clock: Callable[[], int | None] = lambda: None
    succession: ownership.Succession | None = None

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger at `root`."""
        return Ledger(self.s3, self.root, self.attempt)

    def now(self) -> int:
        """The host's clock in ms. Raises ClockSkew when it is too far from the store's."""
        return checked_now(self.clock, self.store_clock, self.s3)


class LedgerSession:
    """A ledger that this command has claimed. `state` is the ledger's current state."""

    def __init__(self, access: LedgerAccess) -> None:
        """Claims the ledger. Raises ClockSkew, OwnershipConflict, LedgerFenced if drivers prevent the claim,
        ConfigurationError as `check_first_start`, and the errors of the store."""
        access.now()
        self.former = ownership.claim_ledger(access.s3, access.root, access.owner, succession=access.succession)
        """The previous owners of the ledger."""
        self.s3 = access.s3
        self.ledger = access.ledger
        self._clock = access.now
        self.state = take_over(self.ledger, self._claim)
        if ownership.is_handed_over(access.s3, access.root, access.owner):  # after the check above, before the claim
            ownership.claim_ledger(access.s3, access.root, access.owner, succession=access.succession)

    def ownership_checked(self) -> AbstractContextManager[None]:
        """Converts errors in the block into LedgerFenced if a driver has claimed the ledger meanwhile."""
        return ownership_checked_first(self.ledger, lambda: self.state)

    def publish(self) -> int:
        """Publishes and acknowledges all pending objects; returns their number.

        Raises ConfigurationError when an object is lost or a dead letter may not be in its topic, ObjectConflict when
        its key holds a different object.
        """
        pending = list(self.state.pending.values())
        if not pending:
            return 0
        for_topics = objects_for_topics(self.state)
        if for_topics:
            raise unproduced_error(for_topics)
        with pool(PUBLISHERS, "s3sink-publish") as publishers:
            outcomes = publish_all(self.s3, pending, publishers, self.state.pending)
        lost = [key for key, outcome in outcomes.items() if outcome is PublishOutcome.LOST]
        if lost:
            raise lost_upload_error(self.s3.bucket, lost)
        self.record(acknowledged=tuple(sorted(outcomes)))
        return len(pending)

    def record(self, **changes: Any) -> None:
        """Appends a record with these fields. Raises LedgerFenced when a driver has claimed the ledger."""
        record = self._record(self.state, **changes)
        self.ledger.append(record)
        self.state = apply(self.state, record)

    def discard_open(self, **changes: Any) -> None:
        """Appends a record without the uploads and staged data of the open objects, then removes these.

        Before the record an intent is written. If the command is interrupted after the record, the next clean-up finds
        the uploads through the intent.
        """
        before = self.state
        ranges = open_object_ranges(before)
        if ranges:
            settings = tuple(sorted(before.settings.values()))
            clock = max(before.clock, self._clock())
            self.ledger.write_intent(Intent(before.epoch, 1, before.number + 1, clock, ranges, settings))
        self.record(**changes)
        partitions = {TopicPartition.parse(name): p for name, p in before.partitions.items()}
        for key, upload in sorted(open_uploads(partitions, before.settings)):
            self.s3.abort(key, upload)
        self.s3.delete(sorted(before.staged() - self.state.staged()))
        self.clean_up()

    def clean_up(self) -> None:
        """Removes the ledger's orphaned uploads and staging objects (P10)."""
        OrphanCleaner(self.s3, self.ledger, self.state.epoch).run(self.state, self.state.number)

    def _claim(self, state: LedgerState) -> Record:
        check_first_start(self.ledger, state)
        return self._record(state, kind="claim")

    def _record(self, state: LedgerState, **changes: Any) -> Record:
        number = state.number + 1
        epoch = number if changes.get("kind") == "claim" else state.epoch
        fields = {"kind": "round", "clock": max(state.clock, self._clock()), **changes}
        return Record(number=number, epoch=epoch, attempt=self.ledger.attempt, **fields)


def changed(before: LedgerState, after: dict[str, PartitionState]) -> dict[str, PartitionState]:
    """The partitions of `after` that differ from those of `before`."""
    return {name: p for name, p in after.items() if p != before.partitions.get(name)}


def unproduced_error(objects: Mapping[str, Sequence[ClosedObject]]) -> ConfigurationError:
    """The error for closed dead-letter objects by topic: a command does not produce to Kafka."""
    topic, first = min((topic, mine[0]) for topic, mine in objects.items())
    return ConfigurationError(
        f"dead letters of {first.topic_partition} from offset {first.first} on may not be in the topic {topic} yet: a "
        "driver ended before it had produced them or before the ledger knew. Run the sink once to produce what is "
        "missing (s3sink run SINK.yaml --until-caught-up, or state: Running), then repeat this command."
    )


def lost_upload_error(bucket: str, keys: list[str]) -> ConfigurationError:
    """The error for closed objects whose uploads are missing."""
    return ConfigurationError(
        f"{len(keys):,} closed objects of the ledger were lost before they were visible: their uploads are missing. "
        f"The first is s3://{bucket}/{min(keys)}. Run the sink once to rebuild them from Kafka (s3sink run SINK.yaml "
        "--until-caught-up, or state: Running), then repeat this command."
    )
