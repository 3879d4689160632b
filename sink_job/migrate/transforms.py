"""Kafka's transforms and predicates of a connector, as `spec.transforms`.

`converted` is pure: the settings of one transform become entries of the list. Transforms of keys, of headers and of
topics have no equivalent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from sink_job.api.enums import ConverterType, OutputFormat, TransformType
from sink_job.api.field_errors import in_a_line
from sink_job.api.field_types import check_field_name, check_timestamp_format
from sink_job.migrate.draft import Draft
from sink_job.migrate.java.patterns import check_java_pattern
from sink_job.migrate.manifest import Item
from sink_job.migrate.topic_router import ONLY_JAVA, router_of
from sink_job.migrate.values import PLACEHOLDER, nearest_key, parse_boolean, parse_choice, parse_list

Entries = list[dict[str, Any]]
Settings = Mapping[str, str]

_KAFKA: Final = "org.apache.kafka.connect.transforms."
_PREDICATES: Final = f"{_KAFKA}predicates."
_TYPES: Final = {
    **{f"int{bits}": f"Int{bits}" for bits in (8, 16, 32, 64)},
    "float32": "Float32",
    "float64": "Float64",
    "boolean": "Boolean",
    "string": "Text",
}
_TARGETS: Final = {"string": "Text", "unix": "UnixTime", **{name: name for name in ("Date", "Time", "Timestamp")}}
_UNITS: Final = {each.lower(): each for each in ("Seconds", "Milliseconds", "Microseconds", "Nanoseconds")}
_COMMON: Final = ("type", "predicate", "negate", "field.syntax.version", "replace.null.with.default")


def convert_transforms(draft: Draft, converter: str, output: str) -> None:
    """Sets `transforms`, or reports why the connector's cannot be converted."""
    names = parse_list(draft.text("transforms") or "")
    if not names or router_of(draft) is not None:
        return
    entries: Entries = []
    action = "transform before Kafka or after reading from S3, and remove it from the configuration to convert the rest"
    for name in names:
        settings = _settings(draft, f"transforms.{name}.")
        kind = settings.get("type", "")
        if not kind:
            draft.impossible(
                "transforms", f"transforms.{in_a_line(name)}.type is missing", "write it, or remove the name"
            )
            continue
        try:
            entries += [{**each, **_when(draft, settings)} for each in converted(kind, settings)]
        except ValueError as error:
            draft.impossible("transforms", f"{in_a_line(name)} ({in_a_line(kind)}) {error}", action)
    reads_values = any(each["type"] != TransformType.FILTER for each in entries)
    can_change = ConverterType(converter).has_schemas or converter == ConverterType.JSON
    if reads_values and (not can_change or output == OutputFormat.BYTES):
        why = (
            "this version transforms JSON and values with a schema alone, not values of "
            f"{converter} for the output {output}"
        )
        draft.impossible("transforms", why, action.replace("remove it", "remove them"))
    elif reads_values and converter == ConverterType.JSON_SCHEMA:
        draft.put("format.unknownFields", "Drop", "JsonSchemaConverter drops what the schema lacks")
    if converter == ConverterType.JSON and any(
        each.get("timestampType") in ("Date", "Time", "Timestamp") for each in entries
    ):
        why = "a value without a schema has only the target.type string and unix"
        draft.impossible("transforms", why, action)
    if converter == ConverterType.JSON and any(each["type"] == TransformType.UNWRAP for each in entries):
        why = "Debezium's transform does nothing without a schema"
        draft.impossible("transforms", why, "use Extract with the field after, if the values are change events")
    if not entries:
        return
    draft.put("transforms", [Item(each) for each in entries], f"transforms={', '.join(map(in_a_line, names))}")


def converted(kind: str, settings: Settings) -> Entries:
    """The entries of one transform, with the class `kind`, without its predicate. Raises ValueError with the end of a
    sentence about the transform."""
    if not kind:
        raise ValueError("has no type")
    if kind in _OTHERS:
        return _OTHERS[kind](settings)
    if kind == f"{_KAFKA}RegexRouter":
        raise ValueError(
            "is a router of topics, which is converted only as the single transform and without a predicate: write "
            "s3.prefixes by hand"
        )
    name, _, part = kind.removeprefix(_KAFKA).partition("$")
    make = _OF_KAFKA.get(name) if kind.startswith(_KAFKA) else None
    if make is None or part not in ("Value", "") or (part == "") is not (name == "Filter"):
        of_key = " of the key" if part == "Key" else ""
        raise ValueError(f"is a transform{of_key} that this version does not have")
    if any(PLACEHOLDER.search(each) for each in settings.values()):
        raise ValueError("has a value of a configuration provider")
    if settings.get("field.syntax.version", "V1").upper() != "V1":
        raise ValueError("names nested fields (field.syntax.version)")
    make_entries, known = make
    if unknown := sorted(set(settings) - {*known, *_COMMON}):
        near = nearest_key(unknown[0], [*known, *_COMMON])
        raise ValueError(f"has the unknown key {in_a_line(unknown[0])}{f': did you mean {near}?' if near else ''}")
    return list(make_entries(settings))


