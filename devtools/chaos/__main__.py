"""`python -m devtools.chaos`: simulations for an hour or for a number of runs; `--real`: processes and servers."""

from __future__ import annotations

import argparse
import importlib
import random
import sys
import time
from collections.abc import Sequence

from devtools.simulation.config import FEATURES
from devtools.simulation.runner import Case, FailedCase, default_jobs, explore, minimized, new_cases, trace

PROGRESS_S = 30
TRACE_LINES = 60
MAX_SHOWN = 5
"""Maximum number of failures of one kind whose traces are printed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 1 if an invariant was broken."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if "--real" in given:
        given.remove("--real")
        return int(importlib.import_module("devtools.chaos.real").main(given))
    args = _parser().parse_args(given)
    seed = random.SystemRandom().randrange(1 << 32) if args.seed is None else args.seed
    if args.trace:
        lines = trace(Case(seed, frozenset(args.without), frozenset(args.include)))
        print("\n".join(lines))
        return int(not lines[-1].endswith("hold"))
    return _explore(seed, args)


def _explore(seed: int, args: argparse.Namespace) -> int:
    jobs = args.jobs or default_jobs()
    started = reported = time.monotonic()
    until = None if args.runs is not None else started + 60 * args.minutes
    print(f"base seed {seed}, {jobs} processes", flush=True)
    kinds: dict[str, int] = {}
    done = 0
    for done, found in explore(new_cases(seed, args.runs, args.without, args.include), jobs=jobs, until=until):
        for failed in found:
            kinds[failed.kind] = kinds.get(failed.kind, 0) + 1
            show(failed, full=kinds[failed.kind] <= MAX_SHOWN)
        if time.monotonic() - reported >= PROGRESS_S:
            reported = time.monotonic()
            print(_progress(done, reported - started, kinds), flush=True)
    print(_progress(done, time.monotonic() - started, kinds), flush=True)
    return int(bool(kinds))


def show(failed: FailedCase, *, full: bool = True) -> None:
    """Prints a failure: its seed and invariant, the minimized case, the end of its trace, and the command to repeat
    it."""
    print(f"\nseed {failed.case}: {failed.message}", flush=True)
    if not full:
        return
    smallest = minimized(failed)
    lines = trace(smallest.case)
    print(f"with as few features as possible ({smallest.message.partition(': ')[0]}), the last of {len(lines)} lines:")
    print("\n".join(lines[-TRACE_LINES:]))
    print(f"repeat it with: {smallest.case.command}\n", flush=True)


def _progress(done: int, seconds: float, kinds: dict[str, int]) -> str:
    broken = ", ".join(f"{kind}: {number}" for kind, number in sorted(kinds.items())) or "no invariant broken"
    return f"{done:,} runs in {seconds:.0f} s, {60 * done / max(seconds, 0.001):,.0f} a minute; {broken}"


def _names(text: str) -> list[str]:
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in FEATURES:
            raise argparse.ArgumentTypeError(f"{name!r} is not a feature; features are {', '.join(FEATURES)}")
    return names


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m devtools.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="duration in minutes (default: 60)")
    parser.add_argument("--runs", type=int, help="number of simulations, instead of a duration")
    parser.add_argument(
        "--seed", type=int, help="seed of the first simulation; the next ones follow it (default: random)"
    )
    parser.add_argument("--without", type=_names, default=[], metavar="A,B", help="features that no simulation has")
    parser.add_argument("--include", type=_names, default=[], metavar="A,B", help="features that every simulation has")
    parser.add_argument("--jobs", type=int, help="concurrent processes (default: the machine's processors)")
    parser.add_argument("--trace", action="store_true", help="print the trace of the simulation --seed")
    parser.add_argument("--real", action="store_true", help="real processes and servers; see --real --help")
    return parser


if __name__ == "__main__":
    sys.exit(main())
