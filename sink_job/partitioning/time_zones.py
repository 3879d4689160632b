"""Time zones: offsets of columns of instants, local midnights, and Joda-Time's conversion of local time to UTC.

The zone data is from the `tzdata` package and not from the machine, because all executors must create the same paths.
All times are in ms since the epoch, offsets in ms east of UTC.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from importlib import resources
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from sink_job.arrow.arrays import Indices, Times

HOUR: Final = 3_600_000
DAY: Final = 24 * HOUR
_CYCLE: Final = 146_097 * DAY
"""400 years, the period of the calendar, the weekdays and the rules of clock changes."""
_FIRST: Final = int(datetime(2, 1, 1, tzinfo=UTC).timestamp()) * 1000
_LAST: Final = int(datetime(9600, 1, 1, tzinfo=UTC).timestamp()) * 1000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_OFFSET: Final = re.compile(r"([+-])(\d\d):([0-5]\d)", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*", re.ASCII)
_REACH: Final = 26 * HOUR
"""More than the offset of any zone: a local time that is read as UTC differs by less than this from its instant."""


class Change(NamedTuple):
    """A clock change: the offset is `before` until the instant `at` (exclusive), and `after` from then on."""

    at: int
    before: int
    after: int


class Zone:
    """An IANA zone or a fixed offset."""

    def __init__(self, name: str, rules: tzinfo) -> None:
        self.name = name
        self._rules = rules
        self._days: dict[int, int | Change] = {}

    def offset(self, instant: int) -> int:
        """The offset at `instant`: local time minus UTC, in ms."""
        delta = self.at(instant).utcoffset() or timedelta(0)
        return int(delta.total_seconds()) * 1000

    def abbreviation(self, instant: int) -> str:
        """The zone's short name at `instant`, such as CET or CEST; for a fixed offset the offset itself."""
        return self.at(instant).tzname() or self.name

    def at(self, instant: int) -> datetime:
        """`instant` in the zone's local time. After the year 9600 the year is shifted by a multiple of 400 years."""
        if instant > _LAST:
            instant = _LAST - _CYCLE + (instant - _LAST) % _CYCLE
        return (_EPOCH + timedelta(milliseconds=max(instant, _FIRST))).astimezone(self._rules)

    def offsets(self, times: Times) -> Times | int:
        """The offset of each of `times`, at least one; a single number if all have the same offset."""
        first, last = int(times.min()) // DAY, int(times.max()) // DAY
        if first == last and isinstance(offset := self._day(first), int):
            return offset
        days = times // DAY
        indexes, distinct = ranked(days)
        found = [self._day(int(day)) for day in distinct]
        if isinstance(found[0], int) and all(one == found[0] for one in found):
            return found[0]
        table = np.array([one if isinstance(one, int) else one.before for one in found], np.int64)
        offsets = table[indexes]
        for index, change in enumerate(found):
            if isinstance(change, Change):
                offsets[(indexes == index) & (times >= change.at)] = change.after
        return offsets

    def _day(self, day: int) -> int | Change:
        """The offset of a whole UTC day, or the clock change in it. No zone has two changes on a day."""
        found = self._days.get(day)
        if found is None:
            if len(self._days) > 100_000:
                self._days.clear()
            found = self._days[day] = self._change(day * DAY, (day + 1) * DAY - 1) or self.offset(day * DAY)
        return found

    def _change(self, low: int, high: int) -> Change | None:
        before, after = self.offset(low), self.offset(high)
        if before == after:
            return None
        while high - low > 1:
            middle = (low + high) // 2
            if self.offset(middle) == before:
                low = middle
            else:
                high = middle
        return Change(high, before, after)

    def to_utc(self, local: int) -> int:
        """The instant of a local time, like Joda-Time's `DateTimeZone.convertLocalToUTC(local, strict=false)`.

        A local time that occurs twice is the first instant west of Greenwich, else the second. A local time that a
        clock change skips is converted with the offset before or after the change.
        """
        estimate = self.offset(local)
        offset = self.offset(local - estimate)
        if estimate != offset and estimate < 0 and self.offset(local - offset) != offset:
            offset = estimate
        return local - offset

    def instants(self, local: int) -> list[int]:
        """All instants with the local time `local`. If a clock change skips it, the instant of the change."""
        low, high = local - _REACH, local + _REACH
        offsets = {self.offset(low), self.offset(high)}
        shown = sorted(local - offset for offset in offsets if self.offset(local - offset) == offset)
        if shown:
            return shown
        change = self._change(low, high)
        return [change.at if change else self.to_utc(local)]


@lru_cache(maxsize=64)
def zone(name: str) -> Zone:
    """The zone with an IANA name such as `Europe/Berlin`, or with a fixed offset such as `+05:30`.

    Raises ValueError for an unknown zone.
    """
    fixed = _OFFSET.fullmatch(name)
    if fixed:
        sign = -1 if fixed[1] == "-" else 1
        return Zone(name, timezone(sign * timedelta(hours=int(fixed[2]), minutes=int(fixed[3])), name))
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is neither an IANA time zone nor an offset like +02:00")
    data = resources.files("tzdata").joinpath("zoneinfo", *name.split("/"))
    try:
        with data.open("rb") as file:
            return Zone(name, ZoneInfo.from_file(file, key=name))
    except (OSError, ValueError):
        raise ValueError(f"{name!r} is not a known time zone") from None


def ranked(values: Times) -> tuple[Indices, Times]:
    """For each value its rank among the distinct values, and the distinct values, ascending. `values` must not be
    empty.

    Values within a small range, such as numbers of days or hours, are not sorted.

    >>> ranks, distinct = ranked(np.array([30, 10, 30]))
    >>> ranks.tolist(), distinct.tolist()
    ([1, 0, 1], [10, 30])
    """
    low, high = int(values.min()), int(values.max())
    if low == high:
        return np.zeros(len(values), np.intp), values[:1]
    if high - low > max(65_536, 4 * len(values)):
        distinct, ranks = np.unique(values, return_inverse=True)
        return ranks, distinct
    shifted = values - low
    present = np.zeros(high - low + 1, np.bool_)
    present[shifted] = True
    ranks = np.cumsum(present) - 1
    return ranks[shifted], np.flatnonzero(present) + low
