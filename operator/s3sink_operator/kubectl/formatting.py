"""Pieces of text that the views are made of: tables, ages, counts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from s3sink_operator.types import to_ms

NONE: Final = "-"
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
_BYTES: Final = (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def format_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as kubectl sets them: as wide as they need, three spaces between, nothing behind the last."""
    lines = [head, *rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    return "\n".join(
        "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def format_duration(seconds: float) -> str:
    """A length of time in the two largest units that count: 45s, 12m, 3h20m, 8d."""
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
    """How long ago one of Kubernetes' times is; `now` in ms since the epoch."""
    at = to_ms(stamp)
    return NONE if at is None else format_duration((now - at) / 1000)


def format_until(stamp: str | None, now: int) -> str:
    """When one of Kubernetes' times comes."""
    at = to_ms(stamp)
    if at is None:
        return NONE
    return f"in {format_duration((at - now) / 1000)} (at {stamp})" if at > now else "now"


def format_count(number: object) -> str:
    """A count with separators; a dash for none."""
    return f"{number:,}" if isinstance(number, int) else NONE


def pluralize(number: object, thing: str) -> str:
    """A count and what is counted: 1 object, 2 objects."""
    return f"{format_count(number)} {thing}{'' if number == 1 else 's'}"


def format_bytes(number: object) -> str:
    """Bytes for people."""
    if not isinstance(number, int):
        return NONE
    for unit, each in _BYTES:
        if number >= each:
            return f"{number / each:.1f} {unit}"
    return f"{number} B"