def predicate(kind: str, settings: Settings, *, negated: bool) -> dict[str, Any]:
    """The `when` of a predicate with the class `kind`. Raises ValueError as `converted`."""
    found: dict[str, Any]
    match kind.removeprefix(_PREDICATES):
        case "TopicNameMatches":
            pattern = settings.get("pattern", "")
            if ONLY_JAVA.search(pattern):
                raise ValueError("has a predicate with a pattern that is not converted")
            try:
                check_java_pattern(pattern)
            except ValueError as error:
                raise ValueError(f"has a predicate with a pattern that {error}") from None
            found = {"topic": pattern}
        case "HasHeaderKey":
            found = {"header": _name(settings.get("name", ""))}
        case "RecordIsTombstone":
            found = {"tombstone": True}
        case "":
            raise ValueError("has a predicate without a type")
        case _:
            raise ValueError(f"has a predicate of the class {in_a_line(kind)}, which is not converted")
    return {**found, "not": True} if negated else found


def _settings(draft: Draft, prefix: str) -> dict[str, str]:
    """The settings below a prefix, which are then handled."""
    names = [each.removeprefix(prefix) for each in draft.settings if each.startswith(prefix)]
    return {name: draft.text(f"{prefix}{name}") or "" for name in names}


def _when(draft: Draft, settings: Settings) -> dict[str, Any]:
    name = settings.get("predicate", "")
    if not name:
        if settings.get("type") == f"{_KAFKA}Filter":
            raise ValueError("has no predicate: it drops all records")
        return {}
    found = _settings(draft, f"predicates.{name}.")
    draft.text("predicates")
    negated = parse_boolean(settings.get("negate", "false"))
    return {"when": predicate(found.get("type", ""), found, negated=negated)}


def _name(text: str) -> str:
    try:
        check_field_name(text)
    except ValueError as error:
        raise ValueError(f"has a name that {error}") from None
    return text


def _names(text: str) -> list[str]:
    return [_name(each) for each in parse_list(text)]


def _insert(settings: Settings) -> Iterator[dict[str, Any]]:
    for source in ("Topic", "Partition", "Offset", "Timestamp"):
        if field := settings.get(f"{source.lower()}.field"):
            yield {"type": "Insert", **_added(field), "source": source}
    if field := settings.get("static.field"):
        if "static.value" not in settings:
            raise ValueError("has a static.field without a static.value")
        text = settings["static.value"]
        yield {"type": "Insert", **_added(field), "source": "Text", "text": text}


def _added(field: str) -> dict[str, Any]:
    """The field to add: with `!` at its end it is required, with a schema."""
    return {"field": _name(re.sub("[!?]$", "", field)), **({"required": True} if field.endswith("!") else {})}


def _replace(settings: Settings) -> Iterator[dict[str, Any]]:
    include = _names(settings.get("include") or settings.get("whitelist", ""))
    exclude = _names(settings.get("exclude") or settings.get("blacklist", ""))
    if include:
        yield {"type": "Keep", "fields": include}
    if exclude:
        yield {"type": "Drop", "fields": exclude}
    if renames := _pairs(settings.get("renames", ""), "renames"):
        yield {"type": "Rename", "renames": renames}


