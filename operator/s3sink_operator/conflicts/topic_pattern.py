"""Whether a topic matches a pattern, in time linear in both: users of other namespaces write patterns.

Python's `re` can take hours (`(a+)+b` with forty times a), so RE2 matches. Kafka's client, which lists the topics of a
sink, reads patterns as Java does. What RE2 rejects, what Java reads differently, and what takes much memory is unknown
here (docs/adr/0012).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

import re2

_ESCAPE: Final = re.compile(r"\\.", re.DOTALL)
_QUOTE_OR_OCTAL: Final = re.compile(r"\\[Q0-9C]")
_CLASS: Final = re.compile(r"\[\^?\]?([^\]]*)\]?")
_BRACE: Final = re.compile(r"\{(?!\d{1,4}(?:,\d{0,4})?\})")
_UNICODE_FLAG: Final = re.compile(r"\(\?[a-zA-Z-]*U")
_MAX_MEMORY: Final = 256 << 10
"""Bytes of a compiled pattern. With RE2's default of 8 MiB a pattern of 700 characters takes 5 MiB, and seconds."""


@lru_cache(maxsize=16384)
def matches(pattern: str, topic: str) -> bool | None:
    """Whether all of `topic`, which is ASCII, matches `pattern` as Java reads it; None: unknown."""
    compiled = _compiled(pattern)
    return None if compiled is None else compiled.fullmatch(topic) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    """The pattern for RE2; None where RE2 rejects it or Java may read it differently."""
    if _differs_in_java(pattern):
        return None
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return None


def _differs_in_java(pattern: str) -> bool:
    """Whether the pattern has a construct that RE2 accepts with another meaning than Java's."""
    if _QUOTE_OR_OCTAL.search(pattern):
        return True
    plain = _ESCAPE.sub("_", pattern)
    if any("[" in members or "&&" in members for members in _CLASS.findall(plain)):
        return True
    outside = _CLASS.sub("_", plain)
    return bool(_BRACE.search(outside) or _UNICODE_FLAG.search(outside))
