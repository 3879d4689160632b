"""Fixed limits of the depth of values and of schema texts.

Without them the recursion limit of Python would decide, which depends on the depth of the caller's stack: a value could
be accepted when an object is written and rejected when it is rebuilt. What is within the limits needs at most 700
of the 1,000 calls that Python allows by default. A RecursionError therefore means that a limit is exceeded.
"""

from __future__ import annotations

import re
from typing import Final

from sink_job.schemas.errors import InvalidSchema
from sink_job.schemas.limits import MAX_DEPTH

MAX_VALUE_DEPTH: Final = MAX_DEPTH
"""The maximum number of nested structs, arrays and maps of a decoded value. Members of unions count as structs."""

MAX_TEXT_DEPTH: Final = 256
"""The maximum number of nested arrays and objects of a JSON text."""

MAX_SCHEMA_TEXT_DEPTH: Final = 400
"""The same for the text of a schema. Types at their maximum depth need 300."""

VALUE_TOO_DEEP: Final = f"the value is nested deeper than {MAX_VALUE_DEPTH} levels"
TEXT_TOO_DEEP: Final = f"the value is nested deeper than {MAX_TEXT_DEPTH} levels"
SCHEMA_TEXT_TOO_DEEP: Final = f"is nested deeper than {MAX_SCHEMA_TEXT_DEPTH} levels"

_TOKENS: Final = re.compile(rb'[\[{]|[\]}]|"(?:[^"\\]|\\.)*"')


def is_value_too_deep(value: object) -> bool:
    """Whether a decoded value has more than MAX_VALUE_DEPTH nested dicts and lists."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(MAX_VALUE_DEPTH):
        level = [inner for each in level for inner in _inner(each) if isinstance(inner, (dict, list))]
        if not level:
            return False
    return True


def _inner(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def is_text_too_deep(text: bytes, limit: int = MAX_TEXT_DEPTH) -> bool:
    """Whether a JSON text, which must be valid, has more than `limit` nested arrays and objects."""
    if len(text) <= 2 * limit or text.count(b"[") + text.count(b"{") <= limit:
        return False
    depth = 0
    for token in _TOKENS.finditer(text):
        first = text[token.start()]
        if first in b"[{":
            depth += 1
            if depth > limit:
                return True
        elif first in b"]}":
            depth -= 1
    return False


def check_schema_text(text: str, what: str) -> None:
    """Raises InvalidSchema if the text of a schema, which must be valid JSON, is nested too deeply."""
    if is_text_too_deep(text.encode(), MAX_SCHEMA_TEXT_DEPTH):
        raise InvalidSchema(f"{what} {SCHEMA_TEXT_TOO_DEEP}")
