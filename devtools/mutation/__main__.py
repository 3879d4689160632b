"""`make mutate`: switches off the rules of the protocol one at a time, then tries random mutants of its code.

A run continues the results of an earlier one in build/mutation (mutants by the text of their file, rules by the number
of runs), so it can be interrupted. `--report` prints the tables of what is there.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import multiprocessing
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from devtools.mutation import results
from devtools.mutation.operators import Mutant, mutants
from devtools.mutation.selection import unit_tests_of
from devtools.mutation.trial import Limits, Outcome, in_child, preload, simulation, unit_tests
from devtools.simulation.mutations import MUTATIONS, search

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("ledger", "coordinator", "writer")
FOLDER = ROOT / "build/mutation"


def main(argv: Sequence[str]) -> int:
    options = _options(argv)
    if not options.report:
        end = time.monotonic() + options.minutes * 60
        if not options.no_rules:
            _rules(options, end)
        if options.sample:
            _mutants(options, end)
    for line in report():
        print(line)
    return 0


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutate", description="Mutation test of the protocol's code.")
    parser.add_argument("--sample", type=int, default=60, help="the number of mutants (0: none, default: 60)")
    parser.add_argument("--seed", type=int, default=1, help="which mutants are sampled (default: 1)")
    parser.add_argument("--only", default="", help="mutants of files whose path contains this text")
    parser.add_argument("--runs", type=int, default=250, help="simulated runs for a mutant (default: 250)")
    parser.add_argument("--rule-runs", type=int, default=2_000, help="simulated runs for a rule (default: 2,000)")
    parser.add_argument("--cpu", type=int, default=60, help="seconds of processor time for a level (default: 60)")
    parser.add_argument("--limit", type=float, default=600, help="seconds of real time for a level (default: 600)")
    parser.add_argument("--files", type=int, default=12, help="files of unit tests for a mutant (default: 12)")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at the same time (default: 1)")
    parser.add_argument("--minutes", type=float, default=60, help="starts no trial later than this (default: 60)")
    parser.add_argument("--no-rules", action="store_true", help="mutants alone")
    parser.add_argument("--again", action="store_true", help="try survivors again, with other limits or new tests")
    parser.add_argument("--report", action="store_true", help="print the tables of the results and try nothing")
    return parser.parse_args(argv)


def _rules(options: argparse.Namespace, end: float) -> None:
    path = FOLDER / "rules.jsonl"
    known = {each["rule"] for each in results.read(path) if each["by"] or each["seeds"] >= options.rule_runs}
    for name in MUTATIONS:
        if name in known or time.monotonic() > end:
            continue
        outcome = in_child(partial(_rule, name, options.rule_runs), Limits(1_800, 7_200))
        text = (inspect.getdoc(MUTATIONS[name]) or "").splitlines()[0]
        results.append(path, {"rule": name, "text": text, "seeds": outcome.seeds, "by": outcome.by})
        print(f"{name}: {outcome.seeds} runs {outcome.by}", flush=True)


def _rule(name: str, runs: int) -> Outcome:
    found = search(name, runs)
    return Outcome("missed", seeds=runs) if found is None else Outcome("caught", found[1].kind, found[0])


def _mutants(options: argparse.Namespace, end: float) -> None:
    path = FOLDER / "mutants.jsonl"
    known = {
        (each["name"], each["source"])
        for each in results.latest(results.read(path))
        if not (options.again and each["level"] == "survivor")
    }
    chosen = sample(options.only, options.sample, options.seed)
    todo = [each for each in chosen if (each.name, _hash(each.path)) not in known]
    tests = {each.path: unit_tests_of(each.path, ROOT)[: options.files] for each in todo}
    preload(
        [*sorted(_module(path) for path in tests), *sorted({_module(t) for found in tests.values() for t in found})]
    )
    context = multiprocessing.get_context("fork")
    workers = [
        context.Process(target=_work, args=(todo[job :: options.jobs], tests, options, end))
        for job in range(options.jobs)
    ]
    for each in workers:
        each.start()
    for each in workers:
        each.join()


def _work(todo: Sequence[Mutant], tests: Mapping[str, Sequence[str]], options: argparse.Namespace, end: float) -> None:
    failing = _Failing(Limits(options.cpu, options.limit))
    for mutant in todo:
        if time.monotonic() > end:
            break
        result = _try(mutant, tests[mutant.path], failing, options)
        results.append(FOLDER / "mutants.jsonl", result)
        change = f"{mutant.operator}: {mutant.before} -> {mutant.after}"
        print(f"{result['level']:12} {mutant.name} {change} {result['by']}", flush=True)


class _Failing:
    """Tests that fail without a mutant too, which says nothing about it."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._known: dict[str, bool] = {}

    def is_failing(self, test: str) -> bool:
        """Whether a test (a node id) fails without a mutant."""
        if test not in self._known:
            self._known[test] = unit_tests(None, [test], ROOT, self._limits).result == "caught"
        return self._known[test]


def _try(mutant: Mutant, tests: Sequence[str], failing: _Failing, options: argparse.Namespace) -> results.Result:
    began, limits = time.monotonic(), Limits(options.cpu, options.limit)
    level, outcome = "unit", unit_tests(mutant, tests, ROOT, limits)
    if outcome.result == "caught" and "::" in outcome.by and failing.is_failing(outcome.by):
        outcome = Outcome("missed", f"{outcome.by} fails without the mutant")
    if outcome.result in ("missed", "time limit"):  # the unit tests of some modules need longer without a mutant, too
        unit = outcome
        level, outcome = "simulation", simulation(mutant, ROOT, options.runs, 0, limits)
        if outcome.result == "missed":
            level, outcome = "survivor", Outcome("missed", f"unit tests: {unit.result} {unit.by}".strip(), options.runs)
    if outcome.result == "not applicable":
        level = outcome.result
    return {
        **asdict(mutant),
        "name": mutant.name,
        "source": _hash(mutant.path),
        "level": level,
        "by": outcome.by,
        "result": outcome.result,
        "seeds": outcome.seeds,
        "seconds": round(time.monotonic() - began, 1),
    }


def sample(only: str, size: int, seed: int) -> list[Mutant]:
    """Mutants of the three packages in random order; a larger sample of a seed contains the smaller one."""
    found = [each for each in _all() if only in each.path]
    random.Random(seed).shuffle(found)
    return found[:size]


def _all() -> Iterator[Mutant]:
    for package in PACKAGES:
        for path in sorted((ROOT / "sink_job" / package).glob("*.py")):
            yield from mutants(path, ROOT)


def report() -> list[str]:
    """The tables, as Markdown. Mutants of files that have changed since are left out."""
    found = results.latest(results.read(FOLDER / "mutants.jsonl"))
    found = [each for each in found if each["source"] == _hash(each["path"])]
    seeds = results.seeds_of(found)
    median = (
        f"Runs until the simulation caught one: median {seeds[len(seeds) // 2]}, at most {seeds[-1]}." if seeds else ""
    )
    rules = {each["rule"]: each for each in results.read(FOLDER / "rules.jsonl")}
    return [
        *results.rules_table(rules.values()),
        "",
        *results.levels_table(found),
        "",
        median,
        "",
        *results.survivors(found),
    ]


def _hash(path: str) -> str:
    file = ROOT / path
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16] if file.exists() else ""


def _module(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
