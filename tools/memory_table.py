"""The tables of docs/memory.md: executors and their memory over the active topic-partitions, by the operator's formula.

`python tools/memory_table.py` writes them; with `--check` it writes nothing and ends with 1 if the page is out of date.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from s3sink_operator.sizing.executor_count import ScalingBounds, required
from sink_job.api.required_memory import SizingInputs, recommended
from sink_job.api.units.quantities import MI

PAGE = Path(__file__).resolve().parent.parent / "docs" / "memory.md"
BEGIN, END = "<!-- sizes: made by `python tools/memory_table.py` -->", "<!-- end of sizes -->"
NUMBERS, END_NUMBERS = "<!-- numbers: made by `python tools/memory_table.py` -->", "<!-- end of numbers -->"
EXECUTORS = (1, 2, 4, 8)
ACTIVE = (0, 2, 10, 20, 40, 100, 400, 1000)
SLOTS, PART_SIZE = 2, 25 * MI
BOUNDS = tuple(ScalingBounds(min=1, max=most, per_executor=8 * SLOTS) for most in (2, 4, 8))
SCALED = (0, 2, 16, 17, 32, 40, 64, 100, 400)


def table() -> str:
    """The table in Markdown."""
    rows = [f"| {active:,} | " + " | ".join(_cell(active, each) for each in EXECUTORS) + " |" for active in ACTIVE]
    head = (
        "| active topic-partitions | " + " | ".join(f"{each} executor{'s' * (each > 1)}" for each in EXECUTORS) + " |"
    )
    return "\n".join([head, "|---" * (len(EXECUTORS) + 1) + "|", *rows])


def table_of_numbers() -> str:
    """The table of numbers and sizes with `scaling.mode: Auto`, in Markdown."""
    heads = [f"{each.min} to {each.max} executors" for each in BOUNDS]
    rows = [f"| {active:,} | " + " | ".join(_scaled(active, each) for each in BOUNDS) + " |" for active in SCALED]
    return "\n".join(
        ["| active topic-partitions | " + " | ".join(heads) + " |", "|---" * (len(BOUNDS) + 1) + "|", *rows]
    )


def _scaled(active: int, bounds: ScalingBounds) -> str:
    number = required(active, bounds)
    return f"{number} × {_cell(active, number)}"


def size(active: int, executors: int) -> int:
    """Bytes of each executor if each active topic-partition has half a part of open objects."""
    inputs = SizingInputs(
        slots=SLOTS,
        part_size=PART_SIZE,
        executors=executors,
        open_objects=1 if active else 0,
        active_partitions=active,
        remainder_bytes=PART_SIZE // 2 if active else 0,
    )
    return recommended(inputs)


def _cell(active: int, executors: int) -> str:
    return f"{size(active, executors) // MI:,} MiB"


def page(text: str) -> str:
    """The page with the current tables. Raises ValueError where a mark is missing."""
    return _filled(_filled(text, BEGIN, table(), END), NUMBERS, table_of_numbers(), END_NUMBERS)


def _filled(text: str, first: str, content: str, last: str) -> str:
    before, begin, rest = text.partition(first)
    _, end, after = rest.partition(last)
    if not (begin and end):
        raise ValueError(f"{PAGE.name} lacks {first} or {last}")
    return f"{before}{first}\n{content}\n{last}{after}"


def main(arguments: Sequence[str]) -> int:
    """Exit code: 0, or 1 when `--check` finds that the page is out of date."""
    text = PAGE.read_text()
    if "--check" in arguments:
        return int(page(text) != text)
    PAGE.write_text(page(text))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
