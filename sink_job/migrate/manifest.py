"""The text of a manifest: fields in the order of docs/spec.md, each with a comment, as YAML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*|[0-9]+(?:ms|[dhmsk]|[KMGT]i?)(?:[0-9]+(?:ms|[hms]))*")
_WORDS_OF_YAML = re.compile(r"(?i)y|n|yes|no|on|off|true|false|null|nan|inf")
_MAX_FLOW: Final = 90

ORDER: Final = [
    "kafka.bootstrapServers",
    "kafka.topics",
    "kafka.topicsPattern",
    "kafka.groupId",
    "kafka.startingOffsets",
    "kafka.isolationLevel",
    "kafka.login",
    "kafka.properties",
    "kafka.propertySecrets",
    "format.converter",
    "format.output",
    "format.compression",
    "format.avro",
    "format.parquet",
    "format.bytes",
    "format.registry.type",
    "format.registry.url",
    "format.registry.insecure",
    "format.registry.region",
    "format.registry",
    "format.inference",
    "format.unknownFields",
    "format.decimals",
    "format.logicalTypes",
    "format.envelope",
    "transforms",
    "partitioner.type",
    "partitioner.fields",
    "partitioner.duration",
    "partitioner.pathFormat",
    "partitioner.timezone",
    "partitioner.locale",
    "partitioner.timestampExtractor",
    "partitioner.timestampField",
    "partitioner.schemaName",
    "rotation.flushSize",
    "rotation.interval",
    "rotation.scheduleInterval",
    "rotation.onPathChange",
    "rotation.maxOpenObjects",
    "schemaCompatibility",
    "s3.bucket",
    "s3.region",
    "s3.endpoint",
    "s3.insecure",
    "s3.pathStyle",
    "s3.credentials",
    "s3.assumeRole",
    "s3.accelerate",
    "s3.proxy",
    "s3.encryption",
    "s3.acl",
    "s3.tags",
    "s3.offsetTags",
    "s3.onTagError",
    "s3.topicsDir",
    "s3.prefixes",
    "s3.topicInPath",
    "s3.directoryDelimiter",
    "s3.fileDelimiter",
    "s3.offsetPadWidth",
    "s3.partSize",
    "errors.tolerance",
    "errors.onNullValue",
    "errors.tombstonePath",
    "errors.deadLetters.topic",
    "errors.deadLetters.headers",
    "errors.deadLetters.nullValues",
    "state",
]
"""The fields that a conversion sets, in the order of the manifest. Others follow the section that has a place."""


@dataclass(frozen=True, slots=True)
class Line:
    """The value of a field, and where it comes from. In a list, items can have comments of their own."""

    value: Any
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a list with its comment."""

    value: Any
    comment: str = ""


def scalar(value: Any) -> str:
    """A value as YAML, on one line, which YAML 1.1 and 1.2 read as the same."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{scalar(key)}: {scalar(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(scalar(each) for each in value) + "]"
    text = str(value)
    if _PLAIN.fullmatch(text) and not _WORDS_OF_YAML.fullmatch(text):
        return text
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    """A character between double quotes of YAML."""
    if character in ('"', "\\"):
        return f"\\{character}"
    if character.isprintable():
        return character
    return f"\\U{ord(character):08x}" if ord(character) > 0xFFFF else f"\\u{ord(character):04x}"


def rendered(metadata: Mapping[str, str], fields: Mapping[str, Line]) -> Iterator[str]:
    """The lines of the manifest."""
    yield "apiVersion: s3sink.io/v1alpha1"
    yield "kind: S3Sink"
    yield "metadata:"
    for key, value in metadata.items():
        yield f"  {key}: {scalar(value)}"
    yield "spec:"
    yield from _section(_tree(fields), "  ")


def _tree(fields: Mapping[str, Line]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path in sorted(fields, key=_place):
        *parents, last = path.split(".")
        section = tree
        for step in parents:
            section = section.setdefault(step, {})
        section[last] = fields[path]
    return tree


def _place(path: str) -> tuple[int, str]:
    """The place of a field: that of its path, or of the longest part of it that has one."""
    steps = path.split(".")
    for length in range(len(steps), 0, -1):
        part = ".".join(steps[:length])
        if part in ORDER:
            return ORDER.index(part), ".".join(steps[length:])
    raise KeyError(path)


def _section(tree: Mapping[str, Any], indent: str) -> Iterator[str]:
    for name, inner in tree.items():
        if isinstance(inner, dict):
            yield f"{indent}{name}:"
            yield from _section(inner, indent + "  ")
        else:
            yield from _field(name, inner, indent)


def _field(name: str, line: Line, indent: str) -> Iterator[str]:
    value = line.value
    if isinstance(value, Mapping) and value and all(isinstance(each, Item) for each in value.values()):
        yield f"{indent}{name}:{_comment(line.comment)}"
        for key, item in value.items():
            yield f"{indent}  {scalar(key)}: {scalar(item.value)}{_comment(item.comment)}"
        return
    if isinstance(value, list) and (any(isinstance(each, Item) for each in value) or len(scalar(value)) > _MAX_FLOW):
        yield f"{indent}{name}:{_comment(line.comment)}"
        for each in value:
            item = each if isinstance(each, Item) else Item(each)
            yield f"{indent}  - {scalar(item.value)}{_comment(item.comment)}"
        return
    yield f"{indent}{name}: {scalar(value)}{_comment(line.comment)}"


def _comment(text: str) -> str:
    return f" # {text}" if text else ""


def commented(text: str, *, width: int = 118) -> Iterator[str]:
    """A sentence as lines of a comment."""
    if text.startswith("kubectl "):  # to copy
        yield f"# {text}"
        return
    line, start = "", "# "
    for word in text.split():
        if line and len(start) + len(line) + len(word) + 1 > width:
            yield start + line
            line, start = word, "#   "
        else:
            line = f"{line} {word}".strip()
    if line:
        yield start + line
