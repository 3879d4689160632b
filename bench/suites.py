"""What is measured, suite by suite; each gives results as plain data."""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.data import Case, Cases
from bench.limits import backlog, open_paths
from bench.measure import Bench, Result
from bench.overhead import overhead
from bench.servers import BUCKET, target
from devtools.kafka import KafkaBroker

OBJECT_BYTES = 50_000_000
HOURLY = {"partitioner": {"type": "Hourly", "timezone": "UTC", "timestampExtractor": "Record"}}
GZIP = {"format": {"compression": "Gzip"}}
BY_FIELD = {"partitioner": {"type": "Field", "fields": ["path"]}}


@dataclass(frozen=True)
class Plan:
    """How much to measure: `repeat` warm passes each, `cores` tasks at a time; `tell` is called with each result."""

    cases: Cases
    broker: KafkaBroker
    repeat: int
    cores: int
    tell: Callable[[Result], None]
    scale: float = 1.0


def throughput(plan: Plan) -> None:
    """Each size into the server that throws bodies away: command, consumer, reader and sink in turn."""
    with _bench(plan, "null") as (bench, folder):
        for case in plan.cases.values():
            plan.tell(_command(bench, folder, case, "json", {}))
            _stages(plan, bench, folder, case)


def _stages(plan: Plan, bench: Bench, folder: Path, case: Case) -> None:
    sections = shape(case)
    with bench.passes(folder, bench.manifest("session", case, sections)) as runner:
        plan.tell({"pass": "cold", **runner.run(case, "reader")})
        for number in range(plan.repeat):
            plan.tell({"pass": "warm", **runner.run(case, "consumer")})
            plan.tell({"pass": "warm", **runner.run(case, "reader")})
            document = bench.manifest("json", case, sections, number=number + 1)
            plan.tell(_sink(bench, runner.run(case, "sink", manifest=document), "json"))


def store(plan: Plan) -> None:
    """Each size into VersityGW on the same cores, which then works as hard as the sink."""
    with _bench(plan, "versitygw") as (bench, folder):
        for case in plan.cases.values():
            plan.tell(_command(bench, folder, case, "json", {}))
            _clear(bench)
            _warm(plan, bench, folder, case, "json", {})


def gzip(plan: Plan) -> None:
    """JSON lines compressed."""
    with _bench(plan, "null") as (bench, folder):
        for case in plan.cases.values():
            plan.tell(_command(bench, folder, case, "gzip", GZIP))
            _warm(plan, bench, folder, case, "gzip", GZIP)


def hourly(plan: Plan) -> None:
    """Hourly paths by the records' own time: one more Kafka column; 48 paths, one after the other."""
    with _bench(plan, "null") as (bench, folder):
        for case in plan.cases.values():
            plan.tell(_command(bench, folder, case, "hourly", HOURLY))
            _warm(plan, bench, folder, case, "hourly", HOURLY)


def rounds(plan: Plan) -> None:
    """What a round costs that has little to read, and what idle partitions add to it."""
    with _bench(plan, "null") as (bench, folder):
        for result in overhead(bench, folder, repeat=max(3, plan.repeat)):
            plan.tell(result)


def limits(plan: Plan) -> None:
    """Memory with a backlog of 10 GB a partition, and with 2,000 open paths in one task."""
    with _bench(plan, "null") as (bench, folder):
        plan.tell(backlog(bench, folder, gigabytes=10 * plan.scale))
        plan.tell(open_paths(bench, folder, gigabytes=2 * plan.scale))
        case = plan.cases.get("1k")
        if case:
            sections = shape(case) | BY_FIELD | {"rotation": {"flushSize": 10_000_000}}
            document = bench.manifest("paths", case, sections)
            plan.tell({**bench.command(folder, case, document), "settings": "2,000 paths, Spark"})


SUITES: Mapping[str, Callable[[Plan], None]] = {
    each.__name__: each for each in (throughput, store, gzip, hourly, rounds, limits)
}


def shape(case: Case) -> dict[str, Any]:
    """Objects of about 50 MB, in parts of the default size."""
    return {"rotation": {"flushSize": OBJECT_BYTES // case.size}}


@contextmanager
def _bench(plan: Plan, name: str) -> Iterator[tuple[Bench, Path]]:
    with target(name) as s3, tempfile.TemporaryDirectory(prefix="s3sink-bench-") as folder:
        yield Bench(plan.broker, s3, name, cores=plan.cores), Path(folder)


def _command(bench: Bench, folder: Path, case: Case, settings: str, sections: Mapping[str, Any]) -> Result:
    document = bench.manifest(f"{case.name}-{settings}-command", case, {**shape(case), **sections})
    return {"settings": settings, **bench.command(folder, case, document)}


def _warm(plan: Plan, bench: Bench, folder: Path, case: Case, settings: str, sections: Mapping[str, Any]) -> None:
    """Passes of the sink in one session; the first is thrown away."""
    every = {**shape(case), **sections}
    with bench.passes(folder, bench.manifest("session", case, every)) as runner:
        for number in range(plan.repeat + 1):
            document = bench.manifest(f"{case.name}-{settings}", case, every, number=number + 1)
            result = runner.run(case, "sink", manifest=document)
            _clear(bench)
            if number:
                plan.tell(_sink(bench, result, settings))


def _sink(bench: Bench, result: Result, settings: str) -> Result:
    return {"settings": settings, "pass": "warm", "target": bench.target, **result}


def _clear(bench: Bench) -> None:
    """Gives the disk back between passes."""
    if bench.target == "versitygw":
        for each in (bench.s3.directory / "data" / BUCKET).iterdir():
            shutil.rmtree(each, ignore_errors=True)


def scaled(cases: Cases, factor: float) -> Cases:
    """The cases with fewer records."""
    return cases if factor == 1 else {name: dataclasses.replace(case.scaled(factor)) for name, case in cases.items()}
