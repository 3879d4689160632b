"""The partitioner of a connector: how a record is assigned to a directory."""

from __future__ import annotations

from typing import Final

from sink_job.api.enums import ConverterType, PartitionerType, TimestampExtractor
from sink_job.api.field_errors import in_a_line
from sink_job.api.field_types import check_field_path, check_locale, check_timezone
from sink_job.api.units.date_pattern import check_path_format, pattern_elements
from sink_job.api.units.quantities import DAY, HOUR, MINUTE, format_duration
from sink_job.migrate.draft import Draft
from sink_job.migrate.java.locales import SAME_NAMES, is_root, is_same_zone_name, named_fields, with_root_names
from sink_job.migrate.values import PLACEHOLDER, parse_choice, parse_list, parse_number, simple_name

_TYPES: Final = {
    "DefaultPartitioner": PartitionerType.DEFAULT,
    "FieldPartitioner": PartitionerType.FIELD,
    "TimeBasedPartitioner": PartitionerType.TIME,
    "HourlyPartitioner": PartitionerType.HOURLY,
    "DailyPartitioner": PartitionerType.DAILY,
}
_PACKAGES: Final = ("io.confluent.connect.storage.partitioner", "io.confluent.connect.hdfs.partitioner", "")
_EXTRACTORS: Final = {
    "wallclock": TimestampExtractor.WALLCLOCK,
    "wallclocktimestampextractor": TimestampExtractor.WALLCLOCK,
    "record": TimestampExtractor.RECORD,
    "recordtimestampextractor": TimestampExtractor.RECORD,
    "recordfield": TimestampExtractor.RECORD_FIELD,
    "recordfieldtimestampextractor": TimestampExtractor.RECORD_FIELD,
}
FIELD_PREFIX: Final = "$value."
"""Precedes the name of a field of the value that begins with `$`."""
_MAX_FIELDS: Final = 32
_MAX_DURATION: Final = 36_500 * DAY


def partitioner_type(draft: Draft) -> PartitionerType:
    """Sets `partitioner.type`."""
    name = draft.text("partitioner.class")
    if not name:
        return PartitionerType.DEFAULT
    package = name.rpartition(".")[0]
    found = _TYPES.get(simple_name(name)) if package in _PACKAGES else None
    if found is None:
        also = "; fields and time in one path have the type FieldAndTime" if "field" in name.lower() else ""
        draft.impossible("partitioner.class", f"a partitioner of one's own cannot be converted{also}")
        return PartitionerType.DEFAULT
    draft.put("partitioner.type", str(found), "partitioner.class")
    return found


def convert_paths(draft: Draft, kind: PartitionerType, converter: ConverterType) -> None:
    """Sets the fields of the partitioner."""
    reads_fields = converter not in (ConverterType.TEXT, ConverterType.BYTES)
    _fields(draft, kind, reads_fields=reads_fields)
    if kind is PartitionerType.FIELD and converter is ConverterType.JSON:
        effect = (
            "the FieldPartitioner needs values with a schema, and JSON with schemas.enable=false has none: the "
            "connector stops at its first record, and here the fields are read"
        )
        draft.different("partitioner.class", effect, "check value.converter of the connector")
    _time(draft, kind)
    _extractor(draft, kind, reads_fields=reads_fields)
    position = draft.parsed(
        "s3.schema.partition.affix.type",
        lambda text: parse_choice(text, {"none": "None", "prefix": "Prefix", "suffix": "Suffix"}),
    )
    if position is not None:
        draft.put("partitioner.schemaName", position, "s3.schema.partition.affix.type")


def convert_timezone(draft: Draft, *, used_by: str | None) -> None:
    """Sets `partitioner.timezone`. `used_by`: what needs it."""
    value = draft.text("timezone")
    if used_by is None:
        if value is not None:
            draft.left_out("timezone", "has no effect without a time partitioner and without a schedule")
        return
    try:
        if not value or PLACEHOLDER.search(value):
            raise ValueError("is missing")
        check_timezone(value)
    except ValueError as error:
        comment = "timezone: write the right one"
        if value:
            draft.different("timezone", f"{error}; UTC is written", "correct partitioner.timezone")
        else:
            draft.missing("timezone", f"{used_by} needs it; UTC is written", "correct partitioner.timezone")
        value = "UTC"
    else:
        comment = "timezone"
    draft.put("partitioner.timezone", value, comment)


def _fields(draft: Draft, kind: PartitionerType, *, reads_fields: bool) -> None:
    key = "partition.field.name"
    value = draft.text(key)
    if kind is not PartitionerType.FIELD:
        if value is not None:
            draft.left_out(key, f"has no effect with the partitioner {kind}")
        return
    names = list(dict.fromkeys(parse_list(value or "")))
    if not names:
        draft.missing(key, "the FieldPartitioner needs it", "write partitioner.fields")
        names = ["replace-me"]
    for name in names:
        try:
            check_field_path(name)
        except ValueError as error:
            draft.impossible(key, f"{name!r} {error}")
    if len(names) > _MAX_FIELDS:
        draft.impossible(key, f"has {len(names)} fields; a path can have {_MAX_FIELDS}")
    if not reads_fields:
        draft.impossible(key, "text and bytes have no fields", "use a converter that reads fields, such as Json")
    draft.put("partitioner.fields", [f"{FIELD_PREFIX}{name}" if name.startswith("$") else name for name in names], key)


