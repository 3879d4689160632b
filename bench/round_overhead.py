"""Rounds with few records: the fixed cost of a round by the number of partitions."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.data import Case, create, values
from bench.measure import Bench, Result
from devtools.topics import Record, Topics

ROUNDS = 6
VALUE_BYTES = 200
SHAPES = ((1, 1), (64, 64), (512, 512), (512, 1))


def overhead(bench: Bench, folder: Path, *, repeat: int) -> Iterator[Result]:
    """One record per partition and round with 1, 64 and 512 partitions; then one busy partition of 512."""
    rounds = max(ROUNDS, repeat + 2)
    topics = Topics(bench.broker.bootstrap)
    made = [_Topic.of(partitions, busy, bench.s3.port, rounds) for partitions, busy in SHAPES]
    try:
        for topic in made:
            topic.fill(topics)
        with bench.passes(folder, _document(bench, made[0])) as runner:
            runner.run(made[0], "sink", manifest=_document(bench, made[0], number=1), publish_open=False)
            for topic in made:
                result = runner.run(topic, "sink", manifest=_document(bench, topic), publish_open=False)
                yield _reported(result, topic)
    finally:
        for topic in made:
            topics.delete(topic.name)


def _document(bench: Bench, topic: _Topic, *, number: int = 0) -> dict[str, Any]:
    sections = {"rotation": {"flushSize": 1_000_000}, "rounds": {"maxRecords": 1}}
    return bench.manifest(topic.name, topic, sections, number=number)


@dataclass(frozen=True)
class _Topic(Case):
    """Creates a topic; `busy` of its partitions have a record for each round."""

    partitions: int
    busy: int

    @classmethod
    def of(cls, partitions: int, busy: int, tag: int, rounds: int) -> _Topic:
        return cls(f"rounds-{partitions}-{busy}-{tag}", VALUE_BYTES, rounds * busy, partitions, busy)

    @property
    def topic(self) -> str:
        return self.name

    def fill(self, topics: Topics) -> None:
        create(topics, self.name, self.partitions)
        source = values(VALUE_BYTES)
        each = range(self.records // self.busy)
        topics.produce(self.name, [Record(value=next(source), partition=n) for n in range(self.busy) for _ in each])


def _reported(result: Result, topic: _Topic) -> Result:
    write, publish = zip(*result["rounds_ms"], strict=True)
    # The first two rounds open consumers.
    return {
        "stage": "rounds",
        "pass": "warm",
        "partitions": topic.partitions,
        "busy": topic.busy,
        "rounds": len(write),
        "first_ms": write[0] + publish[0],
        "median_ms": round(statistics.median([a + b for a, b in zip(write[2:], publish[2:], strict=True)])),
        "rounds_ms": result["rounds_ms"],
        "cpu_s_per_role": {role: round(each / len(write), 2) for role, each in sorted(result["cpu_s"].items())},
        "cpu_s_per_round": round(sum(result["cpu_s"].values()) / len(write), 2),
        "requests_per_round": round(sum(result["requests"].values()) / len(write), 1),
        "peak_tree_mb": result["peak_tree_mb"],
        "peak_mb": result["peak_mb"],
    }
