"""Results as JSON lines, which a later run continues, and the table that is published."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

Result = dict[str, Any]
"""A mutant's fields, with `level` (unit, simulation, survivor, not applicable), `by`, `seeds`, `result` and `source`,
which is the hash of its file; or a rule's `rule`, `text`, `seeds` and `by`."""


def read(path: Path) -> list[Result]:
    """The results of a file; a line that was cut off by a kill is left out."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found


def append(path: Path, result: Result) -> None:
    """Adds a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(result) + "\n")


def latest(found: Iterable[Result]) -> list[Result]:
    """The last result of each mutant."""
    return list({(each["name"], each["source"]): each for each in found}.values())


def rules_table(results: Iterable[Result]) -> list[str]:
    """A row for each rule that was switched off."""
    rows = ["| rule | what is omitted | found by the simulation after |", "|---|---|---|"]
    for each in results:
        found = f"{each['seeds']} runs: {each['by']}" if each["by"] else f"**not found in {each['seeds']} runs**"
        rows.append(f"| `{each['rule']}` | {each['text']} | {found} |")
    return rows


def levels_table(results: Sequence[Result]) -> list[str]:
    """A row for each package: how many mutants each level caught."""
    counted = Counter((_package(each), each["level"]) for each in results)
    rows = ["| package | mutants | unit tests | simulation | survivors |", "|---|---|---|---|---|"]
    for package in sorted({package for package, _ in counted}):
        numbers = [counted[package, level] for level in ("unit", "simulation", "survivor")]
        rows.append(f"| {package} | {sum(numbers)} | " + " | ".join(str(number) for number in numbers) + " |")
    numbers = [sum(counted[p, level] for p in {p for p, _ in counted}) for level in ("unit", "simulation", "survivor")]
    return [*rows, f"| all | {sum(numbers)} | " + " | ".join(str(number) for number in numbers) + " |"]


def seeds_of(results: Iterable[Result]) -> list[int]:
    """The numbers of runs after which the simulation caught mutants, in ascending order."""
    return sorted(each["seeds"] for each in results if each["level"] == "simulation" and each["seeds"])


def survivors(results: Iterable[Result]) -> list[str]:
    """A row for each mutant that no level caught."""
    rows = ["| place | function | operator | mutation | unit tests |", "|---|---|---|---|---|"]
    for each in results:
        if each["level"] == "survivor":
            change = f"`{_cell(each['before'])}` → `{_cell(each['after'])}`"
            unit = "did not end" if "time limit" in each["by"] else "passed"
            place = f"{each['path']}:{each['line']}"
            rows.append(f"| {place} | `{each['function']}` | {each['operator']} | {change} | {unit} |")
    return rows


def _cell(text: str) -> str:
    return (text if len(text) <= 90 else f"{text[:89]}…").replace("|", "\\|")


def _package(result: Result) -> str:
    return str(result["path"].split("/")[1])
