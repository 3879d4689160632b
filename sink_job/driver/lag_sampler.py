"""Samples the lag beside the rounds: log ends during long rounds, and timestamps of the first records behind.

It runs in a thread of its own and takes no time of a round. Its requests are bounded: one for the log ends, and one
batch for each topic-partition whose committed offset has moved. A failure only makes the age of the lag unknown.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Final, Protocol, Self

from sink_job.api.errors import SinkError
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.progress import Progress

INTERVAL_S: Final = 10.0
"""Time between two samples, in s."""
FIRST_INTERVAL_S: Final = 1.0
"""The same before the first sample, while the driver starts."""
READ_TIMEOUT_MS: Final = 3_000
"""Maximum time of a sample's request for timestamps, in ms; the rest follows with the next sample."""
MAX_PARTITIONS: Final = 1_000
"""Topic-partitions whose timestamp a sample requests at most."""

_log = logging.getLogger(__name__)


class RecordTimeReader(Protocol):
    """`sink_job.kafka.record_times.RecordTimes`. Raises SinkError."""

    def read(self, offsets: Mapping[TopicPartition, int], *, timeout_ms: int) -> Mapping[TopicPartition, int]: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...


class LagSampler:
    """Samples while the context is active. `clock` returns ms since 1970-01-01 UTC."""

    def __init__(
        self,
        progress: Progress,
        end_offsets: Callable[[Sequence[TopicPartition]], Mapping[TopicPartition, int]],
        times: RecordTimeReader,
        clock: Callable[[], int],
        *,
        interval_s: float = INTERVAL_S,
    ) -> None:
        self._progress = progress
        self._end_offsets = end_offsets
        self._times = times
        self._clock = clock
        self._interval_s = interval_s
        self._is_failing = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="s3sink-lag", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        try:
            self._times.stop()
        except Exception as failed:  # the JVM may be gone
            _log.debug("while closing: %s", failed)
        self._thread.join(READ_TIMEOUT_MS / 1000)

    def sample(self) -> bool:
        """Takes one sample; returns whether the log ends are known, which is so from the first round on. Raises
        SinkError."""
        now, observed = self._clock(), self._progress.log_ends_at
        partitions, requested = self._progress.unsampled_lag(MAX_PARTITIONS)
        if observed is None or not partitions:
            return False
        if now - observed >= self._interval_s * 1000:  # a long round
            self._progress.observed_log_ends(self._end_offsets(list(partitions)))
            partitions, requested = self._progress.unsampled_lag(MAX_PARTITIONS)
        times = self._times.read(requested, timeout_ms=READ_TIMEOUT_MS)
        self._progress.lag_sampled(partitions, requested, times, now=now)
        return True

    def _run(self) -> None:
        interval_s = min(self._interval_s, FIRST_INTERVAL_S)
        while not self._stop.wait(interval_s):
            try:
                interval_s = self._interval_s if self.sample() else interval_s
                self._is_failing = False
            except Exception as error:
                if not self._stop.is_set() and not self._is_failing:
                    level = logging.WARNING if isinstance(error, SinkError) else logging.DEBUG
                    _log.log(level, "the age of the lag is unknown: %s", error)
                self._is_failing, interval_s = True, self._interval_s
        try:
            self._times.close()
        except Exception as error:
            _log.debug("while closing: %s", error)
