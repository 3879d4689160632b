"""Dependencies and stop condition of the coordinator, injected so that tests can replace them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from sink_job.coordinator.hanging_transactions import HANGING_AFTER_MS
from sink_job.engine.dead_letter_topic import DeadLetterTopic
from sink_job.engine.kafka_admin import KafkaAdmin
from sink_job.engine.types import Engine
from sink_job.ledger.first_claim.previous_writer import PreviousWriter
from sink_job.ledger.ownership import Owner
from sink_job.registry.base import SchemaRegistry
from sink_job.s3 import S3Settings, StoreAdvice

SNAPSHOT_INTERVAL_RECORDS = 100

DISCOVERY_INTERVAL_MS = 30_000
"""Interval in ms at which the coordinator discovers topics and partitions, and compares the group's offsets."""

HEAD_CHECK_INTERVAL_MS = 600_000
"""Interval in ms at which an idle coordinator checks the ledger's head. Correctness does not depend on it: each effect
has a check of its own (P4). It bounds the time until an idle driver that was fenced ends."""


@dataclass(frozen=True, kw_only=True)
class CoordinatorContext:
    """Dependencies of the coordinator.

    `clock` returns ms since the epoch; `attempt` is unique to this process. Per task: `budget` (bytes buffered before
    they are spilled), `threads` (uploads), `part_buffers` (part buffers in memory). `current_task_memory` returns
    budget and part buffers after the container's memory has changed, else None; each round calls it. `container` is
    the current memory of a container with tasks in bytes, and how many tasks share it; None if it is not limited.
    `between_rounds` is called before each poll of log ends. `snapshot_every` is in records of the ledger.
    `discovery_interval_ms` is the interval of topic discovery, `head_check_interval_ms` that of head checks while idle.
    `hanging_after_ms` is the age at which an open transaction is reported as hanging. `store_clock` returns the store's
    clock in ms as of its last response, None if the host's clock is not compared with it. `steady_clock` returns ms
    from an arbitrary start; setting the host's clock does not affect it. `stop` is set when the driver has to end;
    pauses wait on it. With `publish_at_stop` it publishes its open objects before it ends. `registry` has the schemas
    of `spec.format.registry` and `spec.format.schema`. `dead_letter_topic` makes a producer of dead letters by its name
    and whether it uses transactions. `previous`: a first claim continues this writer. `store_check` returns the result
    of `sink_job.s3.check_store`, which may have started before the coordinator; None: the coordinator makes it.
    `held_topics` returns those of the given topics that no round may read yet, at once; each poll of log ends calls it.
    """

    s3: S3Settings
    admin: KafkaAdmin
    engine: Engine
    clock: Callable[[], int]
    owner: Owner
    attempt: str
    budget: int = 128 << 20
    threads: int = 6
    part_buffers: int = 3
    current_task_memory: Callable[[], tuple[int, int] | None] = lambda: None
    container: Callable[[], tuple[int, int] | None] = lambda: None
    between_rounds: Callable[[], None] = lambda: None
    snapshot_every: int = SNAPSHOT_INTERVAL_RECORDS
    discovery_interval_ms: int = DISCOVERY_INTERVAL_MS
    head_check_interval_ms: int = HEAD_CHECK_INTERVAL_MS
    hanging_after_ms: int = HANGING_AFTER_MS
    store_clock: Callable[[], int | None] = lambda: None
    steady_clock: Callable[[], int] | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    publish_at_stop: threading.Event = field(default_factory=threading.Event)
    registry: SchemaRegistry | None = None
    dead_letter_topic: Callable[[str, bool], DeadLetterTopic] | None = None
    previous: PreviousWriter | None = None
    store_check: Callable[[], Sequence[StoreAdvice]] | None = None
    held_topics: Callable[[Collection[str]], Collection[str]] = lambda topics: ()


@dataclass(frozen=True, kw_only=True)
class StopCondition:
    """When the run ends: never, or with `until_caught_up` after the records up to the log ends at the start.

    `publish_open` then also closes and publishes the open objects. `publish_open` alone reads nothing and does only
    that; it creates no ledger. `take_over` takes a prefix or a ledger from any owner, `take_over_from` from this
    one, after fencing it. `start_new_ledger` continues
    where a ledger was lost.
    """

    until_caught_up: bool = False
    publish_open: bool = False
    take_over: bool = False
    take_over_from: Owner | None = None
    start_new_ledger: bool = False

    @property
    def ends(self) -> bool:
        """Whether the run has an end of its own."""
        return self.until_caught_up or self.publish_open
