"""The clocks of a sink: the host's, the store's and the ledger's.

The host's clock becomes the round clock, and the round clock does not go back while anything is open. So a clock that
is ahead once would stop the schedule, `maxOpenTime` and Wallclock paths until real time has caught up. The host's clock
is therefore compared with the store's before it is used, and a ledger's clock that is ahead is set back where nothing
is open.
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

MAX_CLOCK_SKEW_MS = 300_000
"""How far the host's clock may be from the store's, and the ledger's ahead of the host's. S3 refuses requests at 15
minutes; a store's `Date` has whole seconds and may be two seconds old."""

AHEAD_MS = 60_000
"""How far a ledger's clock may be ahead of the host's before that is reported."""

JUMP_MS = 5_000
"""Difference between the host's clock and its steady clock, from one comparison to the next, that is reported."""

Clock = Callable[[], int]

_log = logging.getLogger(__name__)


class ClockSource(Protocol):
    """The store, as far as its clock matters."""

    @property
    def url(self) -> str: ...
    def check_access(self) -> None: ...


def checked_now(host: Clock, store_clock: Callable[[], int | None], store: ClockSource) -> int:
    """The host's clock in ms; `store_clock` gives the store's by its last answer, None where it is not compared.

    Raises ClockSkew when they are further apart than `CLOCK_BOUND_MS`, also after the store was asked again: its last
    answer may be from before the host was suspended.
    """
    now = host()
    if not _apart(now, store_clock()):
        return now
    with suppress(ClockSkew):
        store.check_access()
    now, there = host(), store_clock()
    if there is None or not _apart(now, there):
        return now
    raise ClockSkew(
        f"this host's clock is at {format_time(now)}, the clock of {store.url} at {format_time(there)}: they are "
        f"{abs(now - there) // 1000:,} s apart, and the sink allows {MAX_CLOCK_SKEW_MS // 1000} s. Nothing was written "
        "with this clock. Synchronize the clock that is wrong (NTP, chrony) and start again."
    )


def _apart(now: int, there: int | None) -> bool:
    return there is not None and abs(now - there) > MAX_CLOCK_SKEW_MS


class HostClock:
    """A driver's reading of the host's clock: compared with the store's, and with a clock that never jumps."""

    def __init__(
        self, host: Clock, store_clock: Callable[[], int | None], store: ClockSource, steady: Clock | None = None
    ) -> None:
        """`steady` gives ms from an arbitrary start and is not affected when the host's clock is set; None: jumps are
        not reported."""
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
        """The host's clock, where a ledger's clock has to be set back to it; None where it has not. Only a host's clock
        that the store's confirms is reason enough; otherwise rounds wait at the ledger's clock.

        Raises ClockSkew when the host's clock is too far from the store's.
        """
        host = self.now()
        ahead = ledger - host
        if ahead > MAX_CLOCK_SKEW_MS and self._store_clock() is not None:
            return host
        if ahead > AHEAD_MS:
            _log.warning(
                "the ledger's clock is %d s ahead of this host's: what is closed by the clock waits so long",
                ahead // 1000,
            )
        return None

    def _report_jump(self) -> None:
        if self._steady is None:
            return
        now = self._host()
        ahead = now - self._steady()
        before, self._ahead = self._ahead, ahead
        if before is None or abs(ahead - before) <= JUMP_MS:
            return
        self.jumps += 1
        _log.warning(
            "this host's clock jumped by %+.1f s: it is at %s and should be at %s by the time that has passed. "
            "Schedules, maxOpenTime and Wallclock paths follow it",
            (ahead - before) / 1000,
            format_time(now),
            format_time(now - (ahead - before)),
        )


def without_clock(partitions: Mapping[TopicPartition, PartitionState]) -> dict[TopicPartition, PartitionState]:
    """Those of these topic-partitions that hold values of the clock, without them. Nothing may be open: an object's
    members are found by offset ranges and clocks, and equal clocks merge (P2)."""
    if any(p.open for p in partitions.values()):
        raise ValueError("the ledger's clock is set back only where nothing is open")
    fresh = {
        tp: msgspec.structs.replace(
            p,
            open_records=0,
            last_time=None,
            interval_start=None,
            current_path=None,
            next_schedule=None,
            path_clock=None,
        )
        for tp, p in partitions.items()
    }
    return {tp: p for tp, p in fresh.items() if p != partitions[tp]}


def report_set_back(before: int, now: int) -> None:
    """Logs that the ledger's clock was set back, in ms."""
    _log.warning(
        "the ledger's clock was at %s, %d s ahead of this host's and the store's: what was open has been closed, and "
        "the ledger's clock is at %s from now on",
        format_time(before),
        (before - now) // 1000,
        format_time(now),
    )


def format_time(ms: int) -> str:
    """A time as people and logs read it (UTC)."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"
