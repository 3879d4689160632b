"""The table of docs/memory.md: memory of each executor over the active topic-partitions, by the operator's own formula.

`python tools/memory_table.py` writes it; with `--check` it writes nothing and ends with 1 if the page is out of date.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from s3sink_operator.memory_sizing import SizingInputs, recommended
from sink_job.api.quantities import MI

PAGE = Path(__file__).resolve().parent.parent / "docs" / "memory.md"
BEGIN, END = "<!-- sizes: made by `python tools/memory_table.py` -->", "<!-- end of sizes -->"
EXECUTORS = (1, 2, 4, 8)
ACTIVE = (0, 2, 10, 20, 40, 100, 400, 1000)
SLOTS, PART_SIZE = 2, 25 * MI


def table() -> str:
    """The table in Markdown."""
    rows = [f"| {active:,} | " + " | ".join(_cell(active, each) for each in EXECUTORS) + " |" for active in ACTIVE]
    head = (
        "| active topic-partitions | " + " | ".join(f"{each} executor{'s' * (each > 1)}" for each in EXECUTORS) + " |"
    )
    return "\n".join([head, "|---" * (len(EXECUTORS) + 1) + "|", *rows])


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
    """The page with the current table. Raises ValueError where a mark is missing."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{PAGE.name} lacks {BEGIN} or {END}")
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def main(arguments: Sequence[str]) -> int:
    """Exit code: 0, or 1 when `--check` finds that the page is out of date."""
    text = PAGE.read_text()
    if "--check" in arguments:
        return int(page(text) != text)
    PAGE.write_text(page(text))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
