"""Field errors of a manifest as sentences: `spec.s3.partSize: 4Mi is below S3's minimum of 5Mi`.

A sentence contains the path as in the manifest, the value, and what is allowed. It never shows a value that may be a
secret.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, get_args

from sink_job.api.rules.reserved_properties import (
    HIDDEN,
    is_secret,
    kafka_property_error,
    looks_secret,
    spark_property_error,
)

if TYPE_CHECKING:  # the command `convert` shows values without pydantic
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

Path = tuple[int | str, ...]

_MAPS_OF_USER: Final = ("properties", "sparkConf")
_NEVER_SHOWN: Final = ("credentials", "caSecret", "clientSecret", "propertySecrets", "podTemplate")
_MAX_SHOWN: Final = 80
_CLASS_SUFFIXES: Final = ("Converter", "Format", "Partitioner", "TimestampExtractor")
_RENAMED_VALUES: Final[dict[tuple[str, object], tuple[str, str]]] = {
    ("mode", "Off"): ("Off", "Disabled"),
    ("mode", False): ("Off", "Disabled"),
    ("converter", "JsonEnvelope"): ("JsonEnvelope", "ConnectJson"),
    ("keyConverter", "JsonEnvelope"): ("JsonEnvelope", "ConnectJson"),
}
"""Previous and present values by the name of their field. YAML 1.1 reads a plain Off as the boolean false."""
_FORMAT: Final[Path] = ("spec", "format")
_RENAMED_FIELDS: Final[dict[Path, Path]] = {
    (*_FORMAT, "gzipLevel"): (*_FORMAT, "compression", "level"),
    (*_FORMAT, "zstdLevel"): (*_FORMAT, "compression", "level"),
    (*_FORMAT, "rowGroup"): (*_FORMAT, "parquet", "rowGroup"),
    (*_FORMAT, "dictionary"): (*_FORMAT, "parquet", "dictionary"),
    (*_FORMAT, "timeUnit"): (*_FORMAT, "parquet", "timeUnit"),
    (*_FORMAT, "bloomFilters"): (*_FORMAT, "parquet", "bloomFilters"),
    (*_FORMAT, "avroBlock"): (*_FORMAT, "avro", "block"),
    (*_FORMAT, "connectNames"): (*_FORMAT, "avro", "connectNames"),
    (*_FORMAT, "bytesSeparator"): (*_FORMAT, "bytes", "separator"),
    (*_FORMAT, "bytesExtension"): (*_FORMAT, "bytes", "extension"),
    ("spec", "errors", "deadLetterTopic"): ("spec", "errors", "deadLetters", "topic"),
}
"""Present paths by the previous ones."""
_CONNECTOR_NAMES: Final = {"TimeBased": "Time", "ByteArray": "Bytes", "String": "Text"}

_AS_TEXT: Final = ": put a field list into spec.format.schema.text, as text after `text: |`"
_HINTS: Final[dict[Path, str]] = {
    ("spec", "format", "schema"): _AS_TEXT,
    ("spec", "format", "schema", "fields"): _AS_TEXT,
    ("spec", "format", "schema", "text"): ": write it as text, after `text: |`",
}
"""What to do about a list at a place for a schema, or a field with this name."""

_WRONG_TYPE: Final = {
    "string_type": "is not text",
    "int_type": "is not a whole number",
    "float_type": "is not a number",
    "bool_type": "is not true or false",
    "list_type": "is not a list",
    "dict_type": "is not a mapping",
    "model_type": "is not a mapping",
    "model_attributes_type": "is not a mapping",
}


@dataclasses.dataclass(frozen=True)
class FieldError:
    """One error. `path` is the field to correct. `sentence` starts with the value of the field, if it has one.

    `depends` lists other paths that this error depends on. If the value at one of them is itself invalid, this error
    may be a false one.
    """

    path: Path
    sentence: str
    depends: tuple[Path, ...] = ()

    def __str__(self) -> str:
        return f"{dotted(self.path)}: {self.sentence}"


def dotted(path: Path) -> str:
    """`path` as text: spec.kafka.topics[0], spec.kafka.properties[sasl.jaas.config]."""
    words = ""
    for step in path:
        plain = isinstance(step, str) and re.fullmatch(r"[\w-]+", step)
        words += f".{step}" if plain else f"[{in_a_line(str(step))}]"
    return words.removeprefix(".") or "the manifest"


def shown(path: Path, value: object) -> str:
    """`value` as in the manifest. Secrets, mappings and lists are replaced by a word."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple | set):
        return "a list"
    if _hidden(path):
        return HIDDEN
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value)
    return in_a_line(str(value))


