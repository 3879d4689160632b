"""Rounds with next to nothing to read: what a round costs by itself, by the number of partitions."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

from bench.data import Case, values
from bench.measure import Bench, Result
from devtools.topics import Record, Topics

ROUNDS = 6
VALUE_BYTES = 200


def overhead(bench: Bench, folder: Path, *, repeat: int) -> Iterator[Result]:
    """One record a partition and round, at 1, 64 and 512 partitions; then one busy partition among 512."""
    for partitions, busy in ((1, 1), (64, 64), (512, 512), (512, 1)):
        yield _one(bench, folder, partitions, busy, max(ROUNDS, repeat + 2))


def _one(bench: Bench, folder: Path, partitions: int, busy: int, rounds: int) -> Result:
    topics = Topics(bench.broker.bootstrap)
    name = topics.create(f"rounds-{partitions}-{busy}-{bench.s3.port}", partitions=partitions)
    try:
        source = values(VALUE_BYTES)
        each = [Record(value=next(source), partition=n) for n in range(busy) for _ in range(rounds)]
        topics.produce(name, each)
        case = _Topic(name, VALUE_BYTES, rounds * busy)
        sections = {"rotation": {"flushSize": 1_000_000}, "rounds": {"maxRecords": 1}}
        document = bench.manifest("rounds", case, sections, number=1000 * partitions + busy)
        with bench.passes(folder, document) as runner:
            result = runner.run(case, "sink", manifest=document, publish_open=False)
        return _told(result, partitions, busy)
    finally:
        topics.delete(name)


def _told(result: Result, partitions: int, busy: int) -> Result:
    write, publish = zip(*result["rounds_ms"], strict=True)
    # The first two rounds start the workers and open the consumers.
    return {
        "stage": "rounds",
        "pass": "warm",
        "partitions": partitions,
        "busy": busy,
        "rounds": len(write),
        "first_ms": write[0] + publish[0],
        "median_ms": round(statistics.median([a + b for a, b in zip(write[2:], publish[2:], strict=True)])),
        "rounds_ms": result["rounds_ms"],
        "requests_per_round": round(sum(result["requests"].values()) / len(write), 1),
        "peak_tree_mb": result["peak_tree_mb"],
        "peak_mb": result["peak_mb"],
    }


class _Topic(Case):
    """A topic of its own name."""

    @property
    def topic(self) -> str:
        return self.name
