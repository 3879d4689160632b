"""Whether more executors make a sink with 40 active topic-partitions faster: time, rounds a minute and CPU.

`python -m bench.executors [--records 200000] [--repeat 3] [--executors 1 2 4]` prints a table. Executors of one core
are processes of Spark's master `local-cluster` on this machine; a real broker. The same backlog of 40 topic-partitions
alike is copied in ten rounds, into a store that answers at once and into one that answers after 50 ms
(`bench.null_s3`), with the memory that the operator recommends for this number of executors.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.data import Case
from bench.measure import Bench, Result, median_of
from bench.memory_effect import COUNT, PART_SIZE, VALUE_BYTES, produce
from bench.servers import target
from devtools.kafka import KafkaBroker, kafka_broker
from sink_job.api.required_memory import SizingInputs, recommended
from sink_job.api.units.quantities import MI

ROUNDS: Final = 10
STORES: Final = {"null": "answers at once", "far": "answers after 50 ms"}
SHOWN: Final = ("seconds", "own_cpu_s_per_gb", "requests", "rounds_ms")


def memory_for(executors: int) -> int:
    """Bytes that the operator recommends for each executor of one core, with half a part of each topic-partition."""
    inputs = SizingInputs(
        slots=1,
        part_size=PART_SIZE,
        open_objects=1,
        active_partitions=-(-COUNT // executors),
        remainder_bytes=PART_SIZE // 2,
    )
    return recommended(inputs)


def sections(records: int) -> Mapping[str, Any]:
    """The settings of the sink: `ROUNDS` rounds; no object closes before the end."""
    return {
        "rotation": {"flushSize": 10**9},
        "rounds": {"maxRecords": max(1, records // COUNT // ROUNDS), "minBytes": 0},
    }


def measure(broker: KafkaBroker, case: Case, store: str, executors: int, *, repeat: int) -> list[Result]:
    """The results of the warm turns."""
    settings = sections(case.records)
    with target(store) as s3, tempfile.TemporaryDirectory(prefix="s3sink-bench-") as folder:
        bench = Bench(broker, s3, store, cores=executors)
        numbers = itertools.count()

        def document() -> Mapping[str, Any]:
            return bench.manifest(f"executors-{executors}", case, settings, number=next(numbers))

        with bench.passes(Path(folder), document(), executor_memory=memory_for(executors)) as runner:
            found = []
            for _ in range(repeat + 1):  # the first one starts workers and compiles code
                found.append(runner.run(case, "sink", manifest=document()))
                print(store, executors, {name: found[-1][name] for name in SHOWN}, file=sys.stderr, flush=True)
            return found[1:]


def row(store: str, executors: int, results: Sequence[Result]) -> str:
    """A row of the table, with medians."""

    middle = partial(median_of, results)
    rounds = median(60 * len(each["rounds_ms"]) / each["seconds"] for each in results)
    cores = median(each["own_cpu_s_per_gb"] * each["bytes"] / 1e9 / each["seconds"] for each in results)
    return (
        f"| {STORES[store]} | {executors} | {memory_for(executors) // MI:,} MiB "
        f"| {middle('seconds'):.1f} | {rounds:.0f} | {middle('mb_per_s'):.1f} "
        f"| {middle('own_cpu_s_per_gb'):.1f} | {cores:.2f} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=200_000, help="records of 1 KB in the topic")
    parser.add_argument("--repeat", type=int, default=3, help="warm turns, of which the table has the medians")
    parser.add_argument("--executors", type=int, nargs="+", default=[1, 2, 4])
    given = parser.parse_args()
    rows = []
    with kafka_broker(heap="768m") as broker:
        counts = [given.records // COUNT] * COUNT
        case = Case("executors", VALUE_BYTES, sum(counts))
        produce(broker.bootstrap, case.topic, counts)
        for store, executors in itertools.product(STORES, given.executors):
            results = measure(broker, case, store, executors, repeat=given.repeat)
            rows.append(row(store, executors, results))
    print("| store | executors | memory of each | s | rounds a minute | MB/s | CPU-s/GB | cores in use |")
    print("|---|---|---|---|---|---|---|---|")
    print("\n".join(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
