"""The load of a soak: bursts to more and more partitions, then to fewer; pauses in which Spark's workers end."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from devtools.chaos.load import Burst

PAUSE_S = 80.0
"""Longer than the minute after which Spark ends idle Python workers."""


@dataclass(frozen=True)
class Phase:
    """`burst` over `seconds`; a pause if it is None."""

    seconds: float
    burst: Burst | None


def phases(rng: random.Random, partitions: int, rate: int) -> Iterator[Phase]:
    """Phases without end, of about `rate` records a second. The number of active partitions doubles up to
    `partitions`, halves down to one, and then there is a pause."""
    while True:
        widths = [1]
        while widths[-1] < partitions:
            widths.append(min(2 * widths[-1], partitions))
        for width in [*widths, *reversed(widths)]:
            seconds = rng.uniform(15, 45)
            active = tuple(sorted(rng.sample(range(partitions), width)))
            yield Phase(seconds, Burst(records=int(rate * seconds), seconds=seconds, active=active))
        yield Phase(PAUSE_S, None)