def _pairs(text: str, key: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in parse_list(text):
        first, colon, second = each.partition(":")
        if not colon or ":" in second:
            raise ValueError(f"has no pair of names in {key}={in_a_line(each)}")
        found[_name(first.strip())] = _name(second.strip())
    if len(set(found.values())) < len(found):
        raise ValueError(f"has a name twice in {key}")
    return found


def _mask(settings: Settings) -> Iterator[dict[str, Any]]:
    replacement = {"replacement": settings["replacement"]} if settings.get("replacement") else {}
    yield {"type": "Mask", "fields": _required(_names(settings.get("fields", "")), "fields"), **replacement}


def _cast(settings: Settings) -> Iterator[dict[str, Any]]:
    casts: dict[str, str] = {}
    for each in _required(parse_list(settings.get("spec", "")), "spec"):
        field, colon, kind = each.rpartition(":")
        if not colon:
            if casts or "," in settings["spec"]:
                raise ValueError("casts the whole value and fields")
            yield {"type": "Cast", "castTo": _type(kind)}
            return
        casts[_name(field)] = _type(kind)
    yield {"type": "Cast", "casts": casts}


def _type(kind: str) -> str:
    try:
        return parse_choice(kind.strip(), _TYPES)
    except ValueError as error:
        raise ValueError(f"has a type that {error}") from None


def _flatten(settings: Settings) -> Iterator[dict[str, Any]]:
    delimiter = settings.get("delimiter", ".")
    if not 1 <= len(delimiter) <= 16:
        raise ValueError("has an empty or too long delimiter")
    yield {"type": "Flatten"} if delimiter == "." else {"type": "Flatten", "delimiter": delimiter}


def _extract(settings: Settings) -> Iterator[dict[str, Any]]:
    yield {"type": "Extract", "field": _name(settings.get("field", ""))}


def _hoist(settings: Settings) -> Iterator[dict[str, Any]]:
    yield {"type": "Hoist", "field": _name(settings.get("field", ""))}


def _timestamp(settings: Settings) -> Iterator[dict[str, Any]]:
    target = settings.get("target.type", "")
    if target not in _TARGETS:
        raise ValueError(f"has the target.type {in_a_line(target)}, which is not one of {', '.join(_TARGETS)}")
    entry: dict[str, Any] = {"type": "Timestamp", "timestampType": _TARGETS[target]}
    if settings.get("field"):
        entry["field"] = _name(settings["field"])
    if settings.get("format"):
        try:
            check_timestamp_format(settings["format"])
        except ValueError as error:
            raise ValueError(f"has a format that {error}") from None
        entry["timestampFormat"] = settings["format"]
    elif target == "string":
        raise ValueError("has no format for the target.type string")
    if (unit := settings.get("unix.precision", "milliseconds")) != "milliseconds":
        entry["unit"] = parse_choice(unit, _UNITS)
    yield entry


def _filter(settings: Settings) -> Iterator[dict[str, Any]]:
    yield {"type": "Filter"}


def _tombstones(settings: Settings) -> Entries:
    """Confluent's handler of tombstones."""
    match settings.get("behavior", "drop_silent").lower():
        case "drop_silent" | "drop_warn":
            if settings.get("predicate"):
                raise ValueError("has a predicate beside its own condition")
            return [{"type": "Filter", "when": {"tombstone": True}}]
        case "ignore":
            return []
    raise ValueError("rejects tombstones: use errors.onNullValue: Fail")


def _required(found: list[str], key: str) -> list[str]:
    if not found:
        raise ValueError(f"has no {key}")
    return found


def _unwrap(settings: Settings) -> Entries:
    """Debezium's new record state."""
    known = (_MODE, *_OLD_MODES, "add.fields", "add.fields.prefix", *_COMMON)
    if unknown := sorted(set(settings) - {*known}):
        raise ValueError(f"has the key {in_a_line(unknown[0])}, which is not converted")
    if settings.get("add.fields.prefix", "__") != "__":
        raise ValueError("has another add.fields.prefix than __")
    deletes = _deletes(settings)
    added = _names(settings.get("add.fields", ""))
    if any(":" in each for each in added):
        raise ValueError("gives names to fields in add.fields")
    return [{"type": "Unwrap", "deletes": deletes, **({"addFields": added} if added else {})}]


def _deletes(settings: Settings) -> str:
    """The handling of deletes, also by the two keys that Debezium had before 2.5."""
    old = [key for key in _OLD_MODES if key in settings]
    if old and _MODE in settings:
        raise ValueError(f"has both {_MODE} and {old[0]}")
    try:
        if not old:
            return parse_choice(settings.get(_MODE, "tombstone"), _DELETES)
        drops = parse_boolean(settings.get("drop.tombstones", "true"))
        mode = parse_choice(settings.get("delete.handling.mode", "drop"), {each: each for each in _OLD_DELETES})
    except ValueError as error:
        raise ValueError(f"has a {old[0] if old else _MODE} that {error}") from None
    found = _OLD_DELETES[mode][drops]
    if not found:
        raise ValueError("writes deletes and tombstones (delete.handling.mode=none, drop.tombstones=false)")
    return found


_MODE: Final = "delete.tombstone.handling.mode"
_OLD_MODES: Final = ("delete.handling.mode", "drop.tombstones")
_OLD_DELETES: Final = {
    "drop": ("Tombstone", "Drop"),
    "rewrite": ("RewriteWithTombstone", "Rewrite"),
    "none": ("", "Tombstone"),
}
"""The handling of deletes by the old mode, without and with `drop.tombstones`."""
_DELETES: Final = {
    "drop": "Drop",
    "tombstone": "Tombstone",
    "delete-to-tombstone": "Tombstone",
    "rewrite": "Rewrite",
    "rewrite-with-tombstone": "RewriteWithTombstone",
}
_OTHERS: Final[dict[str, Callable[[Settings], Entries]]] = {
    "io.confluent.connect.transforms.TombstoneHandler": _tombstones,
    "io.debezium.transforms.ExtractNewRecordState": _unwrap,
}
"""The transforms of others."""

_Make = tuple[Callable[[Settings], Iterator[dict[str, Any]]], tuple[str, ...]]
_OF_KAFKA: Final[dict[str, _Make]] = {
    "InsertField": (
        _insert,
        ("topic.field", "partition.field", "offset.field", "timestamp.field", "static.field", "static.value"),
    ),
    "ReplaceField": (_replace, ("include", "exclude", "renames", "whitelist", "blacklist")),
    "MaskField": (_mask, ("fields", "replacement")),
    "Cast": (_cast, ("spec",)),
    "Flatten": (_flatten, ("delimiter",)),
    "ExtractField": (_extract, ("field",)),
    "HoistField": (_hoist, ("field",)),
    "TimestampConverter": (_timestamp, ("field", "target.type", "format", "unix.precision")),
    "Filter": (_filter, ()),
}
"""The transforms of Kafka, with their keys."""
