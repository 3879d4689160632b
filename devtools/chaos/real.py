"""Chaos with real processes: `s3sink run` under kills, stops, takeovers, and failures of Kafka, store and registry.

A run executes scenarios one after another. A scenario is a sink with its own topic, and consists of a few cycles. A
cycle is load and one fault; then all visible objects are compared with Kafka. At the end of a scenario everything is
published, compared again, and verified with `s3sink verify --deep`. A finding ends its scenario; the run continues with
the next one.
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

from devtools.chaos import limits, scenario_plan
from devtools.chaos.containers import codec_of
from devtools.chaos.drivers import Servers
from devtools.chaos.faults import FAULTS
from devtools.chaos.figures import Figures, write
from devtools.chaos.scenario import Finding, LocatedFinding, Scenario

_PREFIX = "s3chaos-"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m devtools.chaos --real", description=__doc__)
    parser.add_argument("--cycles", type=int, default=200, help="number of faults (default: 200)")
    parser.add_argument(
        "--minutes", type=float, default=None, help="start no scenario after this time (default: no limit)"
    )
    parser.add_argument("--seed", type=int, default=None, help="seed of the plan (default: random; printed)")
    parser.add_argument("--scenario", type=int, default=None, help="run only this scenario of the plan")
    parser.add_argument(
        "--only", metavar="FAULT,…", type=_faults, default=(), help="use only these faults, in this order"
    )
    parser.add_argument("--keep", action="store_true", help="keep all logs, and the data of findings")
    parser.add_argument("--report", type=Path, default=None, help="write figures to REPORT.md and REPORT.json")
    return parser


def _faults(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in FAULTS:
            raise argparse.ArgumentTypeError(f"{name!r} is not among {', '.join(sorted(FAULTS))}")
    return names


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the plan; returns 0 if there are no findings."""
    args = _parser().parse_args(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # set by nohup
            signal.signal(number, _interrupt)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(1 << 32)
    _remove_old()
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    run = Run(seed=seed, planned=args.cycles, folder=folder, keep=args.keep)
    run.log(f"seed {seed}, {args.cycles} cycles, in {folder}")
    plans = scenario_plan.plan_scenarios(seed, args.cycles, only=args.only)
    try:
        run.run([each for each in plans if args.scenario in (None, each.number)], args.minutes)
    except KeyboardInterrupt:
        run.log("interrupted")
        run.figures.interrupted = True
    finally:
        run.servers.kill()
        limits.remove_old_groups()
        if args.keep:
            run.log(f"kept: {folder.rename(folder.with_name(f'kept-{folder.name}'))}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
        if args.report is not None:
            write(args.report, run.figures)
    run.log(run.figures.line())
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
        self._started = time.monotonic()

    def log(self, line: str) -> None:
        print(f"[{time.monotonic() - self._started:7.1f} s] {line}", flush=True)

    def run(self, plans: list[scenario_plan.ScenarioPlan], minutes: float | None) -> None:
        """Runs the scenarios one after another."""
        self.servers.start()
        for plan in plans:
            if minutes is not None and time.monotonic() - self._started > minutes * 60:
                self.log(f"{minutes:g} minutes have passed")
                break
            try:
                self._scenario(plan)
            finally:
                self.figures.seconds = time.monotonic() - self._started

    def _scenario(self, plan: scenario_plan.ScenarioPlan) -> None:
        name = f"w{plan.number:03d}"
        scenario = Scenario(self.servers, self.folder / name, plan, name=name)
        spec = plan.spec
        form = f"{spec['format']['output']} {codec_of(spec['format'])}"
        if plan.has_registry:
            form = f"{spec['format']['converter']} {spec['schemaCompatibility']} to {form}"
        kind = f"{spec['partitioner']['type']} {dict(spec['rotation'])}, {form}, {plan.partitions} partitions"
        self.log(f"scenario {plan.number}: {kind}, TZ={plan.zone}")
        number, fault = 0, "start"
        try:
            scenario.open()
            for cycle in plan.cycles:
                number, fault = cycle.number, cycle.fault
                started = time.monotonic()
                self.figures.cycles += 1
                self.figures.faults[cycle.fault] += 1
                scenario.load(cycle)
                FAULTS[cycle.fault](scenario, random.Random(cycle.seed))
                scenario.compare_visible()
                visible = len(scenario.comparison.key_of_record)
                self.log(
                    f"  {cycle.number} {cycle.fault}: {time.monotonic() - started:.1f} s, {visible:,} records visible"
                )
            fault = f"after {fault}"
            started = time.monotonic()
            scenario.quiesce()
            scenario.verify()
            self.figures.verified += 1
            compared = len(scenario.comparison.key_of_record)
            self.log(f"  published and verified: {compared:,} records correct, {time.monotonic() - started:.1f} s")
        except Finding as finding:
            self._found(plan, number, fault, finding)
        except KeyboardInterrupt:
            raise
        except Exception as error:
            self._found(plan, number, fault, Finding(f"the harness failed: {error!r}", traceback.format_exc()))
            self._restart_servers()
        finally:
            scenario.close(keep=self.keep)
            self._count(scenario)
            if not self.keep:
                shutil.rmtree(self.folder / name, ignore_errors=True)

    def _found(self, plan: scenario_plan.ScenarioPlan, cycle: int, fault: str, finding: Finding) -> None:
        known = LocatedFinding(self.seed, plan.number, cycle, fault, finding.what, finding.log)
        self.figures.findings.append(known)
        self.log(f"  FINDING in scenario {plan.number}, cycle {cycle} ({fault}): {finding.what}")
        for line in finding.log.splitlines():
            self.log(f"    | {line[:400]}")

    def _restart_servers(self) -> None:
        with contextlib.suppress(Exception):
            self.servers.kill()
        self.servers.start()

    def _count(self, scenario: Scenario) -> None:
        figures, comparison = self.figures, scenario.comparison
        figures.scenarios += 1
        figures.exits += scenario.fleet.exits
        figures.injected += scenario.fired
        figures.drivers += len(scenario.fleet.drivers)
        figures.load += scenario.loader.counts
        figures.records += len(comparison.key_of_record)
        figures.objects += len(comparison.objects)
        figures.bytes += sum(seen.size for seen in comparison.objects.values())
        figures.kinds[f"partitioner {scenario.plan.spec['partitioner']['type']}"] += 1
        form = scenario.plan.spec["format"]
        figures.kinds[f"output {form['output']} {codec_of(form)}"] += 1
        if scenario.registered:
            figures.kinds[f"registry {form['converter']}"] += 1
            figures.kinds[f"registry {scenario.plan.spec['schemaCompatibility']}"] += 1
            figures.kinds["registry"] += 1
        figures.kinds[f"scope {scenario.plan.spec['rotation']['scope']}"] += 1
        figures.kinds += Counter(f"rotation {name}" for name in scenario.plan.spec["rotation"] if name != "scope")
        figures.kinds[f"TZ {scenario.plan.zone}"] += 1
        figures.kinds["versioning"] += scenario.plan.versioning
        figures.kinds["memory limit"] += scenario.plan.memory is not None
        figures.oom_kills += scenario.fleet.oom_kills
        figures.most_partitions = max(figures.most_partitions, scenario.partitions)


if __name__ == "__main__":
    sys.exit("run it by: python -m devtools.chaos --real")
