"""Whether the driver lives: a heartbeat, beaten by whatever shows that work goes on.

An open port proves nothing and a slow round is no fault: a round of a large backlog takes as long as it takes. So the
heart beats with every look at Kafka, every step of a round, and every task that ends inside of one; only silence of all
of them, for longer than Kafka's and S3's own patience could explain, means stuck.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from sink_job.api.report import Failure
from sink_job.api.spec import Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.committer import Committer
from sink_job.coordinator.progress import Progress
from sink_job.ledger.state import LedgerState
from sink_job.writer.partition_writer import TaskResult

HEARTBEAT_TIMEOUT_S = 900.0
"""Longest silence of a driver that lives: one task's reads and uploads, with all their retries, take less."""


class Heartbeat:
    """The last sign of life. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._last = clock()
        self._seen: object = None

    def beat(self) -> None:
        with self._lock:
            self._last = self._clock()

    def observed(self, progress: object) -> None:
        """Beats when `progress` is another one than the last time."""
        with self._lock:
            if progress != self._seen:
                self._seen, self._last = progress, self._clock()

    def silence_s(self) -> float:
        """Seconds since the last sign of life."""
        with self._lock:
            return self._clock() - self._last


class LiveTracker(Progress):
    """A tracker whose every entry is a heartbeat."""

    def __init__(self, sink: Sink, clock: Callable[[], int], *, slots: int, heart: Heartbeat) -> None:
        super().__init__(sink, clock, slots=slots)
        self.heart = heart

    def claimed(self, state: LedgerState) -> None:
        self.heart.beat()
        super().claimed(state)

    def recovered(self, commits: Committer | None = None) -> None:
        self.heart.beat()
        super().recovered(commits)

    def sees(self, ends: Mapping[TopicPartition, int]) -> None:
        self.heart.beat()
        super().log_ends(ends)

    def round_done(
        self,
        results: Mapping[TopicPartition, TaskResult],
        commits: Committer,
        *,
        started: int,
        recorded: int,
        ended: int,
    ) -> None:
        self.heart.beat()
        super().round_completed(results, commits, started=started, recorded=recorded, ended=ended)

    def ended(self, failure: Failure | None) -> None:
        self.heart.beat()
        super().ended(failure)
