"""A ledger in the hands of a command that is no driver: claimed, so that every driver is fenced, and all that it had
named made visible (P2, P4). `discard-open` and `reset-offsets` begin with it.

A command reads no records. Where an object that was promised is lost, it says so and leaves it to a driver, which makes
it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sink_job.api.errors import ConfigurationError
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.thread_pools import pool
from sink_job.ledger import ownership
from sink_job.ledger.clocks import checked_now
from sink_job.ledger.fencing import ownership_checked_first
from sink_job.ledger.generations import open_object_ranges
from sink_job.ledger.orphan_cleanup import OrphanCleaner
from sink_job.ledger.publisher import PublishOutcome, publish_all
from sink_job.ledger.state import LedgerState, PartitionState, Record, apply
from sink_job.ledger.store import Intent, Ledger
from sink_job.ledger.takeover import take_over
from sink_job.partitioning.object_keys import object_key
from sink_job.s3 import S3Client

PUBLISHERS = 16


@dataclass(frozen=True, kw_only=True)
class LedgerAccess:
    """Who takes a ledger: `clock` gives ms since the epoch, `attempt` is unique to this process. `store_clock` gives
    the store's clock by its last answer, None where `clock` is not compared with it."""

    s3: S3Client
    root: str
    owner: ownership.Owner
    attempt: str
    clock: Callable[[], int]
    store_clock: Callable[[], int | None] = lambda: None

    @cached_property
    def ledger(self) -> Ledger:
        return Ledger(self.s3, self.root, self.attempt)

    def now(self) -> int:
        """The host's clock in ms. Raises ClockSkew when it is too far from the store's."""
        return checked_now(self.clock, self.store_clock, self.s3)


class LedgerSession:
    """A ledger under this command's claim. `state` is what it has decided so far."""

    def __init__(self, hands: LedgerAccess) -> None:
        """Claims it. Raises ClockSkew, OwnershipConflict, LedgerFenced when drivers keep winning, and what the store
        raises."""
        hands.now()
        ownership.claim_ledger(hands.s3, hands.root, hands.owner)
        self.s3 = hands.s3
        self.ledger = hands.ledger
        self._clock = hands.now
        self.state = take_over(self.ledger, lambda state: self._record(state, kind="claim"))

    def kept(self) -> AbstractContextManager[None]:
        """What fails inside is LedgerFenced where a driver has taken the ledger meanwhile."""
        return ownership_checked_first(self.ledger, lambda: self.state)

    def publish(self) -> int:
        """Makes all named objects visible, and acknowledges them; returns how many objects.

        Raises ConfigurationError when an object is lost, ObjectConflict when its key holds other content.
        """
        pending = list(self.state.pending.values())
        if not pending:
            return 0
        with pool(PUBLISHERS, "s3sink-publish") as publishers:
            outcomes = publish_all(self.s3, pending, publishers, self.state.pending)
        lost = [key for key, outcome in outcomes.items() if outcome is PublishOutcome.LOST]
        if lost:
            raise lost_upload_error(self.s3.bucket, lost)
        self.record(acknowledged=tuple(sorted(outcomes)))
        return len(pending)

    def record(self, **changes: Any) -> None:
        """Appends a record with these fields. Raises LedgerFenced when another driver has taken the ledger."""
        record = self._record(self.state, **changes)
        self.ledger.append(record)
        self.state = apply(self.state, record)

    def discard_open(self, **changes: Any) -> None:
        """Appends a record after which what is open now is named no more, then removes the bytes of it.

        First the intent says where its uploads are: whoever finds this half done removes the rest.
        """
        before = self.state
        ranges = open_object_ranges(before)
        if ranges:
            settings = tuple(sorted(before.settings.values()))
            clock = max(before.clock, self._clock())
            self.ledger.write_intent(Intent(before.epoch, 1, before.number + 1, clock, ranges, settings))
        self.record(**changes)
        for key, upload in sorted(uploads(before)):
            self.s3.abort(key, upload)
        self.s3.delete(sorted(before.staged() - self.state.staged()))
        self.clean_up()

    def clean_up(self) -> None:
        """Removes what the state does not name: ours, and nobody else's (P10)."""
        OrphanCleaner(self.s3, self.ledger, self.state.epoch).run(self.state, self.state.number)

    def _record(self, state: LedgerState, **changes: Any) -> Record:
        number = state.number + 1
        epoch = number if changes.get("kind") == "claim" else state.epoch
        given = {"kind": "round", "clock": max(state.clock, self._clock()), **changes}
        return Record(number=number, epoch=epoch, attempt=self.ledger.attempt, **given)


def uploads(state: LedgerState) -> Iterable[tuple[str, str]]:
    """Key and upload id of the open objects that have one."""
    shapings = {number: ObjectSettings.model_validate_json(text) for number, text in state.settings.items()}
    return {
        (_key(shapings[o.settings], TopicPartition.parse(name), o.path, o.first), o.upload)
        for name, p in state.partitions.items()
        for o in p.open
        if o.upload
    }


def changed(before: LedgerState, after: dict[str, PartitionState]) -> dict[str, PartitionState]:
    """Those of the partitions that differ."""
    return {name: p for name, p in after.items() if p != before.partitions.get(name)}


def lost_upload_error(bucket: str, keys: list[str]) -> ConfigurationError:
    """What is said of objects that were named, and whose uploads are gone."""
    return ConfigurationError(
        f"{len(keys):,} objects that the ledger has named are lost before they were visible, first s3://{bucket}/"
        f"{min(keys)}. Run the sink once (s3sink run SINK.yaml --until-caught-up, or state: Running): it makes them "
        "again from Kafka. Then try this again."
    )


def _key(shaping: ObjectSettings, tp: TopicPartition, path: str, first: int) -> str:
    return object_key(shaping, tp.topic, path, tp.partition, first)