def in_a_line(text: str) -> str:
    """`text` for use in a sentence: shortened, quoted if it has blanks or quotes, hidden if it may be a secret."""
    if looks_secret(text):
        return HIDDEN
    plain = re.fullmatch(r"[^\s\"]+", text) and text.isprintable()
    return _shortened(text) if plain else _quoted(text)


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"


def _quoted(text: str) -> str:
    return json.dumps(_shortened(text), ensure_ascii=not text.isprintable())


def _hidden(path: Path) -> bool:
    if any(step in _NEVER_SHOWN for step in path):
        return True
    return len(path) > 1 and path[-2] in _MAPS_OF_USER and is_secret(str(path[-1]))


def of_pydantic(error: ErrorDetails, root: type[BaseModel]) -> FieldError:
    """A pydantic error as a field error of the manifest with the model `root`."""
    path, kind, value = error["loc"], error["type"], error.get("input")
    bounds = error.get("ctx", {})
    if kind == "missing":
        return FieldError(path, _missing(field_at(root, path)))
    if kind == "extra_forbidden":
        return _unknown(path, root)
    if kind in _WRONG_TYPE:
        return FieldError(path, _wrong_type(path, kind, value))
    if kind == "enum":
        return FieldError(path, _not_one_of(path, value, str(bounds["expected"])))
    message = str(bounds["error"]) if kind == "value_error" else _out_of_bounds(kind, bounds) or error["msg"]
    return FieldError(path, message if value in ("", []) else f"{shown(path, value)} {message}")


def _missing(field: FieldInfo | None) -> str:
    if field is None:
        return "is missing"
    what = " ".join((field.description or "").split()).rstrip(".")
    example = f", for example {field.examples[0]}" if field.examples and isinstance(field.examples[0], str) else ""
    return f"is missing: {what[:1].lower()}{what[1:]}{example}"


def _wrong_type(path: Path, kind: str, value: object) -> str:
    error = _property_error(path)
    if error:
        return error
    written = shown(path, value)
    if isinstance(value, str) and written != HIDDEN:
        written = _quoted(value)
        if kind == "list_type" and (items := re.split(r"[,\s]+", value.strip(", \n"))) != [""]:
            return f"{written} {_WRONG_TYPE[kind]}: write [{_shortened(', '.join(map(in_a_line, items)))}]"
    if isinstance(value, str) and path == (*_FORMAT, "compression"):
        return f"{written} {_WRONG_TYPE[kind]}: write {{codec: {in_a_line(value)}}}"
    if isinstance(value, list) and path in _HINTS:
        return f"{written} {_WRONG_TYPE[kind]}{_HINTS[path]}"
    quote = ": put it in quotes" if kind == "string_type" and isinstance(value, bool | int | float) else ""
    return f"{written} {_WRONG_TYPE[kind]}{quote}"


def _property_error(path: Path) -> str | None:
    """The reason why a property is not allowed here. It takes precedence over an error in the value."""
    *_, section, name = ("", *path)
    check = {"properties": kafka_property_error, "sparkConf": spark_property_error}.get(str(section))
    return check(str(name)) if check else None


def _not_one_of(path: Path, value: object, expected: str) -> str:
    allowed = re.findall(r"'([^']*)'", expected)
    known = _RENAMED_VALUES.get((str(path[-1]), value)) if isinstance(value, str | bool) else None
    before, renamed = known or ("", "")
    if renamed in allowed:
        return f"{shown(path, value)} is not one of {', '.join(allowed)}: {before} is now {renamed}"
    near = _of_connector(str(value), allowed) or _nearest(str(value), allowed)
    hint = f"; did you mean {near}?" if near else ""
    return f"{shown(path, value)} is not one of {', '.join(allowed)}{hint}"


def _of_connector(value: str, allowed: Sequence[str]) -> str | None:
    """The value equivalent to a class of Kafka Connect: Time for …partitioner.TimeBasedPartitioner."""
    name = value.rpartition(".")[2]
    for suffix in _CLASS_SUFFIXES:
        name = name.removesuffix(suffix)
    name = _CONNECTOR_NAMES.get(name, name)
    return name if name in allowed else None


