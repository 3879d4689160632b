"""The path of a sink's objects as columns of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from sink_job.api.enums import PartitionerType, SchemaNamePosition
from sink_job.api.sections.record_fields import FieldReference
from sink_job.api.spec import ObjectSettings
from sink_job.api.units.date_pattern import PatternElement, pattern_elements
from sink_job.ddl.table import PathColumn, Projection

MAX_PARTITION: Final = 9_999
"""The highest Kafka partition of the range that a table has."""
YEARS: Final = (2000, 2100)
"""The range of years that a table has."""

_CALENDAR: Final = {
    "y": ("year", *YEARS),
    "Y": ("year", *YEARS),
    "M": ("month", 1, 12),
    "d": ("day", 1, 31),
    "H": ("hour", 0, 23),
    "m": ("minute", 0, 59),
    "s": ("second", 0, 59),
}
_UNITS: Final = {"y": "YEARS", "M": "MONTHS", "d": "DAYS", "H": "HOURS", "m": "MINUTES", "s": "SECONDS"}
"""The steps of a date, by the smallest letter of its pattern."""


def path_columns(settings: ObjectSettings) -> tuple[PathColumn, ...]:
    """The columns of the path, in its order. Names occur once: a later element with the name of an earlier one gets a
    number."""
    found: list[PathColumn] = []
    names: set[str] = set()
    for each in _elements(settings):
        name, number = each.name, 2
        while name.lower() in names:
            name, number = f"{each.name}_{number}", number + 1
        names.add(name.lower())
        found.append(each if name == each.name else _renamed(each, name))
    return tuple(found)


def _renamed(each: PathColumn, name: str) -> PathColumn:
    return PathColumn(
        name, each.projection, each.template, False, each.lowest, each.highest, each.digits, each.pattern, each.unit
    )


def _elements(settings: ObjectSettings) -> Iterator[PathColumn]:
    partitioner = settings.partitioner
    schema_name = _injected("schema_name")
    if partitioner.schema_name is SchemaNamePosition.PREFIX:
        yield schema_name
    if partitioner.type.uses_fields:
        yield from (_injected(FieldReference.of(text).label) for text in partitioner.fields or ())
    if partitioner.type.uses_time:
        yield from _time_elements(_pattern(settings), settings.s3.directory_delimiter)
    elif not partitioner.type.uses_fields:
        yield PathColumn("partition", Projection.INTEGER, "partition={}", lowest=0, highest=MAX_PARTITION)
    if partitioner.schema_name is SchemaNamePosition.SUFFIX:
        yield schema_name


def _injected(name: str) -> PathColumn:
    return PathColumn(name, Projection.INJECTED, f"{name}={{}}")


def _pattern(settings: ObjectSettings) -> str:
    delimiter = settings.s3.directory_delimiter
    daily = f"'year='YYYY'{delimiter}month='MM'{delimiter}day='dd"
    match settings.partitioner.type:
        case PartitionerType.DAILY:
            return daily
        case PartitionerType.HOURLY:
            return f"{daily}'{delimiter}hour='HH"
    return settings.partitioner.path_format or ""


def _time_elements(pattern: str, delimiter: str) -> Iterator[PathColumn]:
    """One column for each directory of the pattern that has a letter. Directories of literal text belong to the next
    one, or to the last."""
    directories: list[list[PatternElement]] = [[]]
    for element in pattern_elements(pattern):
        texts = element.text.split(delimiter) if element.literal else [element.text]
        for number, text in enumerate(texts):
            if number:
                directories.append([])
            if text:
                directories[-1].append(PatternElement(text, element.literal))
    before = ""
    number = 0
    for directory in filter(None, directories):
        if all(element.literal for element in directory):
            before += "".join(element.text for element in directory) + delimiter
            continue
        number += 1
        yield _time_column(directory, before, number)
        before = ""


def _time_column(directory: Sequence[PatternElement], before: str, number: int) -> PathColumn:
    first = directory[0]
    label, equals, front = first.text.partition("=") if first.literal else ("", "", "")
    is_named = bool(equals and label and not before)
    rest = list(directory[1:] if first.literal else directory)
    if first.literal and front:
        rest.insert(0, PatternElement(front, literal=True))
    if not is_named and first.literal and not equals:
        rest.insert(0, first)
    head = f"{label}=" if equals else ""
    letters = [element.text for element in rest if not element.literal]
    if len(rest) == 1 and (calendar := _CALENDAR.get(letters[0][0])) is not None and _is_number(letters[0]):
        name, lowest, highest = calendar
        digits = 4 if name == "year" else 0 if len(letters[0]) == 1 else len(letters[0])
        template = f"{before}{head}{{}}"
        return PathColumn(label if equals else name, Projection.INTEGER, template, is_named, lowest, highest, digits)
    name = label if equals else f"time_{number}" if number > 1 else "time"
    template = f"{before}{head}{{}}"
    if (date := _date(rest)) is None:
        return PathColumn(name, Projection.INJECTED, template, is_named)
    return PathColumn(name, Projection.DATE, template, is_named, pattern=date[0], unit=date[1])


def _is_number(letters: str) -> bool:
    """Whether a run of letters is a number of a fixed range: not the text of a month, not a year of two digits."""
    return len(letters) <= 2 if letters[0] not in "yY" else len(letters) in (1, 4)


def _date(rest: Sequence[PatternElement]) -> tuple[str, str] | None:
    """The pattern in Java's letters and the step of a date from its year on without a gap; None if it is none."""
    letters = [element.text for element in rest if not element.literal]
    order = "".join("y" if text[0] in "yY" else text[0] for text in letters)
    if not order or not "yMdHms".startswith(order) or not all(map(_is_number, letters)):
        return None
    texts = [_quoted(each.text) if each.literal else each.text.replace("Y", "y") for each in rest]
    return "".join(text if text != "y" else "yyyy" for text in texts), _UNITS[order[-1]]


def _quoted(literal: str) -> str:
    """Literal text in a Java pattern: letters and quotes need quotes."""
    if any(character.isalpha() or character == "'" for character in literal):
        return "'" + literal.replace("'", "''") + "'"
    return literal
