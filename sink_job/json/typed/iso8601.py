"""ISO 8601 texts of dates, times and timestamps in JSON values, as RFC 3339 writes them."""

from __future__ import annotations

import re
from datetime import date
from typing import Final

from sink_job.connect.errors import InvalidValue

_EPOCH: Final = date(1970, 1, 1).toordinal()
_DAY_S: Final = 86_400
_UNITS: Final = {3: 1_000, 6: 1_000_000, 9: 1_000_000_000}
"""The units of a second by their decimal places."""
_DATE: Final = r"(\d{4})-(\d{2})-(\d{2})"
_TIME: Final = r"(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?"
_date: Final = re.compile(_DATE, re.ASCII).fullmatch
_time: Final = re.compile(_TIME, re.ASCII).fullmatch
_timestamp: Final = re.compile(rf"{_DATE}[Tt ]{_TIME}(Z|z|([+-])(\d{{2}}):?(\d{{2}}))?", re.ASCII).fullmatch
_Groups = tuple[str | None, ...]


def days(text: str) -> int:
    """The days since the epoch of a date such as 2013-01-31. Raises InvalidValue."""
    found = _date(text)
    if found is None:
        raise _invalid(text, "date, such as 2013-01-31")
    return _day(text, found.groups())


def time_of_day(text: str, digits: int) -> int:
    """The time since midnight of a time such as 23:59:59.999, in units with `digits` decimal places of a second.
    Raises InvalidValue, also for a smaller unit than that."""
    found = _time(text)
    if found is None:
        raise _invalid(text, "time of the day, such as 23:59:59.999")
    return _time_units(text, found.groups(), digits)


def timestamp(text: str, digits: int, *, local: bool) -> int:
    """The time since the epoch of a timestamp such as 2013-01-31T23:59:59.999Z, in units with `digits` decimal places
    of a second. Without an offset it is in UTC. A `local` one has no offset. Raises InvalidValue as `time_of_day`."""
    found = _timestamp(text)
    if found is None:
        raise _invalid(text, "timestamp, such as 2013-01-31T23:59:59.999Z")
    groups = found.groups()
    if local and groups[7] is not None:
        raise InvalidValue(f"the text {text[:100]!r} has an offset, but its type is a local timestamp")
    seconds = _day(text, groups) * _DAY_S - _offset(text, groups[8:])
    return seconds * _UNITS[digits] + _time_units(text, groups[3:7], digits)


def _day(text: str, groups: _Groups) -> int:
    year, month, day = (int(each or 0) for each in groups[:3])
    try:
        return date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        raise _invalid(text, "date that exists") from None


def _time_units(text: str, groups: _Groups, digits: int) -> int:
    hour, minute, second = (int(each or 0) for each in groups[:3])
    fraction = (groups[3] or "").rstrip("0")
    if hour > 23 or minute > 59 or second > 59:
        raise _invalid(text, "time of the day that exists")
    if len(fraction) > digits:
        raise InvalidValue(f"the text {text[:100]!r} has more than {digits} decimal places of a second")
    return ((hour * 60 + minute) * 60 + second) * _UNITS[digits] + int(fraction.ljust(digits, "0"))


def _offset(text: str, groups: _Groups) -> int:
    """The offset in seconds."""
    sign, hours, minutes = groups[0], int(groups[1] or 0), int(groups[2] or 0)
    if hours > 23 or minutes > 59:
        raise _invalid(text, "timestamp with an offset that exists")
    return (hours * 60 + minutes) * 60 * (-1 if sign == "-" else 1)


def _invalid(text: str, what: str) -> InvalidValue:
    return InvalidValue(f"the text {text[:100]!r} is no {what}")
