"""Hours of load with rounds, restarts and edits; prints what the sinks' processes hold and fails if it grows.

Two sinks copy one topic of 64 partitions from a real broker to a real S3 server. The first runs from the beginning to
the end; what its processes hold is the verdict. The second is stopped, killed and edited in turns. At the end both
publish everything, `verify --deep` passes, and the records in the objects are those in Kafka.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from devtools.chaos.load import Loader
from devtools.kafka import KafkaBroker
from devtools.s3 import VersityGW
from devtools.soak import records
from devtools.soak.growth import Growth
from devtools.soak.load_phases import Phase, phases
from devtools.soak.sinks import Problem, SoakSink
from devtools.topics import Topics

_TOPIC = "soak"
_SAMPLE_S = 10.0
_LINE_S = 60.0
_HEAP_EVERY = 12  # samples: a full collection takes the JVM 50 ms and more
_SETTLE_S = 5.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the soak; returns 0 if nothing grew and all records are where they belong."""
    args = _parser().parse_args(arguments)
    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(1 << 32)
    folder = Path(tempfile.mkdtemp(prefix="s3soak-"))
    broker, server = KafkaBroker(_made(folder / "kafka")), VersityGW(_made(folder / "s3"))
    try:
        broker.start()
        server.start()
        return Soak(args, seed, folder, broker, server).run()
    finally:
        broker.kill()
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m devtools.soak", description=__doc__)
    parser.add_argument("--hours", type=float, default=8.0, help="duration of the load (default: 8)")
    parser.add_argument("--rate", type=int, default=200, help="records a second (default: 200)")
    parser.add_argument("--partitions", type=int, default=64, help="partitions of the topic (default: 64)")
    parser.add_argument(
        "--restart-every", type=float, default=10.0, metavar="MINUTES", help="of the second sink (default: 10)"
    )
    parser.add_argument("--seed", type=int, default=None, help="seed of the load (default: random; printed)")
    parser.add_argument("--report", type=Path, default=None, help="write figures to REPORT.md and REPORT.json")
    return parser


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


class Soak:
    """One run. `problems` are its findings."""

    def __init__(
        self, args: argparse.Namespace, seed: int, folder: Path, broker: KafkaBroker, server: VersityGW
    ) -> None:
        self._args = args
        self._broker = broker
        Topics(broker.bootstrap).create(_TOPIC, partitions=args.partitions)
        place: dict[str, Any] = {"bootstrap": broker.bootstrap, "topic": _TOPIC, "server": server}
        self.steady = SoakSink(folder, "steady", **place)
        self.changing = SoakSink(folder, "changing", **place)
        self.seed = seed
        self.problems: list[str] = []
        self._loader = Loader(broker.bootstrap, _TOPIC)
        self._phases = phases(random.Random(seed), args.partitions, args.rate)
        self._started = time.monotonic()

    def run(self) -> int:
        """Returns 1 if there are problems, else 0."""
        self.log(f"seed {self.seed}, {self._args.hours:g} hours, {self._args.rate} records a second")
        try:
            self.steady.start()
            self.changing.start()
            self._load()
            self._loader.settle()
            time.sleep(_SETTLE_S)
            self._conclude()
        except (Problem, AssertionError, RuntimeError) as error:
            self.problems.append(str(error))
        finally:
            self._loader.close()
            self.steady.close()
            self.changing.close()
        growths = self.steady.growths()
        self.problems += [f"sink steady: {each}" for each in growths if each.grown]
        self.log("steady, first and last third: " + "; ".join(map(str, growths)))
        if self._args.report is not None:
            self._write(growths)
        for problem in self.problems:
            self.log(f"PROBLEM {problem}")
        self.log(f"{len(self.problems)} problems")
        return 1 if self.problems else 0

    def log(self, line: str) -> None:
        print(f"[{time.monotonic() - self._started:7.1f} s] {line}", flush=True)

    def _load(self) -> None:
        """Load, samples and restarts until the time is over."""
        end = time.monotonic() + self._args.hours * 3600
        restart_s = self._args.restart_every * 60
        next_phase = next_line = 0.0
        next_restart = time.monotonic() + restart_s
        sample = 0
        while (now := time.monotonic()) < end:
            if now >= next_phase:
                next_phase = now + self._begin(next(self._phases), sample)
            lines = [self.steady.measure(with_heap=sample % _HEAP_EVERY == _HEAP_EVERY - 1)]
            if now >= next_restart:
                next_restart = now + restart_s
                self._restart()
            lines.append(self.changing.measure(with_heap=False))
            if now >= next_line:
                next_line = now + _LINE_S
                self.log(" | ".join(lines))
            sample += 1
            time.sleep(max(0.0, now + _SAMPLE_S - time.monotonic()))

    def _begin(self, phase: Phase, number: int) -> float:
        if phase.burst is None:
            self._loader.finish()
        else:
            self._loader.begin(f"p{number}", self.seed + number, phase.burst)
        return phase.seconds

    def _restart(self) -> None:
        """In turns: a stop, a kill; each second time with other settings."""
        kill = self.changing.starts % 2 == 0
        self.changing.stop(kill=kill)
        if self.changing.starts % 4 >= 2:
            self.changing.edit()
        self.changing.start()
        self.log(f"changing: {'killed' if kill else 'stopped'} and started again")

    def _conclude(self) -> None:
        """Publishes everything and compares it with Kafka."""
        expected = records.of_topic(self._broker.bootstrap, _TOPIC, self._args.partitions)
        for sink in (self.steady, self.changing):
            sink.publish()
            contents = sink.contents()
            self.problems += [f"sink {sink.name}: {each}" for each in expected.differences(contents)]
            self.problems += [f"sink {sink.name}: {each}" for each in sink.left_behind()]
            self.log(f"{sink.name}: {contents.total():,} records in objects, {expected.total():,} in Kafka; verified")

    def _write(self, growths: Sequence[Growth]) -> None:
        report: Path = self._args.report
        hours = (time.monotonic() - self._started) / 3600
        figures = {
            "seed": self.seed,
            "hours": round(hours, 2),
            "rate": self._args.rate,
            "partitions": self._args.partitions,
            "cores": len(os.sched_getaffinity(0)),
            "starts of the second sink": self.changing.starts,
            "produced": dict(self._loader.counts),
            "problems": self.problems,
            "series": {figure: [round(v, 1) for v in values] for figure, values in self.steady.series.items()},
        }
        report.with_suffix(".json").write_text(json.dumps(figures, indent=1) + "\n")
        rows = [
            f"| {each.figure} | {each.first:,.0f} | {each.last:,.0f} | {_extremes(self.steady.series[each.figure])} |"
            for each in growths
        ]
        lines = [
            f"`python -m devtools.soak --hours {self._args.hours:g} --rate {self._args.rate} --seed {self.seed}`",
            "",
            "| | first third | last third | least to most |",
            "|---|---|---|---|",
            *rows,
            "",
            f"{self._loader.counts['produced']:,} records produced, {self.changing.starts} drivers of the second sink, "
            f"{len(self.problems)} problems.",
        ]
        report.with_suffix(".md").write_text("\n".join(lines) + "\n")


def _extremes(values: Sequence[float]) -> str:
    return f"{min(values):,.0f} to {max(values):,.0f}"


if __name__ == "__main__":
    sys.exit(main())
