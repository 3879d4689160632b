"""The back-off of a failed sink: it grows with each failure, has jitter by uid, and is reset after a stable run.

The pause before attempt n + 1 is n² + n minutes, at most an hour: 2, 6, 12, 20, 30, 42, 56, 60. A failure that needs no
action of the user is retried after 10 minutes at the latest, since its cause ends without a signal to the operator. The
first failure of the infrastructure is retried at once, since most of these are transient.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from s3sink_operator.types import FailureCategory

MINUTE = 60_000
MAX_PAUSE: Final[Mapping[FailureCategory, int]] = {
    FailureCategory.USER: 60 * MINUTE,
    FailureCategory.INFRASTRUCTURE: 9 * MINUTE,
    FailureCategory.SCHEDULING: 9 * MINUTE,
}
"""The longest pause in ms, without jitter. With jitter, 9 minutes stay below 10."""
MIN_STABLE = 10 * MINUTE
"""Minimum run time after which a driver counts as stable, in ms."""

JITTER = 0.1


def pause_ms(failures: int, *, kind: FailureCategory, uid: str = "") -> int:
    """The pause in ms after this many consecutive failures (1 or more), plus up to 10 % by `uid`."""
    n = failures - 1 if kind is FailureCategory.INFRASTRUCTURE else failures
    plain = min(MAX_PAUSE[kind], (n * n + n) * MINUTE)
    return plain + int(plain * JITTER * uid_fraction(uid))


def left_ms(next_try: int | None, now: int) -> int | None:
    """Milliseconds until the next attempt; None if it is due, or too far in the future because of a wrong clock."""
    left = 0 if next_try is None else next_try - now
    return left if 0 < left <= max(MAX_PAUSE.values()) * (1 + JITTER) else None


def stable_after_ms(failures: int, *, kind: FailureCategory) -> int:
    """The run time in ms after which failures are reset: as long as the last pause."""
    return max(MIN_STABLE, pause_ms(failures, kind=kind))


def failures_after(before: int, *, kind: FailureCategory, ran_ms: int) -> int:
    """Consecutive failures including a new one, of a driver that ran for `ran_ms`."""
    stable = before > 0 and ran_ms >= stable_after_ms(before, kind=kind)
    return 1 if stable else before + 1


def uid_fraction(uid: str) -> float:
    """A number from 0 to 1, constant for a uid."""
    return int.from_bytes(hashlib.sha256(uid.encode()).digest()[:4], "big") / 0xFFFFFFFF if uid else 0.0
