"""Parses ISO 8601 texts like Joda-Time's `ISODateTimeFormat.dateTimeParser()`, the connector's parser of time fields.

A text is a date, week date or ordinal date, optionally followed by `T`, a time and an offset. The last part of the time
may have a fraction. A time without a date is on 1970-01-01. A text without an offset is in UTC (in Joda-Time, in the
zone of the Java process).
"""

from __future__ import annotations

import re
from datetime import date
from typing import Final

from sink_job.partitioning.time_zones import DAY

_CYCLE_DAYS: Final = 146_097
_EPOCH: Final = date(1970, 1, 1).toordinal()

_TIME: Final = r"(?P<hour>\d{1,2})(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2}))?)?(?:[.,](?P<fraction>\d{1,9}))?"
_ZONE: Final = (
    r"(?P<zone>[Zz]|(?P<sign>[+-])(?P<zh>\d\d)(?::(?P<zm>\d\d)(?::(?P<zs>\d\d)(?:[.,](?P<zf>\d{1,3}))?)?"
    r"|(?P<bm>\d\d)(?:(?P<bs>\d\d)(?P<bf>\d{1,3})?)?)?)"
)
_DATE: Final = (
    r"(?P<year>[+-]?\d{1,9})(?:-[Ww](?P<week>\d{1,2})(?:-(?P<weekday>\d))?|-(?P<ordinal>\d{3})"
    r"|-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2}))?)?"
)
_TEXT: Final = re.compile(rf"(?:{_DATE}(?:[Tt](?:{_TIME})?{_ZONE}?)?)", re.ASCII)
_TIME_ALONE: Final = re.compile(rf"[Tt]{_TIME}{_ZONE}?", re.ASCII)


def parse(text: str) -> int:
    """Milliseconds since the epoch. Digits after the milliseconds are dropped.

    Raises ValueError with the reason if `text` is not an ISO 8601 time.
    """
    match = _TEXT.fullmatch(text)
    if match:
        day = _day(match)
    else:
        match, day = _TIME_ALONE.fullmatch(text), 0
    if not match:
        raise ValueError("not an ISO 8601 time")
    return day * DAY + _millis(match) - _offset(match)


def _day(match: re.Match[str]) -> int:
    """Days since the epoch. Shifts the year into 2000 to 2399 and back, because Python's years are limited."""
    cycles, year = divmod(int(match["year"]) - 2000, 400)
    year += 2000
    if match["week"]:
        # fromisocalendar rejects week 53 of a year with 52 weeks, and weekdays other than 1 to 7.
        found = date.fromisocalendar(year, int(match["week"]), int(match["weekday"] or 1))
    elif match["ordinal"]:
        number = int(match["ordinal"])
        found = date.fromordinal(date(year, 1, 1).toordinal() + number - 1)
        if not number or found.year != year:
            raise ValueError("the day of the year does not exist")
    else:
        found = date(year, int(match["month"] or 1), int(match["day"] or 1))
    return found.toordinal() - _EPOCH + cycles * _CYCLE_DAYS


def _millis(match: re.Match[str]) -> int:
    """Milliseconds of the day. A fraction belongs to the last part that the text has."""
    parts = [match["hour"], match["minute"], match["second"]]
    units = (3_600_000, 60_000, 1000)
    for part, limit in zip(parts, (23, 59, 59), strict=True):
        if part and int(part) > limit:
            raise ValueError("the time of the day does not exist")
    present = sum(1 for part in parts if part)
    millis = sum(int(part or 0) * unit for part, unit in zip(parts, units, strict=True))
    billionths = int((match["fraction"] or "").ljust(9, "0"))
    return millis + billionths * units[present - 1] // 1_000_000_000


def _offset(match: re.Match[str]) -> int:
    """Milliseconds east of UTC."""
    if not match["sign"]:
        return 0
    hours, minutes = int(match["zh"]), int(match["zm"] or match["bm"] or 0)
    seconds = int(match["zs"] or match["bs"] or 0)
    fraction = (match["zf"] or match["bf"] or "").ljust(3, "0")
    if hours > 23 or minutes > 59 or seconds > 59:
        raise ValueError("the offset from UTC is invalid")
    offset = ((hours * 60 + minutes) * 60 + seconds) * 1000 + int(fraction)
    return -offset if match["sign"] == "-" else offset
