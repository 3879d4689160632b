"""What a driver works with, and what it is to reach: values, so that tests put other worlds in their place."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from sink_job.coordinator.committer import SNAPSHOT_INTERVAL_RECORDS
from sink_job.coordinator.hanging_transactions import HANGING_AFTER_MS
from sink_job.engine.kafka_admin import KafkaAdmin
from sink_job.engine.types import Engine
from sink_job.ledger.ownership import Owner
from sink_job.s3 import S3Settings

DISCOVERY_INTERVAL_MS = 30_000
"""How often new partitions and topics are looked for, and an idle driver looks whether it has been fenced."""


@dataclass(frozen=True, kw_only=True)
class CoordinatorContext:
    """What the driver works with. `clock` gives ms since the epoch; `attempt` is unique to this process. `budget`,
    `threads` and `bodies` are per task: bytes held back, uploaders, part bodies in memory. `grown`: budget and bodies
    by now, where there is more memory than at the start; each round asks. `snapshot_every` is in records of the ledger,
    `look_every` (ms) between two looks for new partitions, or at the ledger's head while idle; `stuck_after` (ms) is
    how long a transaction may stay open before that is told. `store_clock` gives the store's clock in ms by its last
    answer, None where the host's is not compared with it; `steady_clock` gives ms from an arbitrary start and is not
    affected when the host's clock is set. `stop` is set when the driver has to end, and pauses wait on it.
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
    snapshot_every: int = SNAPSHOT_INTERVAL_RECORDS
    discovery_interval_ms: int = DISCOVERY_INTERVAL_MS
    hanging_after_ms: int = HANGING_AFTER_MS
    store_clock: Callable[[], int | None] = lambda: None
    steady_clock: Callable[[], int] | None = None
    stop: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True, kw_only=True)
class StopCondition:
    """When to end: never, or when the log ends seen at the start are recorded; `publish_open` then closes what is open,
    and alone it does only that: nothing more is read, and where there is no ledger none is begun.

    `take_over` takes a place or ledger from its owner, `start_new_ledger` goes on where a ledger was lost.
    """

    until_caught_up: bool = False
    publish_open: bool = False
    take_over: bool = False
    start_new_ledger: bool = False

    @property
    def ends(self) -> bool:
        """Whether the run is over some time by itself."""
        return self.until_caught_up or self.publish_open
