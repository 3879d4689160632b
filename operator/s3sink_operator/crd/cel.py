"""A CEL rule of the CustomResourceDefinition, and CEL expressions for texts, lists, sizes and durations."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable
from typing import Any, Final

from sink_job.api.units.quantities import DURATION_HINT, DURATION_PATTERN, parse_duration

_FIELD: Final = re.compile(r"spec(\.[a-zA-Z0-9]+)+")
LOOPBACK_URL: Final = r"'(?i)^http://(([a-z0-9_.-]+[.])?localhost|127[.][0-9.]+|\\[[0:]*1\\])(:|/|$)'"
"""A URL without TLS on loopback, as a CEL pattern."""


@dataclasses.dataclass(frozen=True)
class CelRule:
    """`path`: the field of `self` (`spec.kafka`; empty: the object). `message`: the error and the action to take. It
    begins with the field in error, which becomes the field of the API server's error if it is below `path`."""

    path: str
    cel: str
    message: str

    def manifest(self) -> dict[str, Any]:
        """The rule in the format of a CustomResourceDefinition."""
        field = {} if self.field_path is None else {"fieldPath": self.field_path}
        return {"rule": self.cel, "message": self.message} | field

    @property
    def field_path(self) -> str | None:
        """The field in error relative to `path`, such as `.duration`; None for the field at `path` itself."""
        named = _FIELD.match(self.message)
        if named is None or not self.path or not named[0].startswith(f"{self.path}."):
            return None
        return named[0].removeprefix(self.path)


def cel_list(words: Iterable[str]) -> str:
    return "[" + ", ".join(cel_text(word) for word in words) + "]"


def cel_text(word: str) -> str:
    """`word` as a CEL string literal."""
    return json.dumps(word, ensure_ascii=False)


def cel_size(value: str) -> str:
    return f"quantity(string({value}))"


def compare_duration(value: str, compared: str, ms: int) -> str:
    """Compares a duration with `ms` milliseconds, at most a day, in the notation of the job. CEL has no days: those
    above one are longer than any limit."""
    days = f"duration({value}.matches('^0*1d') ? '24h' : '0s')"
    rest = f"duration('0s' + {value}.substring({value}.indexOf('d') + 1))"
    few_days = f"(!{value}.contains('d') || {value}.matches('^0*1?d'))"
    known = f"!{few_days} ||" if compared == ">=" else f"{few_days} &&"
    return f"!{is_duration(value)} || ({known} {days} + {rest} {compared} duration('{ms}ms'))"


def is_duration(value: str) -> str:
    """Whether a text is a duration. Rules about its value hold for other texts: `duration_notation` rejects those."""
    return f"({value} != '' && {value}.matches({cel_text(DURATION_PATTERN)}))"


def duration_notation(path: str) -> CelRule:
    """The rule for the notation of a duration: the message of a pattern would be the regular expression. Sizes keep
    their pattern: without a maximum length the API server would reject such a rule for its estimated cost."""
    return CelRule(path, is_duration("self"), f"{path} is not a duration: {DURATION_HINT}")


def bound(kind: str, path: str, which: str, limit: str) -> CelRule:
    """The rule for the `minimum` or `maximum` of a size or duration."""
    most = which == "maximum"
    if kind == "size":
        cel = f"{cel_size('self')}.compareTo(quantity({cel_text(limit)})) {'<=' if most else '>='} 0"
    elif most:
        cel = compare_duration("self", "<=", parse_duration(limit))
    elif limit == "1ms":
        cel = "self.matches('[1-9]')"
    else:
        cel = compare_duration("self", ">=", parse_duration(limit))
    above = "above the maximum" if most else "below the minimum"
    return CelRule(path, cel, f"{path} is {above} of {limit}: write {limit} or {'less' if most else 'more'}")


def either(condition: str, *others: str) -> str:
    return " || ".join([condition, *others])