def _time(draft: Draft, kind: PartitionerType) -> None:
    for key in ("partition.duration.ms", "path.format"):
        if draft.settings.get(key) is not None and kind is not PartitionerType.TIME:
            why = "the partitioner {} sets it" if kind.uses_time else "has no effect with the partitioner {}"
            draft.left_out(key, why.format(kind))
    if kind is PartitionerType.TIME:
        _pattern(draft)
        _duration(draft)
    _locale(draft, kind)


def _pattern(draft: Draft) -> None:
    key = "path.format"
    pattern = draft.text(key)
    if not pattern:
        draft.impossible(key, "is missing: the TimeBasedPartitioner needs it", "add it, for example 'year'=YYYY")
        return
    try:
        check_path_format(pattern)
    except ValueError as error:
        draft.impossible(key, str(error))
        return
    draft.put("partitioner.pathFormat", pattern, key)


def _duration(draft: Draft) -> None:
    key = "partition.duration.ms"
    value = draft.parsed(key, parse_number)
    if value is not None and value > 0:
        if value > _MAX_DURATION:
            effect = "is longer than 100 years, which are written; paths are the same from 1970 to 2069"
            draft.different(key, effect, "check partitioner.duration")
        draft.put("partitioner.duration", format_duration(min(value, _MAX_DURATION)), key)
        return
    guess = _duration_of(draft.text("path.format") or "")
    draft.put(
        "partitioner.duration", format_duration(guess), "partition.duration.ms: from the smallest unit of path.format"
    )
    action = "check partitioner.duration"
    effect = f"the TimeBasedPartitioner needs it; {format_duration(guess)} is written"
    if key in draft.settings:
        draft.different(key, effect, action)
    else:
        draft.missing(key, effect, action)


def _duration_of(pattern: str) -> int:
    letters = _letters(pattern)
    for units, size in (("sSm", MINUTE), ("Hh", HOUR)):
        if letters & set(units):
            return size
    return DAY


def _letters(pattern: str) -> set[str]:
    try:
        return {each.text[0] for each in pattern_elements(pattern) if not each.literal}
    except ValueError:
        return set()


def _locale(draft: Draft, kind: PartitionerType) -> None:
    value = draft.text("locale")
    pattern = draft.text("path.format") or ""
    named = named_fields(pattern) if kind is PartitionerType.TIME else []
    if not named:
        if value:
            draft.left_out("locale", "has no effect on paths without names of months or days")
        return
    if not value:
        _zone_names(draft, named, has_english=True)
        return
    root = is_root(value)
    _zone_names(draft, named, has_english=root or value.lower() == "en")
    if root:
        _root_names(draft, pattern)
    else:
        _own_names(draft, value, named)


def _root_names(draft: Draft, pattern: str) -> None:
    """Sets the pattern that gives the names of Java's root locale."""
    why = "Java has no language of this name (the whole text is one): names are the short English ones, such as Nov"
    draft.left_out("locale", why)
    if (short := with_root_names(pattern)) != pattern and "partitioner.pathFormat" in draft.fields:
        draft.put("partitioner.pathFormat", short, "path.format, with the short names that the locale gives")


def _own_names(draft: Draft, language: str, named: list[str]) -> None:
    try:
        check_locale(language)
    except ValueError as error:
        draft.different("locale", f"{error}; en is used", "correct partitioner.locale")
        return
    draft.put("partitioner.locale", language, "locale")
    if language.lower() not in SAME_NAMES and any(each[0] != "z" for each in named):
        effect = f"names ({', '.join(named)}) may differ from those of the connector's Java"
        draft.different("locale", effect, "compare the paths of some objects, or use numbers in path.format")


def _zone_names(draft: Draft, named: list[str], *, has_english: bool) -> None:
    zone = draft.text("timezone") or ""
    fields = [each for each in named if each[0] == "z"]
    if fields and not (has_english and all(is_same_zone_name(each, zone) for each in fields)):
        effect = f"{fields[0]} may be another name of the time zone here, such as -03 in place of BRT"
        draft.different("path.format", effect, "compare the paths of some objects, or use Z (+0100) in path.format")


def _extractor(draft: Draft, kind: PartitionerType, *, reads_fields: bool) -> None:
    key, value = "timestamp.extractor", draft.text("timestamp.extractor")
    field = draft.text("timestamp.field")
    if not kind.uses_time:
        for unused in ("timestamp.extractor", "timestamp.field"):
            if unused in draft.settings:
                draft.left_out(unused, f"has no effect with the partitioner {kind}")
        return
    extractor = TimestampExtractor.WALLCLOCK
    if value:
        found = _EXTRACTORS.get(simple_name(value).lower())
        if found is None or ("." in value and "io.confluent." not in value):
            draft.impossible(key, "a timestamp extractor of one's own cannot be converted")
            return
        extractor = found
    draft.put("partitioner.timestampExtractor", str(extractor), key if value else f"{key}: the connector's default")
    if extractor is not TimestampExtractor.RECORD_FIELD:
        if field is not None:
            draft.left_out("timestamp.field", f"has no effect with the extractor {extractor}")
        return
    if not reads_fields:
        draft.impossible(key, "text and bytes have no fields", "use a converter that reads fields, such as Json")
    name = field or "timestamp"
    try:
        check_field_path(name)
    except ValueError as error:
        draft.impossible("timestamp.field", str(error))
        return
    draft.to_do(
        f"Times of {in_a_line(name)}: numbers with a fraction are data errors here (the connector drops the fraction), "
        "and texts of one to four digits are milliseconds (the connector reads them as years)",
        "check the values of the field, if it has such ones",
    )
    written = f"{FIELD_PREFIX}{name}" if name.startswith("$") else name
    draft.put("partitioner.timestampField", written, "timestamp.field" + ("" if field else ": the connector's default"))
