"""The clocks of a sink: the host's, the store's and the ledger's.

The host's clock becomes the round clock. The round clock never goes back while objects are open: one reading that is
ahead would stop the schedule, `maxOpenTime` and Wallclock paths until real time has caught up. Therefore the host's
clock is compared with the store's before use, and a ledger's clock that is ahead is set back when no object is open.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from sink_job.api.errors import ClockSkew
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.state import PartitionState
from sink_job.rotation.types import RotationState

MAX_CLOCK_SKEW_MS = 300_000
"""Maximum difference in ms between the host's clock and the store's, and maximum lead of the ledger's clock over the
host's. S3 rejects requests with a difference of 15 minutes. A store's `Date` header has a resolution of a second and
can be two seconds old."""

AHEAD_MS = 60_000
"""Lead of the ledger's clock over the host's, in ms, above which a warning is logged."""

JUMP_MS = 5_000
"""Change in ms of the difference between the host's clock and its monotonic clock, above which a jump is logged."""

Clock = Callable[[], int]

_log = logging.getLogger(__name__)


class ClockSource(Protocol):
    """The store as a source of time."""

    @property
    def url(self) -> str: ...
    def check_access(self) -> None: ...


def checked_now(host: Clock, store_clock: Callable[[], int | None], store: ClockSource) -> int:
    """The host's clock in ms. `store_clock` returns the store's clock in ms by its last response, or None to skip the
    comparison.

    Raises ClockSkew when the difference exceeds `MAX_CLOCK_SKEW_MS`, also by a new response of the store: its last
    response may be older than a suspension of the host.
    """
    now = host()
    if not _is_skewed(now, store_clock()):
        return now
    with suppress(ClockSkew):
        store.check_access()
    now, store_now = host(), store_clock()
    if store_now is None or not _is_skewed(now, store_now):
        return now
    raise ClockSkew(
        f"this host's clock is at {format_time(now)}, the clock of {store.url} at {format_time(store_now)}: they are "
        f"{abs(now - store_now) // 1000:,} s apart, and the sink allows {MAX_CLOCK_SKEW_MS // 1000} s. Nothing was "
        "written with this clock. Synchronize the clock that is wrong (NTP, chrony) and start again."
    )


def _is_skewed(now: int, store_now: int | None) -> bool:
    return store_now is not None and abs(now - store_now) > MAX_CLOCK_SKEW_MS


class HostClock:
    """The host's clock, checked against the store's clock and a monotonic clock."""

    def __init__(
        self, host: Clock, store_clock: Callable[[], int | None], store: ClockSource, steady: Clock | None = None
    ) -> None:
        """`steady` is a monotonic clock: ms since an arbitrary start, unaffected by changes of the host's clock. None:
        jumps are not logged."""
        self.jumps = 0
        self._host = host
        self._store_clock = store_clock
        self._store = store
        self._steady = steady
        self._ahead: int | None = None

    def now(self) -> int:
        """The host's clock in ms. Raises ClockSkew when it is too far from the store's."""
        self._report_jump()
        return checked_now(self._host, self._store_clock, self._store)

    def to_set_back(self, ledger: int) -> int | None:
        """The host's clock in ms if the ledger's clock `ledger` (ms) must be set back to it, else None.

        The ledger's clock is set back only if the store confirms the host's clock. Otherwise the rounds wait for the
        ledger's clock. Raises ClockSkew when the host's clock is too far from the store's.
        """
        host = self.now()
        ahead = ledger - host
        if ahead > MAX_CLOCK_SKEW_MS and self._store_clock() is not None:
            return host
        if ahead > AHEAD_MS:
            _log.warning(
                "the ledger's clock is %d s ahead of this host's: rotation by the clock is delayed by this time",
                ahead // 1000,
            )
        return None

    def _report_jump(self) -> None:
        if self._steady is None:
            return
        now = self._host()
        ahead = now - self._steady()
        previous, self._ahead = self._ahead, ahead
        if previous is None or abs(ahead - previous) <= JUMP_MS:
            return
        self.jumps += 1
        _log.warning(
            "this host's clock jumped by %+.1f s: it is at %s and should be at %s by the monotonic clock. "
            "Schedules, maxOpenTime and Wallclock paths follow the host's clock",
            (ahead - previous) / 1000,
            format_time(now),
            format_time(now - (ahead - previous)),
        )


def without_clock(partitions: Mapping[TopicPartition, PartitionState]) -> dict[TopicPartition, PartitionState]:
    """The topic-partitions whose state holds clock values, with these values removed.

    Raises ValueError when a topic-partition has open objects: source ranges with equal path clocks merge (P2).
    """
    if any(p.open for p in partitions.values()):
        raise ValueError("the ledger's clock cannot be set back while objects are open")
    cleared = {
        tp: msgspec.structs.replace(p, rotation=RotationState(next=p.next, committable=p.committable), path_clock=None)
        for tp, p in partitions.items()
    }
    return {tp: p for tp, p in cleared.items() if p != partitions[tp]}


def report_set_back(before: int, now: int) -> None:
    """Logs that the ledger's clock was set back; both in ms."""
    _log.warning(
        "the ledger's clock was at %s, %d s ahead of this host's and the store's: all open objects were closed, and "
        "the ledger's clock was set back to %s",
        format_time(before),
        (before - now) // 1000,
        format_time(now),
    )


def format_time(ms: int) -> str:
    """A time in ms as ISO 8601 text (UTC)."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"