def _out_of_bounds(kind: str, bounds: dict[str, Any]) -> str | None:
    sentences = {
        "greater_than_equal": "is below the minimum of {ge}",
        "less_than_equal": "is above the maximum of {le}",
        "string_too_short": "is empty",
        "string_too_long": "is longer than {max_length} characters",
        "too_short": "is empty: set at least one entry",
        "too_long": "has more than {max_length} entries",
        "int_parsing_size": "is too large",
    }
    return sentences[kind].format(**bounds) if kind in sentences else None


def _unknown(path: Path, root: type[BaseModel]) -> FieldError:
    """The error for an unknown field. It depends on the field that the user probably meant."""
    message = f"is not a field of {dotted(path[:-1])}"
    if path in _HINTS:
        return FieldError(path, f"{message}{_HINTS[path]}", (path[:-1],))
    if path in _RENAMED_FIELDS:
        return FieldError(path, f"{message}: it is now {dotted(_RENAMED_FIELDS[path])}", (_RENAMED_FIELDS[path],))
    suggestion = _suggestion(str(path[-1]), path[:-1], root)
    if suggestion is None:
        return FieldError(path, message)
    near = suggestion[-1] if suggestion[:-1] == path[:-1] else dotted(suggestion)
    return FieldError(path, f"{message}; did you mean {near}?", (suggestion,))


def _suggestion(name: str, parent: Path, root: type[BaseModel]) -> Path | None:
    """The field probably meant by `name`: a similar name in the section `parent`, or the same name elsewhere."""
    elsewhere = _elsewhere(root).get(_plain(name))
    if elsewhere and "." in name:  # a key of the connector
        return elsewhere
    model = model_at(root, parent)
    near = _nearest(name, [str(field.alias) for field in model.model_fields.values()]) if model else None
    return (*parent, near) if near else elsewhere


def _plain(word: str) -> str:
    return re.sub(r"[^a-z0-9]", "", word.lower())


def _nearest(word: str, words: Sequence[str]) -> str | None:
    by_plain = {_plain(each): each for each in words}
    near = difflib.get_close_matches(_plain(word), by_plain, n=1, cutoff=0.7)
    return by_plain[near[0]] if near else None


@cache
def _elsewhere(root: type[BaseModel]) -> dict[str, Path]:
    """Fields by plain name and by connector key, to suggest a field of another section."""
    found: dict[str, Path] = {}
    for path, field in every_field(root):
        keys = connector_key(field).split(", ")
        for name in (str(field.alias), *keys, *(key.removeprefix("value.converter.") for key in keys)):
            found.setdefault(_plain(name), path)
    found.pop("", None)
    return found


def every_field(model: type[BaseModel], path: Path = ()) -> Iterator[tuple[Path, FieldInfo]]:
    """Every field below `model` with its path. Items of lists have the index 0."""
    for field in model.model_fields.values():
        here = (*path, str(field.alias))
        yield here, field
        inner = section_of(field)
        if inner:
            yield from every_field(inner, (*here, 0) if is_list(field) else here)


def section_of(field: FieldInfo) -> type[BaseModel] | None:
    """The section in a field, also if it is optional or an item of a list; None for a plain value."""
    from pydantic import BaseModel

    pending: list[Any] = [field.annotation]
    while pending:
        kind = pending.pop()
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind
        pending.extend(get_args(kind))
    return None


def connector_key(field: FieldInfo) -> str:
    """The equivalent connector key of a field; empty if there is none."""
    extra = field.json_schema_extra
    return str(extra.get("x-s3sink-connector-key", "")) if isinstance(extra, dict) else ""


def is_list(field: FieldInfo) -> bool:
    """True if a field holds a list."""
    return any(getattr(kind, "__origin__", None) is list for kind in (field.annotation, *get_args(field.annotation)))


def model_at(root: type[BaseModel], path: Path) -> type[BaseModel] | None:
    """The section at `path`, or None."""
    model: type[BaseModel] | None = root
    for step in path:
        if model is None:
            return None
        if isinstance(step, int):
            continue
        field = next((field for field in model.model_fields.values() if field.alias == step), None)
        model = section_of(field) if field else None
    return model


def field_at(root: type[BaseModel], path: Path) -> FieldInfo | None:
    """The field at `path`, or None."""
    model = model_at(root, path[:-1])
    if model is None:
        return None
    return next((field for field in model.model_fields.values() if field.alias == path[-1]), None)
