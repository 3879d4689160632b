"""Counters of S3 requests: for `/metrics`, the benchmarks (requests per GB), and tests that prove the absence of
requests."""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["RequestMetrics", "Usage"]


@dataclass(frozen=True)
class Usage:
    """A snapshot of the counters.

    `requests`: attempts, answered or lost, by S3's operation name (`UploadPart`).
    `retries`: the attempts among them that repeat an earlier one.
    `failures`: failed attempts, by S3's error code or the name of the transport's exception.
    `bytes_sent` and `bytes_received`: bytes of content, without headers.
    """

    requests: Mapping[str, int] = field(default_factory=dict)
    retries: Mapping[str, int] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)
    bytes_sent: int = 0
    bytes_received: int = 0

    def __sub__(self, earlier: "Usage") -> "Usage":
        """The requests between two snapshots."""
        return Usage(
            requests=_minus(self.requests, earlier.requests),
            retries=_minus(self.retries, earlier.retries),
            failures=_minus(self.failures, earlier.failures),
            bytes_sent=self.bytes_sent - earlier.bytes_sent,
            bytes_received=self.bytes_received - earlier.bytes_received,
        )

    def __add__(self, other: "Usage") -> "Usage":
        """The requests of two processes together."""
        return Usage(
            requests=Counter(self.requests) + Counter(other.requests),
            retries=Counter(self.retries) + Counter(other.retries),
            failures=Counter(self.failures) + Counter(other.failures),
            bytes_sent=self.bytes_sent + other.bytes_sent,
            bytes_received=self.bytes_received + other.bytes_received,
        )


def _minus(later: Mapping[str, int], earlier: Mapping[str, int]) -> dict[str, int]:
    return {kind: n - earlier.get(kind, 0) for kind, n in later.items() if n != earlier.get(kind, 0)}


class RequestMetrics:
    """The counters of one client. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[str] = Counter()
        self._retries: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self._sent = 0
        self._received = 0

    def request(self, kind: str, *, sent: int = 0, again: bool = False) -> None:
        """Counts an attempt of a request with a body of `sent` bytes; `again`: it is a retry."""
        with self._lock:
            self._requests[kind] += 1
            self._sent += sent
            if again:
                self._retries[kind] += 1

    def failed(self, code: str) -> None:
        """Counts a failed attempt."""
        with self._lock:
            self._failures[code] += 1

    def received(self, size: int) -> None:
        """Counts `size` downloaded bytes."""
        with self._lock:
            self._received += size

    def snapshot(self) -> Usage:
        """The current counts."""
        with self._lock:
            return Usage(
                requests=dict(self._requests),
                retries=dict(self._retries),
                failures=dict(self._failures),
                bytes_sent=self._sent,
                bytes_received=self._received,
            )
