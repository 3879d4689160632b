"""Chaos with real processes: `s3sink run` under kills, stops, takeovers, restarts of Kafka and faults of the store.

Worlds follow each other; each is one sink with a topic of its own, and lives for a few cycles. A cycle is load and one
fault, after which all that is visible is compared with Kafka. At a world's end everything is published, compared once
more, and proved by `s3sink verify --deep`. A finding ends its world; the run continues with the next one.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from devtools.chaos import limits, worlds
from devtools.chaos.drivers import Servers
from devtools.chaos.faults import FAULTS
from devtools.chaos.figures import Figures, write
from devtools.chaos.world import Finding, Known, World

_PREFIX = "s3chaos-"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m devtools.chaos --real", description=__doc__)
    parser.add_argument("--cycles", type=int, default=200, help="how many faults (default: 200)")
    parser.add_argument("--minutes", type=float, default=None, help="begin no world after so long (default: no limit)")
    parser.add_argument("--seed", type=int, default=None, help="makes the plan again (default: a new one, printed)")
    parser.add_argument("--world", type=int, default=None, help="only this world of the plan")
    parser.add_argument(
        "--only", metavar="FAULT,…", type=_faults, default=(), help="faults of these kinds alone, in turn"
    )
    parser.add_argument("--keep", action="store_true", help="keep all logs, and the data of what was found")
    parser.add_argument("--report", type=Path, default=None, help="write figures to REPORT.md and REPORT.json")
    return parser


def _faults(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in FAULTS:
            raise argparse.ArgumentTypeError(f"{name!r} is not among {', '.join(sorted(FAULTS))}")
    return names


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the plan; 0 when nothing was found."""
    args = _parser().parse_args(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup leaves it
            signal.signal(number, _interrupt)
    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(1 << 32)
    _remove_old()
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    run = Run(seed=seed, planned=args.cycles, folder=folder, keep=args.keep)
    run.say(f"seed {seed}, {args.cycles} cycles, in {folder}")
    plans = worlds.plan(seed, args.cycles, only=args.only)
    try:
        run.play([each for each in plans if args.world in (None, each.number)], args.minutes)
    except KeyboardInterrupt:
        run.say("interrupted")
        run.figures.interrupted = True
    finally:
        run.servers.kill()
        limits.remove_old_groups()
        if args.keep:
            run.say(f"kept: {folder.rename(folder.with_name(f'kept-{folder.name}'))}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
        if args.report is not None:
            write(args.report, run.figures)
    run.say(run.figures.line())
    return 1 if run.figures.findings or run.figures.interrupted else 0


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _remove_old() -> None:
    """Removes the folders of runs that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        if not Path("/proc", folder.name.removeprefix(_PREFIX).partition("-")[0]).exists():
            shutil.rmtree(folder, ignore_errors=True)
    limits.remove_old_groups()


@dataclass
class Run:
    """One run of a plan."""

    seed: int
    planned: int
    folder: Path
    keep: bool = False
    figures: Figures = field(init=False)
    servers: Servers = field(init=False)

    def __post_init__(self) -> None:
        self.figures = Figures(seed=self.seed, planned=self.planned)
        self.servers = Servers(self.folder)
        self._begun = time.monotonic()

    def say(self, line: str) -> None:
        print(f"[{time.monotonic() - self._begun:7.1f} s] {line}", flush=True)

    def play(self, plans: list[worlds.WorldPlan], minutes: float | None) -> None:
        """Runs the worlds one after the other."""
        self.servers.start()
        for plan in plans:
            if minutes is not None and time.monotonic() - self._begun > minutes * 60:
                self.say(f"{minutes:g} minutes are over")
                break
            self._world(plan)
            self.figures.seconds = time.monotonic() - self._begun

    def _world(self, plan: worlds.WorldPlan) -> None:
        name = f"w{plan.number:03d}"
        world = World(self.servers, self.folder / name, plan, name=name)
        spec = plan.spec
        kind = f"{spec['partitioner']['type']} {dict(spec['rotation'])}, {plan.partitions} partitions"
        self.say(f"world {plan.number}: {kind}, TZ={plan.zone}")
        number, fault = 0, "start"
        try:
            world.open()
            for cycle in plan.cycles:
                number, fault = cycle.number, cycle.fault
                begun = time.monotonic()
                self.figures.cycles += 1
                self.figures.faults[cycle.fault] += 1
                world.load(cycle)
                FAULTS[cycle.fault](world, random.Random(cycle.seed))
                world.look()
                visible = len(world.comparison.placed)
                self.say(
                    f"  {cycle.number} {cycle.fault}: {time.monotonic() - begun:.1f} s, {visible:,} records visible"
                )
            fault = f"after {fault}"
            begun = time.monotonic()
            world.quiesce()
            world.verify()
            self.figures.proofs += 1
            compared = len(world.comparison.placed)
            self.say(f"  published and verified: {compared:,} records right, {time.monotonic() - begun:.1f} s")
        except Finding as finding:
            self._found(plan, number, fault, finding)
        except KeyboardInterrupt:
            raise
        except Exception as error:
            self._found(plan, number, fault, Finding(f"the harness failed: {error!r}", traceback.format_exc()))
            self._restart_servers()
        finally:
            world.close(keep=self.keep)
            self._count(world)
            if not self.keep:
                shutil.rmtree(self.folder / name, ignore_errors=True)

    def _found(self, plan: worlds.WorldPlan, cycle: int, fault: str, finding: Finding) -> None:
        known = Known(self.seed, plan.number, cycle, fault, finding.what, finding.log)
        self.figures.findings.append(known)
        self.say(f"  FOUND in world {plan.number}, cycle {cycle} ({fault}): {finding.what}")
        for line in finding.log.splitlines():
            self.say(f"    | {line[:400]}")

    def _restart_servers(self) -> None:
        with contextlib.suppress(Exception):
            self.servers.kill()
        self.servers.start()

    def _count(self, world: World) -> None:
        figures, comparison = self.figures, world.comparison
        figures.worlds += 1
        figures.exits += world.fleet.exits
        figures.fired += world.fired
        figures.drivers += len(world.fleet.drivers)
        figures.load += world.loader.counts
        figures.records += len(comparison.placed)
        figures.objects += len(comparison.seen)
        figures.bytes += sum(seen.size for seen in comparison.seen.values())
        figures.kinds[f"partitioner {world.plan.spec['partitioner']['type']}"] += 1
        figures.kinds[f"scope {world.plan.spec['rotation']['scope']}"] += 1
        figures.kinds += Counter(f"rotation {name}" for name in world.plan.spec["rotation"] if name != "scope")
        figures.kinds[f"TZ {world.plan.zone}"] += 1
        figures.kinds["versioning"] += world.plan.versioning
        figures.kinds["memory limit"] += world.plan.memory is not None
        figures.oom_kills += world.fleet.oom_kills
        figures.most_partitions = max(figures.most_partitions, world.partitions)


if __name__ == "__main__":
    sys.exit("run it by: python -m devtools.chaos --real")
