"""`python -m devtools.fuzz`: fuzzes converters. `--converter Avro --seed N --batch B` repeats one batch."""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence

from devtools.fuzz.run import Limits, Result, fuzz
from devtools.fuzz.targets import TARGETS, case_of

MAX_SHOWN = 3
"""The maximum number of findings of one kind that are printed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 1 if there is a finding."""
    args = _parser().parse_args(arguments)
    seed = random.SystemRandom().randrange(1 << 32) if args.seed is None else args.seed
    single = args.batch is not None
    limits = Limits(cpu_s=0 if single else args.seconds, batch_s=args.timeout, memory=args.memory * 1024**2)
    print(f"seed {seed}", flush=True)
    found = False
    for converter in args.converter or TARGETS:
        result = fuzz(converter, seed, limits, args.batch or 0)
        found |= bool(result.findings)
        _show(converter, seed, result)
        if single:
            print(case_of(converter, seed, args.batch))
    return int(found)


def _show(converter: str, seed: int, result: Result) -> None:
    kinds: dict[str, int] = {}
    for finding in result.findings:
        kinds[finding.kind] = shown = kinds.get(finding.kind, 0) + 1
        if shown <= MAX_SHOWN:
            print(f"\n{finding.kind}\n{finding.text}")
            print(f"repeat with: python -m devtools.fuzz --converter {converter} --seed {seed} --batch {finding.batch}")
            print(case_of(converter, seed, finding.batch))
    print(
        f"{converter}: {result.batches:,} batches in {result.cpu_s:.0f} s of CPU time, {result.texts:,} texts, "
        f"{result.rejected:,} rejections, {len(result.findings)} findings of {len(kinds)} kinds",
        flush=True,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m devtools.fuzz", description=__doc__)
    parser.add_argument("--converter", action="append", choices=list(TARGETS), help="default: all, one after the other")
    parser.add_argument("--seconds", type=float, default=60, help="CPU time for each converter (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="default: random, printed")
    parser.add_argument("--batch", type=int, help="run this batch alone, and print it")
    parser.add_argument("--timeout", type=float, default=20, help="seconds for a batch (default: %(default)s)")
    parser.add_argument("--memory", type=int, default=4096, help="MiB of address space (default: %(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
