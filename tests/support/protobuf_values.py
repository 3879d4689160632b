"""Protobuf values that Java serializers have written (`tests/data/registry/protobuf_values.json`)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

_FILE: Final = Path(__file__).parents[1] / "data" / "registry" / "protobuf_values.json"


@dataclass(frozen=True)
class WrittenMessage:
    """A value with its headers, and the message that it contains, as s3sink writes it."""

    message: dict[str, Any]
    value: bytes
    headers: list[tuple[str, bytes]]


def schema_text() -> str:
    """The text that the serializers registered."""
    return str(_content()["text"])


def glue_id() -> str:
    """The id of the schema in AWS Glue."""
    return str(_content()["id"])


def written_messages(run: str) -> list[WrittenMessage]:
    """The values of a run of a serializer, such as `3.1.7 content id`."""
    found = _content()["runs"][run]
    return [
        WrittenMessage(
            message(number),
            bytes.fromhex(each["value"]),
            [(name, bytes.fromhex(value)) for name, value in each["headers"]],
        )
        for number, each in enumerate(found["records"], found["first"])
    ]


def message(number: int) -> dict[str, Any]:
    """The message with this number."""
    text = f"ä{number % 3}"
    if number % 2:
        return {"number": number, "reason": {"text": text}}
    return {"number": number, "carrier": text, "seats": {"a": number}}


@cache
def _content() -> Any:
    return json.loads(_FILE.read_text())
