"""Values that Apicurio's Java serializers have written (`tests/data/registry/apicurio_values.json`)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

_FILE: Final = Path(__file__).parents[1] / "data" / "registry" / "apicurio_values.json"
CONTENT_IDS: Final = (1, 3)
GLOBAL_IDS: Final = (2, 3)
"""The ids of the two schemas."""


@dataclass(frozen=True)
class WrittenValue:
    """A value with its headers, and the flight that it contains."""

    flight: dict[str, Any]
    value: bytes
    headers: list[tuple[str, bytes]]


@cache
def schema_texts() -> tuple[str, ...]:
    """The texts of the two schemas."""
    return tuple(_content()["texts"])


@cache
def written_values(run: str) -> tuple[WrittenValue, ...]:
    """The values of a run of a serializer, such as `3.1.7 content id`."""
    found = _content()["runs"][run]
    return tuple(
        WrittenValue(
            flight(number),
            bytes.fromhex(each["value"]),
            [(name, bytes.fromhex(value)) for name, value in each["headers"]],
        )
        for number, each in enumerate(found["records"], found["first"])
    )


def flight(number: int) -> dict[str, Any]:
    """The flight with this number. Odd ones have the second schema."""
    found: dict[str, Any] = {"number": number, "carrier": f"ä{number % 3}"}
    return found | ({"seats": None if number % 4 == 1 else number} if number % 2 else {})


@cache
def _content() -> Any:
    return json.loads(_FILE.read_text())
