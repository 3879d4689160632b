"""The figures of a run, as text and JSON."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from devtools.chaos.scenario import LocatedFinding


@dataclass
class Figures:
    """Counts of a run: `injected` faults, `exits` of drivers by code, `kinds` of scenarios."""

    seed: int
    planned: int
    seconds: float = 0.0
    scenarios: int = 0
    cycles: int = 0
    verified: int = 0
    drivers: int = 0
    records: int = 0
    objects: int = 0
    bytes: int = 0
    oom_kills: int = 0
    most_partitions: int = 0
    interrupted: bool = False
    faults: Counter[str] = field(default_factory=Counter)
    injected: Counter[str] = field(default_factory=Counter)
    exits: Counter[str] = field(default_factory=Counter)
    load: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    findings: list[LocatedFinding] = field(default_factory=list)

    def line(self) -> str:
        """The run in one line."""
        return (
            f"{self.cycles} cycles in {self.scenarios} scenarios, {self.drivers} drivers, {self.records:,} records in "
            f"{self.objects:,} objects compared, {self.verified} scenarios passed verify --deep, "
            f"{self.seconds / 60:.1f} minutes, {60 * self.cycles / max(self.seconds, 1):.1f} cycles a minute, "
            f"{len(self.findings)} findings"
        )


def write(path: Path, figures: Figures) -> None:
    """Writes `path`.md and `path`.json."""
    document = {each.name: getattr(figures, each.name) for each in dataclasses.fields(figures)}
    document["findings"] = [dataclasses.asdict(each) for each in figures.findings]
    path.with_suffix(".json").write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    path.with_suffix(".md").write_text(markdown(figures))


def markdown(figures: Figures) -> str:
    """The figures as Markdown."""
    lines = ["# Chaos with real processes", "", figures.line() + ".", ""]
    lines += [f"`python -m devtools.chaos --real --cycles {figures.planned} --seed {figures.seed}`", ""]
    lines += _table("Fault", figures.faults) + _table("Injected", figures.injected)
    lines += _table("Exit code of a driver", figures.exits) + _table("Load", figures.load)
    lines += _table("Scenarios with", figures.kinds)
    if figures.findings:
        lines += ["| Cycle | Fault | Finding |", "|---|---|---|"]
        lines += [f"| {each.cycle} | {each.fault} | {_cell(each.what)} |" for each in figures.findings]
    return "\n".join(lines).rstrip() + "\n"


def _table(title: str, counts: Mapping[str, int]) -> list[str]:
    rows = [f"| {name} | {count:,} |" for name, count in sorted(counts.items()) if count]
    return [f"| {title} | |", "|---|---|", *rows, ""] if rows else []


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")[:300]
