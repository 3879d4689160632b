"""Formats tables, ages, durations and counts. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from s3sink_operator.types import to_ms, to_timestamp

NONE: Final = "-"
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
_CONTROL: Final = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_BYTES: Final = (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def printable(text: str) -> str:
    """The text with escapes in place of control characters, which a terminal would obey, and of halves of characters,
    which UTF-8 cannot encode. Lines are kept. Messages and specs are by other users; kubectl escapes them, too. JSON
    stays valid: the escapes are those of JSON."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def format_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in the layout of kubectl: columns of minimum width, separated by three spaces."""
    lines = [head, *rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    return "\n".join(
        "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def format_duration(seconds: float) -> str:
    """A duration in its two largest units: 45s, 12m, 3h20m, 8d."""
    left = max(0, int(seconds))
    parts: list[str] = []
    for unit, size in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
        elif parts:
            break
        if len(parts) == 2:
            break
    return "".join(parts) or "0s"


def format_age(stamp: str | None, now: int) -> str:
    """The age of a Kubernetes timestamp; `now` in ms since the epoch."""
    return format_since(to_ms(stamp), now)


def format_since(at: int | None, now: int) -> str:
    """The time since `at`; both in ms since the epoch."""
    return NONE if at is None else format_duration((now - at) / 1000)


def format_until(at: int | None, now: int) -> str:
    """The time until `at`; both in ms since the epoch."""
    if at is None:
        return NONE
    return f"in {format_duration((at - now) / 1000)} (at {to_timestamp(at)})" if at > now else "now"


def format_count(number: object) -> str:
    """A count with separators; a dash for None."""
    return f"{number:,}" if isinstance(number, int) else NONE


def pluralize(number: object, thing: str) -> str:
    """A count with its noun: 1 object, 2 objects."""
    return f"{format_count(number)} {thing}{'' if number == 1 else 's'}"


def format_bytes(number: object) -> str:
    """Bytes in a binary unit."""
    if not isinstance(number, int):
        return NONE
    for unit, each in _BYTES:
        if number >= each:
            return f"{number / each:.1f} {unit}"
    return f"{number} B"
