"""Adds the closing lines of several pytest runs to one: `python tools/closing_line.py LOG...` prints it last.

Each log is the output of one run, and ends with the line `exit code N`. A run that failed without a failure or an error
in its closing line counts as an error: pytest was interrupted, crashed, or selected no test. The exit code is 1 when a
log has no closing line, or one with failures or errors.
"""

from __future__ import annotations

import datetime
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

_CLOSING = re.compile(r"^=* ?(?P<counts>\d+ [a-z]+(?:, \d+ [a-z]+)*) in (?P<seconds>[\d.]+)s(?: \([\d:, a-z]+\))? ?=*$")
_EXIT_CODE = re.compile(r"^exit code (?P<code>\d+)$")
_ORDER = ("failed", "passed", "skipped", "deselected", "xfailed", "xpassed", "warnings", "errors")
_PLURALS = {"error": "errors", "warning": "warnings"}
_WIDTH = 80


def closing_line(logs: Iterable[str]) -> str:
    """The sum of the last closing line of each log, in pytest's form; ValueError when a log has none, or ends without
    an exit code."""
    counts: Counter[str] = Counter()
    seconds = 0.0
    for number, log in enumerate(logs, 1):
        lines = [found for line in log.splitlines() if (found := _CLOSING.match(line.strip()))]
        if not lines:
            raise ValueError(f"log {number} has no closing line of pytest: the run ended early")
        ended = _EXIT_CODE.match(log.rstrip().rpartition("\n")[2])
        if not ended:
            raise ValueError(f"log {number} does not end with an exit code: the run ended early")
        seconds += float(lines[-1]["seconds"])
        own = _counts(lines[-1]["counts"])
        if int(ended["code"]) and not (own["failed"] or own["errors"]):
            own["errors"] = 1
        counts += own
    if not counts:
        raise ValueError("there is no log")
    known = sorted(counts, key=lambda word: _ORDER.index(word) if word in _ORDER else len(_ORDER))
    text = ", ".join(f"{counts[word]} {word}" for word in known)
    lasted = f" ({datetime.timedelta(seconds=int(seconds))})" if seconds >= 60 else ""
    return f" {text} in {seconds:.2f}s{lasted} ".center(_WIDTH, "=")


def _counts(text: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for each in text.split(", "):
        count, _, word = each.partition(" ")
        found[_PLURALS.get(word, word)] += int(count)
    return found


def main() -> int:
    try:
        line = closing_line(Path(name).read_text(errors="replace") for name in sys.argv[1:])
    except (ValueError, OSError) as error:
        print(f"closing_line: {error}")
        return 1
    print(line)
    return int(bool(re.search(r"\d (failed|errors)", line)))


if __name__ == "__main__":
    sys.exit(main())
