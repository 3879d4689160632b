"""Whether a figure grows over the hours of a soak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

MIN_VALUES = 9
"""With fewer values there is no verdict."""


@dataclass(frozen=True)
class Allowance:
    """How much higher the end may be: `share` of the beginning, and `absolute` in the figure's unit."""

    share: float
    absolute: float


ALLOWED: Mapping[str, Allowance] = {
    "memory_mb": Allowance(0.05, 25),
    "heap_mb": Allowance(0.1, 5),
    "files": Allowance(0.05, 8),
    "threads": Allowance(0.05, 6),
    "sockets": Allowance(0.05, 4),
    "consumers": Allowance(0, 0),
}


@dataclass(frozen=True)
class Growth:
    """The medians of the first and of the last third of the values after the warm-up."""

    figure: str
    first: float
    last: float
    grown: bool

    def __str__(self) -> str:
        return f"{self.figure} {self.first:,.0f} -> {self.last:,.0f}{' GROWN' if self.grown else ''}"


def growth(figure: str, values: Sequence[float], warm_up: float = 0.2) -> Growth | None:
    """Compares the end of `values` (in the order of time) with their beginning; None if they are too few.

    The first `warm_up` of them are left out: until then a JVM touches its heap for the first time.

    >>> growth("files", [300, *[90] * 4, *[95] * 4, *[120] * 4])
    Growth(figure='files', first=90, last=120, grown=True)
    >>> growth("files", [90, 130] * 8).grown
    False
    """
    settled = values[int(len(values) * warm_up) :]
    if len(settled) < MIN_VALUES:
        return None
    third = len(settled) // 3
    first, last = median(settled[:third]), median(settled[-third:])
    allowed = ALLOWED[figure]
    return Growth(figure, first, last, last > first * (1 + allowed.share) + allowed.absolute)
