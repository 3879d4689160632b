"""When a sink that failed is tried again: longer each time, spread by its uid, and forgotten after a stable spell.

The pause before try n + 1 is n² + n minutes, at most an hour: 2, 6, 12, 20, 30, 42, 56, 60. What Kubernetes or the
network did is tried again at once the first time, since most of it is over by then.
"""

from __future__ import annotations

import hashlib

from s3sink_operator.types import FailureCategory

MINUTE = 60_000
MAX_PAUSE = 60 * MINUTE
MIN_STABLE = 10 * MINUTE
"""A driver that runs for less than this has not shown that it can."""

JITTER = 0.1


def pause_ms(failures: int, *, kind: FailureCategory, uid: str = "") -> int:
    """Milliseconds to wait after so many failures in a row (1 or more), with up to a tenth more by `uid`."""
    n = failures - 1 if kind is FailureCategory.INFRASTRUCTURE else failures
    plain = min(MAX_PAUSE, (n * n + n) * MINUTE)
    return plain + int(plain * JITTER * uid_fraction(uid))


def left_ms(next_try: int | None, now: int) -> int | None:
    """Milliseconds until the next try; None if its time has come, or is further off than any: a clock was wrong."""
    left = 0 if next_try is None else next_try - now
    return left if 0 < left <= MAX_PAUSE * (1 + JITTER) else None


def stable_after_ms(failures: int, *, kind: FailureCategory) -> int:
    """How long a driver must have run for its failures to be forgotten: as long as the last pause."""
    return max(MIN_STABLE, pause_ms(failures, kind=kind))


def failures_after(before: int, *, kind: FailureCategory, ran_ms: int) -> int:
    """Failures in a row, after one more, of a driver that had run for `ran_ms`."""
    stable = before > 0 and ran_ms >= stable_after_ms(before, kind=kind)
    return 1 if stable else before + 1


def uid_fraction(uid: str) -> float:
    """A number from 0 to 1 that is the same for a sink whenever it is asked."""
    return int.from_bytes(hashlib.sha256(uid.encode()).digest()[:4], "big") / 0xFFFFFFFF if uid else 0.0
