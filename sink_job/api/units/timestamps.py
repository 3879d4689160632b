"""Points in time: RFC 3339 text or milliseconds since 1970-01-01 UTC in a manifest, integers (ms) in code."""

from __future__ import annotations

import dataclasses
import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

TIMESTAMP_PATTERN: Final = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})$"
)
MAX_TIMESTAMP: Final = 2**53 - 1
_TIMESTAMP = re.compile(TIMESTAMP_PATTERN)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HINT = "use a time with its zone such as 2025-11-03T10:00:00Z, or milliseconds since 1970-01-01 UTC"


def parse_timestamp(text: str) -> int:
    """Milliseconds since the epoch of RFC 3339 text, rounded down. Raises ValueError with the correct form."""
    try:
        at = datetime.fromisoformat(text.upper()) if _TIMESTAMP.fullmatch(text) else None
    except ValueError:
        at = None
    if at is None:
        raise ValueError(f"is not a timestamp: {_HINT}")
    return (at - _EPOCH) // timedelta(milliseconds=1)


@dataclasses.dataclass(frozen=True)
class Timestamp:
    """Annotation: `2025-11-03T10:00:00Z` or milliseconds in the manifest, `int` milliseconds in code."""

    def checked(self, value: object) -> int:
        """The milliseconds. Raises ValueError."""
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise ValueError(f"is not a timestamp: {_HINT}")
        ms = parse_timestamp(value) if isinstance(value, str) else value
        if not 0 <= ms <= MAX_TIMESTAMP:
            raise ValueError("is before 1970" if ms < 0 else f"is above the maximum of {MAX_TIMESTAMP} ms")
        return ms

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.checked)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        kind = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
        bounds = {"minimum": 0, "maximum": MAX_TIMESTAMP}
        return kind | {"pattern": TIMESTAMP_PATTERN, "x-s3sink-type": "timestamp"} | bounds
