"""`python -m devtools.chaos`: simulated worlds for an hour, or as many as given; `--real`: processes and servers."""

from __future__ import annotations

import argparse
import importlib
import random
import sys
import time
from collections.abc import Sequence

from devtools.simulation.runner import Case, Failed, explore, fresh, shrunken, trace, usual_jobs
from devtools.simulation.shape import FEATURES

PROGRESS_S = 30
TRACE_LINES = 60
MOST_SHOWN = 5
"""Failures of one kind whose traces are printed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 1 when an invariant was broken."""
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
    jobs = args.jobs or usual_jobs()
    begun = reported = time.monotonic()
    until = None if args.worlds is not None else begun + 60 * args.minutes
    print(f"base seed {seed}, {jobs} processes", flush=True)
    kinds: dict[str, int] = {}
    done = 0
    for done, found in explore(fresh(seed, args.worlds, args.without, args.include), jobs=jobs, until=until):
        for failed in found:
            kinds[failed.kind] = kinds.get(failed.kind, 0) + 1
            show(failed, full=kinds[failed.kind] <= MOST_SHOWN)
        if time.monotonic() - reported >= PROGRESS_S:
            reported = time.monotonic()
            print(_progress(done, reported - begun, kinds), flush=True)
    print(_progress(done, time.monotonic() - begun, kinds), flush=True)
    return int(bool(kinds))


def show(failed: Failed, *, full: bool = True) -> None:
    """Prints a failure: its seed and the invariant, the smallest case, the end of its trace, how to run it again."""
    print(f"\nseed {failed.case}: {failed.message}", flush=True)
    if not full:
        return
    smallest = shrunken(failed)
    lines = trace(smallest.case)
    print(f"with as few features as possible ({smallest.message.partition(': ')[0]}), the last of {len(lines)} lines:")
    print("\n".join(lines[-TRACE_LINES:]))
    print(f"again: {smallest.case.command}\n", flush=True)


def _progress(done: int, seconds: float, kinds: dict[str, int]) -> str:
    broken = ", ".join(f"{kind}: {number}" for kind, number in sorted(kinds.items())) or "no invariant broken"
    return f"{done:,} worlds in {seconds:.0f} s, {60 * done / max(seconds, 0.001):,.0f} a minute; {broken}"


def _names(text: str) -> list[str]:
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in FEATURES:
            raise argparse.ArgumentTypeError(f"{name!r} is no feature; features are {', '.join(FEATURES)}")
    return names


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m devtools.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="how long to run (default: 60)")
    parser.add_argument("--worlds", type=int, help="how many worlds to run, instead of a time")
    parser.add_argument("--seed", type=int, help="the first world's seed; the next ones follow it (default: random)")
    parser.add_argument("--without", type=_names, default=[], metavar="A,B", help="features that no world has")
    parser.add_argument("--include", type=_names, default=[], metavar="A,B", help="features that every world has")
    parser.add_argument("--jobs", type=int, help="processes at a time (default: the machine's processors)")
    parser.add_argument("--trace", action="store_true", help="print everything that happens in the world --seed")
    parser.add_argument("--real", action="store_true", help="real processes and servers; see --real --help")
    return parser


if __name__ == "__main__":
    sys.exit(main())
