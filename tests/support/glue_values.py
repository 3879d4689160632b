"""Values that the Java serializer of AWS Glue has written (`tests/data/registry/glue_values.json`)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from tests.support.apicurio_values import WrittenValue, flight

_FILE: Final = Path(__file__).parents[1] / "data" / "registry" / "glue_values.json"
RUNS: Final = ("uncompressed", "zlib")
_ID: Final = slice(2, 18)


def schema_texts() -> list[str]:
    """The texts of the two schemas."""
    return list(_content()["texts"])


def schema_ids() -> list[str]:
    """The ids of the two schemas when the values were written."""
    return list(_content()["ids"])


def written_values(run: str, ids: Sequence[str]) -> list[WrittenValue]:
    """The values of a run, with other ids of the two schemas."""
    found = _content()["runs"][run]
    new = {UUID(old).bytes: UUID(schema_id).bytes for old, schema_id in zip(schema_ids(), ids, strict=True)}
    values = (bytes.fromhex(text) for text in found["values"])
    return [
        WrittenValue(flight(number), value[:2] + new[value[_ID]] + value[18:], [])
        for number, value in enumerate(values, found["first"])
    ]


@cache
def _content() -> Any:
    return json.loads(_FILE.read_text())
