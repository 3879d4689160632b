"""The connector's date patterns (`path.format`): the letters and widths of Joda-Time.

`sink_job.api.units.date_pattern` splits a pattern into elements. `compile_elements` compiles them to a function from an
instant to text. The calendar is the ISO calendar without a limit on the year: a time in microseconds that is read as
milliseconds is in the year 50000, as in the connector. `YYYY` and `yyyy` are both the calendar year. `X` is the letter
of Java's own patterns; Joda-Time does not have it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from sink_job.api.units.date_pattern import LETTERS, PatternElement
from sink_job.partitioning.time_zones import DAY, Zone

if TYPE_CHECKING:
    from babel.core import Locale

_CYCLE_DAYS: Final = 146_097
_ANCHOR: Final = date(2000, 1, 1).toordinal()
_ANCHOR_DAY: Final = (date(2000, 1, 1) - date(1970, 1, 1)).days


@dataclass(frozen=True)
class Moment:
    """An instant (ms since the epoch) in the local time of a zone."""

    instant: int
    zone: Zone

    @cached_property
    def offset(self) -> int:
        return self.zone.offset(self.instant)

    @cached_property
    def millis(self) -> int:
        """Milliseconds of the local day."""
        return (self.instant + self.offset) % DAY

    @cached_property
    def _shifted(self) -> tuple[int, date]:
        """The number of years to add, and the local day shifted into the years 2000 to 2399."""
        cycles, day = divmod((self.instant + self.offset) // DAY - _ANCHOR_DAY, _CYCLE_DAYS)
        return cycles * 400, date.fromordinal(_ANCHOR + day)

    @property
    def day(self) -> date:
        """The local day, correct except for its year."""
        return self._shifted[1]

    @property
    def year(self) -> int:
        return self._shifted[1].year + self._shifted[0]

    @property
    def week_year(self) -> int:
        return self._shifted[1].isocalendar().year + self._shifted[0]


Field = Callable[[Moment], str]


def compile_elements(elements: Sequence[PatternElement], *, zone: Zone, locale: str) -> Callable[[int], str]:
    """A function that formats an instant (ms since the epoch) with a pattern's elements, in `zone` and `locale`.

    Raises ValueError for an unknown pattern letter, and for an unknown locale.
    """
    fields = [
        _literal(element.text)
        if element.literal
        else _field(element.text[0], len(element.text), zone=zone, locale=locale)
        for element in elements
    ]
    return lambda instant: _print(fields, Moment(instant, zone))


def _print(fields: list[Field], moment: Moment) -> str:
    return "".join(field(moment) for field in fields)


def parse_locale(text: str) -> Locale:
    """The locale with a name such as `en`, `de-DE` or `de_DE`. Raises ValueError for an unknown one."""
    from babel.core import Locale, UnknownLocaleError  # slow import, and most patterns have no names

    try:
        return Locale.parse(text.replace("-", "_"))
    except (UnknownLocaleError, ValueError):
        raise ValueError(f"{text!r} is not a known locale") from None


def _literal(text: str) -> Field:
    return lambda _: text


def _field(letter: str, width: int, *, zone: Zone, locale: str) -> Field:
    if letter in _NUMBERS:
        number = _NUMBERS[letter]
        return lambda m: _padded(number(m), width)
    match letter:
        case "y" | "Y" | "x":
            return _year(letter, width)
        case "M":
            return _month(width, locale)
        case "E":
            days = parse_locale(locale).days["format"]["wide" if width >= 4 else "abbreviated"]
            return lambda m: str(days[m.day.weekday()])
        case "a":
            halves = parse_locale(locale).day_periods["format"]["abbreviated"]
            return lambda m: str(halves["am" if m.millis < DAY // 2 else "pm"])
        case "S":
            return lambda m: f"{m.millis % 1000:03d}".ljust(width, "0")[:width]
        case "X":
            return lambda m: _java_offset(m.offset, width)
        case "Z":
            return (lambda _: zone.name) if width >= 3 else lambda m: _offset(m.offset, ":" if width == 2 else "")
        case "z":
            return _zone_name(width, locale)
    raise ValueError(
        f"{letter * width!r} is not a date pattern: use the letters {' '.join(LETTERS)}; quote text as '…'"
    )


_NUMBERS: Final[dict[str, Callable[[Moment], int]]] = {
    "d": lambda m: m.day.day,
    "D": lambda m: m.day.timetuple().tm_yday,
    "H": lambda m: m.millis // 3_600_000,
    "h": lambda m: (m.millis // 3_600_000 - 1) % 12 + 1,
    "m": lambda m: m.millis // 60_000 % 60,
    "s": lambda m: m.millis // 1000 % 60,
    "w": lambda m: m.day.isocalendar().week,
    "e": lambda m: m.day.isoweekday(),
}


def _padded(number: int, width: int) -> str:
    return ("-" if number < 0 else "") + str(abs(number)).rjust(width, "0")


def _year(letter: str, width: int) -> Field:
    """`y` is the proleptic year, `Y` the year of its era, `x` the year of the ISO week. Two letters are two digits."""
    if letter == "x":
        year: Callable[[Moment], int] = attrgetter("week_year")
    elif letter == "Y" and width != 2:
        year = _year_of_era
    else:
        year = attrgetter("year")
    if width == 2:
        return lambda m: f"{abs(year(m)) % 100:02d}"
    return lambda m: _padded(year(m), width)


def _year_of_era(m: Moment) -> int:
    return m.year if m.year > 0 else 1 - m.year


def _month(width: int, locale: str) -> Field:
    if width < 3:
        return lambda m: _padded(m.day.month, width)
    months = parse_locale(locale).months["format"]["wide" if width >= 4 else "abbreviated"]
    return lambda m: str(months[m.day.month])


def _offset(offset: int, separator: str) -> str:
    minutes = abs(offset) // 60_000
    return f"{'-' if offset < 0 else '+'}{minutes // 60:02d}{separator}{minutes % 60:02d}"


def _java_offset(offset: int, width: int) -> str:
    """`Z` for UTC, else +hh or +hhmm (X), +hhmm (XX), +hh:mm (XXX). XXXX and XXXXX add seconds other than zero."""
    if offset == 0:
        return "Z"
    text = _offset(offset, ":" if width in (3, 5) else "")
    if width == 1 and text.endswith("00"):
        return text[:-2]
    seconds = abs(offset) // 1000 % 60
    if width >= 4 and seconds:
        text += f"{':' if width == 5 else ''}{seconds:02d}"
    return text


def _zone_name(width: int, locale: str) -> Field:
    if width < 4:
        return lambda m: m.zone.abbreviation(m.instant)
    from babel.dates import get_timezone_name

    names = parse_locale(locale)
    return lambda m: get_timezone_name(m.zone.at(m.instant), width="long", locale=names)
