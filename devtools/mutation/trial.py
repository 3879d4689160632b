"""Tries a mutant: the unit tests of its module first, then simulated runs, each in a forked process with a time limit.

The parent has imported everything once, so a trial needs no start. What a child does ends with it: neither its mutant
nor what a test leaves reaches the next trial.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import resource
import selectors
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from devtools.mutation.apply import NotApplicable, apply, undo
from devtools.mutation.operators import Mutant
from devtools.simulation.runner import Case, new_cases, run_case

LEVELS = "not data and not spark and not model and not cluster and not e2e"


PROFILE = "mutation"
settings.register_profile(
    PROFILE,
    deadline=None,
    max_examples=20,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate),
)
"""A failing example is not shrunk: that takes minutes, so the time limit of the mutant would end first and the catch
would not count. On a loaded machine a health check fails because examples are slow to make, with a mutant and without,
which would exclude the test."""


@dataclass(frozen=True)
class Outcome:
    """What a level found: `caught`, `time limit`, `missed`, or `not applicable`.

    `by` is the test or the invariant, and `seeds` the number of simulated runs including the one that failed.
    """

    result: str
    by: str = ""
    seeds: int = 0


@dataclass(frozen=True)
class Limits:
    """Seconds of processor time and of real time for one level of a mutant."""

    cpu_s: int
    real_s: float


def preload(modules: Sequence[str]) -> None:
    """Imports what the children need. A property test keeps the settings that Hypothesis has at its import: without a
    profile they have a deadline for each example, which a loaded machine exceeds without a mutant, too."""
    settings.load_profile(PROFILE)
    for module in modules:
        importlib.import_module(module)


def unit_tests(mutant: Mutant | None, tests: Sequence[str], root: Path, limits: Limits) -> Outcome:
    """Runs tests (files or node ids) with a mutant (None: without) until the first failure."""
    if not tests:
        return Outcome("missed", "no unit test")
    return in_child(lambda: _unit_tests(mutant, tests, root), limits)


def simulation(mutant: Mutant, root: Path, runs: int, base: int, limits: Limits) -> Outcome:
    """Simulated runs with a mutant until the first failure that the same case does not have without it."""
    return in_child(lambda: _simulation(mutant, root, list(new_cases(base, runs))), limits)


class _FirstFailure:
    """A plug-in of pytest: the first test that failed."""

    name = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.name:
            self.name = f"{report.nodeid} (collection)"


def _unit_tests(mutant: Mutant | None, tests: Sequence[str], root: Path) -> Outcome:
    if mutant is not None:
        apply(mutant, root)
    first = _FirstFailure()
    options = [
        "-x",
        "-q",
        "-n0",
        "-pno:cacheprovider",
        f"--hypothesis-profile={PROFILE}",
        "-m",
        LEVELS,
        "--hypothesis-seed=0",
    ]
    code = pytest.main([*options, *tests], plugins=[first])
    if code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return Outcome("missed")
    if code == pytest.ExitCode.USAGE_ERROR:  # a test file that was removed meanwhile
        return Outcome("missed", "pytest rejected its arguments")
    return Outcome("caught", first.name or str(code))


def _simulation(mutant: Mutant, root: Path, cases: Sequence[Case]) -> Outcome:
    exchanged = apply(mutant, root)
    for number, case in enumerate(cases, start=1):
        try:
            failed = run_case(case)
        except Exception as error:  # the simulation itself cannot continue: as good as an invariant
            return Outcome("caught", type(error).__name__, number)
        if failed is None:
            continue
        undo(exchanged)
        without = run_case(case)
        if without is None or without.kind != failed.kind:
            return Outcome("caught", failed.kind, number)
        exchanged = apply(mutant, root)
    return Outcome("missed", seeds=len(cases))


def in_child(work: Callable[[], Outcome], limits: Limits) -> Outcome:
    """Runs `work` in a forked process, whose output is dropped; a process that ends otherwise has caught the mutant."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _child(work, reader, writer, limits.cpu_s)
    os.close(writer)
    text = None
    try:
        text = _read(reader, time.monotonic() + limits.real_s)
    finally:
        os.close(reader)
        if text is None:
            _kill(pid)
            os.kill(pid, signal.SIGKILL)  # it may not have its own process group yet
        _, status = os.waitpid(pid, 0)
        _kill(pid)  # processes that it has started
    if text is None or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU):
        return Outcome("time limit")
    if text:
        return Outcome(**json.loads(text))
    if status == 0:  # an error of the mutator, which says nothing about the mutant
        return Outcome("not applicable", "the trial ended without a result")
    return Outcome("caught", f"the process ended with {status}")


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _child(work: Callable[[], Outcome], reader: int, writer: int, cpu_s: int) -> None:
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 5))
        os.close(reader)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
        try:
            outcome = work()
        except (NotApplicable, LookupError) as error:
            outcome = Outcome("not applicable", str(error))
        os.write(writer, json.dumps(asdict(outcome)).encode())
    finally:
        os._exit(0)


def _read(reader: int, end: float) -> bytes | None:
    """All that the child writes; None if it has not ended at `end` (`time.monotonic`)."""
    text = b""
    with selectors.DefaultSelector() as selector:  # select() takes no file descriptor above 1023
        selector.register(reader, selectors.EVENT_READ)
        while (left := end - time.monotonic()) > 0:
            if selector.select(left):
                chunk = os.read(reader, 1 << 16)
                text += chunk
                if not chunk:
                    return text
    return None
