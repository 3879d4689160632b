"""Time zones: offsets of whole columns of instants, local midnights, and Joda's way from local time back to UTC.

The zone data is that of the `tzdata` package, not of the machine: an executor and a laptop have to agree on paths.
All times are milliseconds since the epoch, offsets milliseconds east of UTC.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from importlib import resources
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.int64]

HOUR: Final = 3_600_000
DAY: Final = 24 * HOUR
_CYCLE: Final = 146_097 * DAY
"""400 years: the calendar, weekdays and rules of clock changes repeat."""
_FIRST: Final = int(datetime(2, 1, 1, tzinfo=UTC).timestamp()) * 1000
_LAST: Final = int(datetime(9600, 1, 1, tzinfo=UTC).timestamp()) * 1000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_OFFSET: Final = re.compile(r"([+-])(\d\d):([0-5]\d)", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*", re.ASCII)
_REACH: Final = 26 * HOUR
"""Further than any zone is from UTC: a local time, read as UTC, is within it of the instant meant."""


class Change(NamedTuple):
    """A clock change: `after` is the offset from the instant `at` on, `before` the one until then."""

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
        """Milliseconds to add to `instant` to have local time."""
        delta = self.at(instant).utcoffset() or timedelta(0)
        return int(delta.total_seconds()) * 1000

    def abbreviation(self, instant: int) -> str:
        """The zone's short name then, such as CET or CEST; a fixed offset's is the offset itself."""
        return self.at(instant).tzname() or self.name

    def at(self, instant: int) -> datetime:
        """`instant` as the zone's clock shows it; beyond the year 9600 a like one in another cycle of 400 years."""
        if instant > _LAST:
            instant = _LAST - _CYCLE + (instant - _LAST) % _CYCLE
        return (_EPOCH + timedelta(milliseconds=max(instant, _FIRST))).astimezone(self._rules)

    def offsets(self, times: Times) -> Times | int:
        """The offset of each of `times`, or the one they all have."""
        days = times // DAY
        slots, wanted = ranked(days)
        found = [self._day(int(day)) for day in wanted]
        if isinstance(found[0], int) and all(one == found[0] for one in found):
            return found[0]
        table = np.array([one if isinstance(one, int) else one.before for one in found], np.int64)
        offsets = table[slots]
        for slot, change in enumerate(found):
            if isinstance(change, Change):
                offsets[(slots == slot) & (times >= change.at)] = change.after
        return offsets

    def _day(self, day: int) -> int | Change:
        """The offset all through a day of UTC, or the change in it. No zone has two changes within a day."""
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
        """The instant of a local time, as Joda's `DateTimeZone.convertLocalToUTC(local, strict=false)` chooses it.

        Of a repeated time it is the first instant west of Greenwich, else the second; a time that a clock change leaves
        out is taken with one of the offsets beside the change.
        """
        estimate = self.offset(local)
        offset = self.offset(local - estimate)
        if estimate != offset and estimate < 0 and self.offset(local - offset) != offset:
            offset = estimate
        return local - offset

    def instants(self, local: int) -> list[int]:
        """All instants at which the clock shows `local`; where it is left out, the instant of the change."""
        low, high = local - _REACH, local + _REACH
        offsets = {self.offset(low), self.offset(high)}
        shown = sorted(local - offset for offset in offsets if self.offset(local - offset) == offset)
        if shown:
            return shown
        change = self._change(low, high)
        return [change.at if change else self.to_utc(local)]


@lru_cache(maxsize=64)
def zone(name: str) -> Zone:
    """The zone with an IANA name such as `Europe/Berlin`, or at an offset such as `+05:30`.

    Raises ValueError when there is no such zone.
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
        raise ValueError(f"there is no time zone {name!r}") from None


def ranked(values: Times) -> tuple[npt.NDArray[np.intp], Times]:
    """The distinct values, ascending, and for each value its place among them; `values` must not be empty.

    Values that lie close together, as times cut into days or hours do, need no sorting.
    """
    low, high = int(values.min()), int(values.max())
    if low == high:
        return np.zeros(len(values), np.intp), values[:1]
    if high - low > max(65_536, 4 * len(values)):
        distinct, slots = np.unique(values, return_inverse=True)
        return slots, distinct
    shifted = values - low
    present = np.zeros(high - low + 1, np.bool_)
    present[shifted] = True
    places = np.cumsum(present) - 1
    return places[shifted], np.flatnonzero(present) + low
