"""The subject of a schema, as the name strategies of Confluent's serializers name it. Pure.

Source: io.confluent.kafka.serializers.subject.{TopicNameStrategy, RecordNameStrategy, TopicRecordNameStrategy}.
"""

from __future__ import annotations

import itertools
import json
import re
from typing import Final

from sink_job.api.enums import SubjectNameStrategy

_PROTO_TOKEN: Final = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|//[^\n]*|/\*.*?\*/|[\w.]+|[{}=;]', re.DOTALL)


def subject_of(
    strategy: SubjectNameStrategy, topic: str, language: str, text: str, *, is_key: bool = False
) -> str | None:
    """The subject of the schema `text` of values, or with `is_key` of keys, in `topic`; None if the strategy needs a
    name and the schema has none."""
    if strategy is SubjectNameStrategy.TOPIC_NAME:
        return f"{topic}-key" if is_key else f"{topic}-value"
    name = record_name(language, text)
    if name is None or strategy is SubjectNameStrategy.RECORD_NAME:
        return name
    return f"{topic}-{name}"


def unqualified(subject: str) -> str:
    """A subject without its context: `:.staging:flights-value` is `flights-value`."""
    if subject.startswith(":."):
        return subject[1:].partition(":")[2]
    return subject


def record_name(language: str, text: str) -> str | None:
    """The full name of a schema: of an Avro record, enum or fixed; the title of a JSON Schema; the first message of a
    Protobuf schema. None if it has none."""
    match language:
        case "AVRO":
            return _avro_name(text)
        case "JSON":
            title = _object(text).get("title")
            return title if isinstance(title, str) else None
        case "PROTOBUF":
            return _message_name(text) or _described_name(text)
    return None


def _object(text: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _avro_name(text: str) -> str | None:
    schema = _object(text)
    name, namespace = schema.get("name"), schema.get("namespace")
    if not isinstance(name, str):
        return None
    return f"{namespace}.{name}" if isinstance(namespace, str) and namespace and "." not in name else name


def _described_name(text: str) -> str | None:
    """The name in a descriptor in base64, which is the form in which confluent-kafka registers schemas."""
    from sink_job.protobuf.compiler import descriptor_of  # slow; other schemas do not need it

    file = descriptor_of(text)
    if file is None or not file.message_type:
        return None
    return f"{file.package}.{file.message_type[0].name}".removeprefix(".")


def _message_name(text: str) -> str | None:
    tokens = [token for token in _PROTO_TOKEN.findall(text) if not token.startswith(("//", "/*", '"', "'"))]
    package, depth = "", 0
    for token, following in itertools.pairwise(tokens):
        depth += (token == "{") - (token == "}")
        if depth == 0 and token == "package":
            package = following
        if depth == 0 and token == "message":
            return f"{package}.{following}" if package else following
    return None
