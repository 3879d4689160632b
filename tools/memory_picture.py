"""The picture of docs/memory.md: memory of each executor over the active topic-partitions, by the operator's formula.

`python -m tools.memory_picture` writes docs/images/memory.svg; with `--check` it writes nothing and ends with 1 if the
picture is out of date. Both axes are logarithmic. The picture refers to nothing on the network.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sink_job.api.units.quantities import MI
from tools.memory_table import EXECUTORS, size

PICTURE: Final = Path(__file__).resolve().parent.parent / "docs" / "images" / "memory.svg"
WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 80, 120, 30, 55
TO: Final = 1000
"""Most active topic-partitions."""
X_MARKS: Final = (1, 2, 5, 10, 20, 40, 100, 200, 400, 1000)
Y_MARKS: Final = (1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384)
"""Sizes in MiB; the first and the last one are the ends of the axis, with some room above."""
Y_END: Final = 18432
COLORS: Final = {1: "#b3261e", 2: "#a85b00", 4: "#1f6f43", 8: "#1f4e9e"}
"""Dark enough on white for text."""


def _x(active: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * math.log(active) / math.log(TO)


def _y(mib: float) -> float:
    share = math.log(mib / Y_MARKS[0]) / math.log(Y_END / Y_MARKS[0])
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{text}</text>'


def _axes() -> list[str]:
    lines = []
    for mark in Y_MARKS:
        y = _y(mark)
        lines.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#d0d0d0"/>')
        lines.append(_text(LEFT - 8, y + 4, f"{mark / 1024:g} GiB", ' text-anchor="end"'))
    for mark in X_MARKS:
        x = _x(mark)
        lines.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}" stroke="#ececec"/>')
        lines.append(_text(x, HEIGHT - BOTTOM + 18, f"{mark:,}", ' text-anchor="middle"'))
    middle = (LEFT + WIDTH - RIGHT) / 2
    lines.append(_text(middle, HEIGHT - 14, "active topic-partitions", ' text-anchor="middle"'))
    lines.append(_text(LEFT, TOP - 12, "recommended memory of each executor"))
    return lines


def _curve(executors: int) -> list[str]:
    """The steps of the size, and their label at the end."""
    points: list[tuple[float, float]] = []
    before = None
    for active in range(1, TO + 1):
        mib = size(active, executors) // MI
        if mib != before:
            points += [] if before is None else [(_x(active), _y(before))]
            points.append((_x(active), _y(mib)))
            before = mib
    assert before is not None
    points.append((_x(TO), _y(before)))
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    color = COLORS[executors]
    label = f"{executors} executor{'s' * (executors > 1)}"
    return [
        f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>',
        _text(WIDTH - RIGHT + 8, _y(before) + 4, label, f' fill="{color}"'),
    ]


def picture() -> str:
    """The SVG."""
    curves = [line for executors in EXECUTORS for line in _curve(executors)]
    title = "Recommended memory of each executor over the active topic-partitions, for 1, 2, 4 and 8 executors"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="12" fill="#222222" role="img">'
    )
    background = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    return "\n".join([head, f"<title>{title}</title>", background, *_axes(), *curves, "</svg>"]) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Exit code: 0, or 1 when `--check` finds that the picture is out of date."""
    if "--check" in arguments:
        return int(not PICTURE.exists() or PICTURE.read_text() != picture())
    PICTURE.write_text(picture())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
