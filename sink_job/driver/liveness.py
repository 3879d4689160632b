"""Liveness of the driver: a heartbeat for `/healthz`.

An open port does not prove progress, and a slow round is not a failure: a round can take long after a backlog. Each
change of `Progress` beats: after a request to Kafka and after the steps of a round. So does each completed task of a
round. The driver is unhealthy after HEARTBEAT_TIMEOUT_S without a beat. This time is longer than all timeouts and
retries of Kafka and S3 together.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

HEARTBEAT_TIMEOUT_S = 900.0
"""Maximum time between two beats of a healthy driver, in s. One task with all its retries takes less."""
QUIET_S = HEARTBEAT_TIMEOUT_S / 4
"""A longer time without a beat is reported: most drivers beat every few seconds."""


class Heartbeat:
    """The time of the last beat. Thread-safe. `clock` returns seconds and never goes backwards."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._last = clock()
        self._observed: object = None

    def beat(self) -> None:
        """Records the current time."""
        with self._lock:
            self._last = self._clock()

    def observed(self, progress: object) -> None:
        """Beats if `progress` differs from the previous call."""
        with self._lock:
            if progress != self._observed:
                self._observed, self._last = progress, self._clock()

    def silence_s(self) -> float:
        """Seconds since the last beat."""
        with self._lock:
            return self._clock() - self._last
