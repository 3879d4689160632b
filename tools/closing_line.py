"""Adds the closing lines of several pytest runs to one: `python tools/closing_line.py LOG...` prints it last.

Each log is the output of one run. The exit code is 1 when a log has no closing line or one with failures or errors.
"""

from __future__ import annotations

import datetime
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

_CLOSING = re.compile(r"^=* ?(?P<counts>\d+ [a-z]+(?:, \d+ [a-z]+)*) in (?P<seconds>[\d.]+)s(?: \([\d:, a-z]+\))? ?=*$")
_ORDER = ("failed", "passed", "skipped", "deselected", "xfailed", "xpassed", "warnings", "errors")
_PLURALS = {"error": "errors", "warning": "warnings"}
_WIDTH = 80


def closing_line(logs: Iterable[str]) -> str:
    """The sum of the last closing line of each log, in pytest's form; ValueError when a log has none."""
    counts: Counter[str] = Counter()
    seconds = 0.0
    for number, log in enumerate(logs, 1):
        lines = [found for line in log.splitlines() if (found := _CLOSING.match(line.strip()))]
        if not lines:
            raise ValueError(f"log {number} has no closing line of pytest: the run ended early")
        seconds += float(lines[-1]["seconds"])
        for each in lines[-1]["counts"].split(", "):
            count, _, word = each.partition(" ")
            counts[_PLURALS.get(word, word)] += int(count)
    known = sorted(counts, key=lambda word: _ORDER.index(word) if word in _ORDER else len(_ORDER))
    text = ", ".join(f"{counts[word]} {word}" for word in known)
    lasted = f" ({datetime.timedelta(seconds=int(seconds))})" if seconds >= 60 else ""
    return f" {text} in {seconds:.2f}s{lasted} ".center(_WIDTH, "=")


def main() -> int:
    try:
        line = closing_line(Path(name).read_text(errors="replace") for name in sys.argv[1:])
    except ValueError as error:
        print(f"closing_line: {error}")
        return 1
    print(line)
    return int(bool(re.search(r"\d (failed|errors)", line)))


if __name__ == "__main__":
    sys.exit(main())
