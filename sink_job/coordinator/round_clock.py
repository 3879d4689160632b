"""The round clock: the host's clock, which goes back only where no object is open, restarts included."""

from __future__ import annotations

from sink_job.coordinator.progress import Progress
from sink_job.ledger.clocks import HostClock


class RoundClock:
    """The clock of one driver's rounds. `ms` is the time of the current round, at first that of the ledger."""

    def __init__(self, host: HostClock, progress: Progress, ledger_ms: int) -> None:
        """Raises ClockSkew as `advance`."""
        self.ms = ledger_ms
        self._host = host
        self._progress = progress
        self.advance()

    def advance(self) -> int:
        """Advances to the host's clock, unless that is behind; returns the time in ms.

        Raises ClockSkew when the host's clock differs too much from the store's.
        """
        self.ms = max(self.ms, self._host.now())
        self._progress.clock_jumps(self._host.jumps)
        return self.ms

    def to_set_back(self, ledger_ms: int) -> int | None:
        """As `HostClock.to_set_back`."""
        return self._host.to_set_back(ledger_ms)

    def set_back(self, ms: int) -> None:
        """Sets the clock back. No object may be open: offset ranges and clocks identify their records (P2)."""
        self.ms = ms
