"""Runs many simulations, and reduces a failure to the smallest set of features that still fails, with its trace."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import count
from multiprocessing import get_context
from pathlib import Path

from devtools.simulation.config import FEATURES, config_of_seed
from devtools.simulation.oracle import Violation
from devtools.simulation.run import simulate

CHUNK = 20
"""Simulations that a process runs before it reports."""


@dataclass(frozen=True)
class Case:
    """A simulation: its seed, and the features that are removed or added."""

    seed: int
    without: frozenset[str] = frozenset()
    include: frozenset[str] = frozenset()

    def __str__(self) -> str:
        """As a line of the file of seeds."""
        changed = [f"-{name}" for name in sorted(self.without)] + [f"+{name}" for name in sorted(self.include)]
        return " ".join([str(self.seed), *changed])

    @property
    def command(self) -> str:
        """The command that repeats it."""
        words = [f"python -m devtools.chaos --runs 1 --seed {self.seed}"]
        words += [f"--without {','.join(sorted(self.without))}"] if self.without else []
        words += [f"--include {','.join(sorted(self.include))}"] if self.include else []
        return " ".join([*words, "--trace"])


@dataclass(frozen=True)
class FailedCase:
    """A case that breaks an invariant: its name (`kind`) and a message."""

    case: Case
    kind: str
    message: str


def run_case(case: Case, log: Callable[[str], None] | None = None) -> FailedCase | None:
    """Runs a case; returns its failure, if any."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        simulate(config_of_seed(case.seed, without=case.without, include=case.include), log=log)
    except Violation as violation:
        return FailedCase(case, violation.kind, str(violation))
    finally:
        logging.disable(before)
    return None


def minimized(failed: FailedCase) -> FailedCase:
    """The same failure with a minimal set of features."""
    features = config_of_seed(failed.case.seed, without=failed.case.without, include=failed.case.include).features
    for name in sorted(features):
        smaller = Case(failed.case.seed, failed.case.without | {name}, failed.case.include - {name})
        again = run_case(smaller)
        if again is not None and again.kind == failed.kind:
            failed = again
    return failed


def trace(case: Case) -> list[str]:
    """The trace of a case: a line for each event, and the result."""
    lines: list[str] = []
    failed = run_case(case, lines.append)
    return [*lines, f"=> {failed.message}" if failed else "=> all invariants hold"]


def explore(
    cases: Iterator[Case], *, jobs: int = 1, until: float | None = None
) -> Iterator[tuple[int, list[FailedCase]]]:
    """Runs cases until there are no more, or until the time `until` (`time.monotonic`); yields the number of all runs
    and the failures of the chunk after each chunk."""
    done = 0
    if jobs == 1:
        for chunk in _chunks(cases):
            found = _run(chunk)
            done += len(chunk)
            yield done, found
            if until is not None and time.monotonic() >= until:
                return
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        chunks = _chunks(cases)
        waiting = [(len(chunk), pool.submit(_run, chunk)) for _, chunk in zip(range(2 * jobs), chunks, strict=False)]
        while waiting:
            size, future = waiting.pop(0)
            found = future.result()
            done += size
            if until is None or time.monotonic() < until:
                chunk = next(chunks, [])
                if chunk:
                    waiting.append((len(chunk), pool.submit(_run, chunk)))
            yield done, found


def _run(chunk: Sequence[Case]) -> list[FailedCase]:
    return [failed for case in chunk if (failed := run_case(case)) is not None]


def _chunks(cases: Iterator[Case]) -> Iterator[list[Case]]:
    chunk: list[Case] = []
    for case in cases:
        chunk.append(case)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def new_cases(
    base: int, runs: int | None, without: Collection[str] = (), include: Collection[str] = ()
) -> Iterator[Case]:
    """The cases of consecutive seeds from `base` on; `runs` is their number (None: unlimited)."""
    numbers = count(base) if runs is None else range(base, base + runs)
    return (Case(seed, frozenset(without), frozenset(include)) for seed in numbers)


def read_cases(path: Path) -> list[Case]:
    """The cases of a file: a line each, `SEED [-FEATURE…] [+FEATURE…]  # reason`."""
    lines = [line.partition("#")[0].split() for line in path.read_text().splitlines()]
    return [_case(words) for words in lines if words]


def _case(words: Sequence[str]) -> Case:
    seed, *changed = words
    for word in changed:
        if word[1:] not in FEATURES or word[0] not in "+-":
            raise ValueError(f"{word} is neither -FEATURE nor +FEATURE; features are {', '.join(FEATURES)}")
    names = {sign: frozenset(word[1:] for word in changed if word[0] == sign) for sign in "+-"}
    return Case(int(seed), names["-"], names["+"])


def default_jobs() -> int:
    """The default number of concurrent processes: the processors of this machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def traces(base: int, runs: int) -> list[str]:
    """The traces of the cases of consecutive seeds, one after another."""
    return [line for case in new_cases(base, runs) for line in trace(case)]
