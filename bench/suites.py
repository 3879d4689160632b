"""The suites of measurements; each returns plain data."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.data import AVRO_SCHEMA, JSON_SCHEMA, Case, Cases, fill
from bench.measure import Bench, Result
from bench.memory_limits import backlog, open_parquet_paths, open_paths
from bench.round_overhead import overhead
from bench.servers import BUCKET, target
from devtools.kafka import KafkaBroker
from devtools.schema_registry.server import schema_registry

OBJECT_BYTES = 50_000_000
HOURLY = {"partitioner": {"type": "Hourly", "timezone": "UTC", "timestampExtractor": "Record"}}
GZIP = {"format": {"compression": {"codec": "Gzip"}}}
SETTINGS: Mapping[str, Mapping[str, Any]] = {"json": {}, "gzip": GZIP, "hourly": HOURLY}
TYPED = {"converter": "JsonSchema", "schema": {"text": JSON_SCHEMA}}
FORMATS: Mapping[str, Mapping[str, Any]] = {
    "json, none": {},
    "json, zstd": {"compression": {"codec": "Zstd"}},
    "json to parquet, snappy": {**TYPED, "output": "Parquet"},
    "json to parquet, zstd": {**TYPED, "output": "Parquet", "compression": {"codec": "Zstd"}},
}
PASSED: Mapping[str, Any] = {"converter": "Avro", "output": "Avro", "compression": {"codec": "None"}}
"""Avro passed through. Its registry is that of the bench."""


def dead_letters_below(prefix: str) -> dict[str, Any]:
    """The settings of a sink whose dead-letter objects are below this prefix."""
    return {"errors": {"tolerance": "All", "deadLetters": {"prefix": prefix}}}


DEAD_LETTERS = dead_letters_below("rejected")
BY_FIELD = {"partitioner": {"type": "Field", "fields": ["path"]}}


@dataclass(frozen=True)
class Plan:
    """The extent of a run: `repeat` warm passes each, `cores` concurrent tasks; `report` is called with each result."""

    cases: Cases
    broker: KafkaBroker
    repeat: int
    cores: int
    report: Callable[[Result], None]
    scale: float = 1.0


def cold(plan: Plan) -> None:
    """The command from start to end, including the start of the JVM and workers and the compilation of code."""
    with _bench(plan, "null") as (bench, folder):
        for case in plan.cases.values():
            document = bench.manifest(f"{case.name}-command", case, shape(case))
            plan.report({"settings": "json", **bench.command(folder, case, document)})


def stages(plan: Plan) -> None:
    """With `null_s3`, in one session: consumer, reader, and the sink by settings."""
    _in_turn(plan, "null", ("consumer", "reader"), SETTINGS)


def formats(plan: Plan) -> None:
    """The outputs Avro and Parquet and the compression Zstd, with values of 1 KB, beside JSON lines of the same topic
    and a plain consumer of each topic. Avro is read with the schema of a registry, JSON with one in the manifest."""
    case = plan.cases.get("1k")
    if case is None:
        return
    avro = replace(case, is_avro=True)
    with schema_registry() as registry, _bench(plan, "null") as (bench, folder):
        fill(plan.broker.bootstrap, {"avro": avro})
        registry.seed(f"{avro.topic}-value", 1, 1, AVRO_SCHEMA)
        rows: dict[str, tuple[Case, Mapping[str, Any]]] = {key: (case, of) for key, of in FORMATS.items()}
        url = {"registry": {"url": [registry.url]}}
        rows["avro to avro, null"] = avro, {**PASSED, **url}
        rows["avro to parquet, snappy"] = avro, {"converter": "Avro", "output": "Parquet", **url}
        with bench.passes(folder, bench.manifest("session", case, shape(case))) as runner:
            for turn in range(plan.repeat + 1):
                state: dict[str, Any] = {"pass": "warm" if turn else "first", "turn": turn}
                for of, values in ((case, "json"), (avro, "avro")):
                    plan.report({**state, "settings": values, "values": values, **runner.run(of, "consumer")})
                for number, (key, (of, settings)) in enumerate(rows.items()):
                    sections = {**shape(of), "format": settings}
                    document = bench.manifest(f"formats-{number}", of, sections, number=turn)
                    result = runner.run(of, "sink", manifest=document)
                    row = {**state, "settings": key, "values": "avro" if of.is_avro else "json"}
                    plan.report({**row, "target": bench.target, **result})
        for number, key in enumerate(("json, none", "json to parquet, snappy")):
            document = bench.manifest(f"formats-command-{number}", case, {**shape(case), "format": FORMATS[key]})
            plan.report({**bench.command(folder, case, document), "settings": key})


def dead_letters(plan: Plan) -> None:
    """JSON lines of 1 KB without a prefix for dead letters, with one while nothing is rejected, and with one while a
    tenth of the records is."""
    case = plan.cases.get("1k")
    if case is None:
        return
    invalid = replace(case, has_invalid=True)
    fill(plan.broker.bootstrap, {"invalid": invalid})
    rows = {"none": (case, False), "with a prefix": (case, True), "a tenth": (invalid, True)}
    with (
        _bench(plan, "null") as (bench, folder),
        bench.passes(folder, bench.manifest("session", case, shape(case))) as runner,
    ):
        for turn in range(plan.repeat + 1):
            state: dict[str, Any] = {"pass": "warm" if turn else "first", "turn": turn}
            plan.report({**state, **runner.run(case, "consumer")})
            for number, (key, (of, has_prefix)) in enumerate(rows.items()):
                settings = dead_letters_below(f"dead-letters-{number}-{turn}") if has_prefix else {}
                document = bench.manifest(f"rejected-{number}", of, {**shape(of), **settings}, number=turn)
                result = runner.run(of, "sink", manifest=document)
                plan.report({**state, "settings": f"json, dead letters: {key}", "target": bench.target, **result})


def store(plan: Plan) -> None:
    """With VersityGW on the same cores, which then use as much CPU as the sink."""
    _in_turn(plan, "versitygw", (), {"json": {}})


def _in_turn(plan: Plan, name: str, bare: Sequence[str], settings: Mapping[str, Mapping[str, Any]]) -> None:
    """Runs the stages in turns, so that a disturbance of the machine affects all of them. The first turn of a size is
    a warm-up and is marked as `first`."""
    with _bench(plan, name) as (bench, folder):
        first = next(iter(plan.cases.values()))
        with bench.passes(folder, bench.manifest("session", first, shape(first))) as runner:
            for case in plan.cases.values():
                for turn in range(plan.repeat + 1):
                    state = {"pass": "warm" if turn else "first", "turn": turn}
                    for stage in bare:
                        plan.report({**state, **runner.run(case, stage)})
                    for key, sections in settings.items():
                        every = {**shape(case), **sections}
                        document = bench.manifest(f"{case.name}-{key}", case, every, number=turn)
                        result = runner.run(case, "sink", manifest=document)
                        plan.report({"settings": key, "target": bench.target, **state, **result})
                        _clear(bench)


def rounds(plan: Plan) -> None:
    """The cost of a round with few records, and the additional cost of idle partitions."""
    with _bench(plan, "null") as (bench, folder):
        for result in overhead(bench, folder, repeat=max(3, plan.repeat)):
            plan.report(result)


def limits(plan: Plan) -> None:
    """Memory with a backlog of 10 GB in a partition, and with 2,000 open paths in one task."""
    with _bench(plan, "null") as (bench, folder):
        plan.report(backlog(bench, folder, gigabytes=10 * plan.scale))
        plan.report(open_paths(bench, folder, gigabytes=2 * plan.scale))
        plan.report(open_parquet_paths(bench, folder, gigabytes=2 * plan.scale))
        case = plan.cases.get("1k")
        if case:
            sections = shape(case) | BY_FIELD | {"rotation": {"flushSize": 10_000_000}}
            document = bench.manifest("paths", case, sections)
            plan.report({**bench.command(folder, case, document), "settings": "2,000 paths, Spark"})


SUITES: Mapping[str, Callable[[Plan], None]] = {
    each.__name__: each for each in (cold, stages, formats, dead_letters, store, rounds, limits)
}


def shape(case: Case) -> dict[str, Any]:
    """Objects of about 50 MB, in parts of the default size."""
    return {"rotation": {"flushSize": OBJECT_BYTES // case.size}}


@contextmanager
def _bench(plan: Plan, name: str) -> Iterator[tuple[Bench, Path]]:
    with target(name) as s3, tempfile.TemporaryDirectory(prefix="s3sink-bench-") as folder:
        yield Bench(plan.broker, s3, name, cores=plan.cores), Path(folder)


def _clear(bench: Bench) -> None:
    """Frees disk space between passes."""
    if bench.target == "versitygw":
        for each in (bench.s3.directory / "data" / BUCKET).iterdir():
            shutil.rmtree(each, ignore_errors=True)


def scaled(cases: Cases, factor: float) -> Cases:
    """The cases with fewer records."""
    return cases if factor == 1 else {name: replace(case.scaled(factor)) for name, case in cases.items()}
