"""What the memory buys that a sink gets for 40 active topic-partitions: spills, rounds, time and CPU.

`python -m bench.memory_effect [--records 1000000] [--repeat 3]` prints a table. A real broker and VersityGW on
loopback, Local mode with two tasks, parts of 25 MiB. The same backlog of 40 topic-partitions is copied in turns, in one
JVM, with the memory that the operator recommends for 2 and for 40 active topic-partitions with half a part each.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

from confluent_kafka import Producer

from bench.data import PARTITIONS, Case, create, values
from bench.measure import Bench, PassRunner, Result, median_of
from bench.servers import target
from devtools.kafka import KafkaBroker, kafka_broker
from devtools.topics import Topics
from sink_job.api.required_memory import SizingInputs, recommended
from sink_job.api.units.quantities import MI

CORES: Final = 2
PART_SIZE: Final = 25 * MI
COUNT: Final = 40
"""Topic-partitions of each topic."""
ACTIVE: Final = (2, COUNT)
"""Active topic-partitions that the memory is recommended for."""
VALUE_BYTES: Final = 1_000
OPEN_OBJECTS: Final = 200
"""Open objects of a topic-partition with the partitioner Field."""
BUSY_SHARE: Final = 0.96
"""Share of the records in the busy topic-partitions."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A backlog: `busy` topic-partitions have nearly all of it, or all have the same. `by_field`: each has
    `OPEN_OBJECTS` open objects, else one."""

    name: str
    busy: int = COUNT
    by_field: bool = False

    def counts(self, records: int) -> Sequence[int]:
        """The records of each topic-partition."""
        if self.busy == COUNT:
            return [records // COUNT] * COUNT
        rest = round(records * (1 - BUSY_SHARE)) // (COUNT - self.busy)
        return [(records - rest * (COUNT - self.busy)) // self.busy] * self.busy + [rest] * (COUNT - self.busy)

    @property
    def sections(self) -> Mapping[str, Any]:
        """The settings of the sink. No object closes before the end."""
        partitioner = {"partitioner": {"type": "Field", "fields": ["path"]}} if self.by_field else {}
        return {"rotation": {"flushSize": 10**9}, **partitioner}


SHAPES: Final = (
    Shape(name="40 alike, an open object each"),
    Shape(name=f"40 alike, {OPEN_OBJECTS} open objects each", by_field=True),
    Shape(name=f"4 of 40 with 96 % of the records, {OPEN_OBJECTS} open objects each", busy=4, by_field=True),
)


def memory_for(active: int) -> int:
    """Bytes that the operator recommends in Local mode for this number of active topic-partitions."""
    inputs = SizingInputs(
        slots=CORES, part_size=PART_SIZE, open_objects=1, active_partitions=active, remainder_bytes=PART_SIZE // 2
    )
    return recommended(inputs)


def produce(bootstrap: str, topic: str, counts: Sequence[int]) -> None:
    """Creates a topic with this number of records in each partition. In each, consecutive records have another path."""
    create(Topics(bootstrap), topic, len(counts))
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "batch.size": 1 << 20})
    for partition, count in enumerate(counts):
        for value in itertools.islice(_values(), count):
            while True:
                try:
                    producer.produce(topic, value, partition=partition)
                    break
                except BufferError:
                    producer.poll(0.2)
    if left := producer.flush(300):
        raise RuntimeError(f"{left} records were not acknowledged")


def _values() -> Iterator[bytes]:
    """Endless values with `OPEN_OBJECTS` paths in turn."""
    every = itertools.islice(values(VALUE_BYTES), 0, None, PARTITIONS)  # `values` repeats a path for each partition
    made = list(itertools.islice(every, 10 * OPEN_OBJECTS))
    kept = [value.replace(b'"p%d"' % n, b'"p%d"' % (n % OPEN_OBJECTS)) for n, value in enumerate(made)]
    return itertools.cycle(kept)


def measure(broker: KafkaBroker, shape: Shape, number: int, *, records: int, repeat: int) -> Mapping[int, list[Result]]:
    """The results of the warm turns for each of `ACTIVE`."""
    counts = shape.counts(records)
    case = Case(f"memory-{number}", VALUE_BYTES, sum(counts))
    produce(broker.bootstrap, case.topic, counts)
    found: dict[int, list[Result]] = {active: [] for active in ACTIVE}
    with target("versitygw") as s3, tempfile.TemporaryDirectory(prefix="s3sink-bench-") as folder:
        bench = Bench(broker, s3, "versitygw", cores=CORES)
        turns = itertools.count()

        def turn(runner: PassRunner, active: int) -> Result:
            document = bench.manifest(f"memory-{number}", case, shape.sections, number=next(turns))
            result = runner.run(case, "sink", manifest=document, memory=memory_for(active))
            print(shape.name, active, {name: result[name] for name in SHOWN}, file=sys.stderr, flush=True)
            return result

        with bench.passes(Path(folder), bench.manifest("memory", case, shape.sections)) as runner:
            turn(runner, ACTIVE[0])  # the first one starts workers and compiles code
            for index in range(repeat):
                for active in ACTIVE if index % 2 == 0 else reversed(ACTIVE):
                    found[active].append(turn(runner, active))
    return found


SHOWN: Final = ("seconds", "own_cpu_s_per_gb", "spilled_mb", "buffered_mb", "rounds_ms")


def row(shape: Shape, active: int, results: Sequence[Result]) -> str:
    """A row of the table, with medians."""

    middle = partial(median_of, results)
    rounds = median(len(each["rounds_ms"]) for each in results)
    workers = median(each["peak_mb"].get("workers", 0) for each in results)
    return (
        f"| {shape.name} | {active} | {memory_for(active) // MI:,} MiB | {middle('budget_mb'):.0f} "
        f"| {middle('buffered_mb'):.0f} | {middle('spilled_mb'):,.0f} | {rounds:.0f} | {middle('seconds'):.1f} "
        f"| {middle('mb_per_s'):.0f} | {middle('own_cpu_s_per_gb'):.1f} | {workers:.0f} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000, help="records of 1 KB in each topic")
    parser.add_argument("--repeat", type=int, default=3, help="warm turns, of which the table has the medians")
    given = parser.parse_args()
    rows = []
    with kafka_broker(heap="768m") as broker:
        for number, shape in enumerate(SHAPES):
            found = measure(broker, shape, number, records=given.records, repeat=given.repeat)
            rows += [row(shape, active, found[active]) for active in ACTIVE]
    print(
        "| backlog | active | memory | budget of a task, MB | buffered, MB | spilled, MB | rounds | s | MB/s "
        "| CPU-s/GB | workers, MB |\n|---|---|---|---|---|---|---|---|---|---|---|"
    )
    print("\n".join(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
