"""Memory limits: the job's own rounds over a generated log, in one Python process without a JVM.

`python -m bench.memory_limits < CONFIG.json` is the measured process. It contains all work of a task on its objects and
no Spark, so its memory is that of one worker plus the driver's own.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa

from bench.data import PATHS, Case, values
from bench.measure import Bench, Result
from bench.resource_sampler import Sampler, spent
from devtools.s3 import credentials_environment
from sink_job.api.parser import load_sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.context import CoordinatorContext, StopCondition
from sink_job.coordinator.coordinator import Coordinator
from sink_job.coordinator.progress import Progress
from sink_job.driver.machine import memory_of, owner_of
from sink_job.engine.kafka_admin import GroupMember, TopicInfo
from sink_job.engine.types import Columns, ProcessorFactory, Range
from sink_job.registry.bare_values import BareValueSchema, bare_value_schema
from sink_job.s3 import S3Settings

TOPIC = "endless"
VALUE_BYTES = 1_000
SCHEMA = {
    "type": "record",
    "name": "Value",
    "fields": [{"name": "path", "type": "string"}, {"name": "text", "type": "string"}],
}
BATCH = 1_000


def backlog(bench: Bench, folder: Path, *, gigabytes: float) -> Result:
    """One partition with this number of bytes for one object: rounds of 512 MiB, parts of 25 MiB."""
    records = int(gigabytes * 1e9) // VALUE_BYTES
    result = _run(bench, folder, "backlog", records, {"rotation": {"flushSize": 10**9}})
    return {"settings": f"{gigabytes:g} GB a partition, one object", **result}


def open_paths(bench: Bench, folder: Path, *, gigabytes: float) -> Result:
    """One partition whose consecutive records go to 2,000 open objects in turn."""
    records = int(gigabytes * 1e9) // VALUE_BYTES
    sections = {"rotation": {"flushSize": 10**9}, "partitioner": {"type": "Field", "fields": ["path"]}}
    result = _run(bench, folder, "open-paths", records, sections)
    return {"settings": f"{PATHS:,} open paths in one task, {gigabytes:g} GB", **result}


def open_parquet_paths(bench: Bench, folder: Path, *, gigabytes: float) -> Result:
    """The same with Avro values and Parquet objects."""
    records = int(gigabytes * 1e9) // VALUE_BYTES
    sections = {
        "rotation": {"flushSize": 10**9},
        "partitioner": {"type": "Field", "fields": ["path"]},
        "format": {"converter": "Avro", "schema": {"text": json.dumps(SCHEMA)}, "output": "Parquet"},
    }
    result = _run(bench, folder, "parquet-paths", records, sections)
    return {"settings": f"{PATHS:,} open Parquet paths in one task, {gigabytes:g} GB", **result}


def _run(bench: Bench, folder: Path, name: str, records: int, sections: Mapping[str, Any]) -> Result:
    case = Case(TOPIC, VALUE_BYTES, records)
    document = bench.manifest(name, case, {**sections, "kafka": {"topics": [TOPIC]}})
    config = {"manifest": document, "records": records, "cores": bench.cores}
    with (folder / "limits.log").open("wb") as log:
        started = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.memory_limits"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, **credentials_environment()},
            start_new_session=True,
        )
        with Sampler(process.pid, bench.servers()) as sampler:
            before = sampler.sample()
            answer, _ = process.communicate(json.dumps(config), timeout=1800)
            after, peaks = sampler.sample(), sampler.take_peaks()
    if process.returncode:
        raise RuntimeError(f"bench.memory_limits exited:\n{(folder / 'limits.log').read_text()[-3000:]}")
    seconds = time.monotonic() - started
    return {
        "stage": "in process",
        "pass": "cold",
        "target": bench.target,
        "case": "1k",
        "records": records,
        "bytes": case.bytes,
        "seconds": round(seconds, 2),
        "mb_per_s": round(case.bytes / 1e6 / seconds, 1),
        "own_cpu_s_per_gb": round(spent(before, after).get("driver", 0.0) / (case.bytes / 1e9), 2),
        "peak_mb": {"python": round(peaks.rss.get("driver", 0) / 1e6)},
        **json.loads(answer),
    }


class EndlessLog:
    """Engine and Kafka in this process: values repeat every `2 * BATCH` records except for their offsets."""

    def __init__(self, records: int, *, avro: bool = False) -> None:
        self.records = records
        made = map(_avro, values(VALUE_BYTES)) if avro else values(VALUE_BYTES)
        rows = [next(made) for _ in range(8 * PATHS)][::8]  # as in one partition of the topics: path after path
        self._values = [pa.array(rows[n : n + BATCH], pa.binary()) for n in range(0, len(rows), BATCH)]
        self._committed: dict[TopicPartition, int] = {}

    def _batches(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        for first in range(start - start % BATCH, end, BATCH):
            low, high = max(first, start), min(first + BATCH, end)
            column = self._values[first // BATCH % len(self._values)].slice(low - first, high - low)
            yield pa.RecordBatch.from_arrays(
                [pa.array(np.arange(low, high, dtype=np.int64)), column], names=["offset", "value"]
            )

    def run(
        self,
        *,
        ranges: Mapping[TopicPartition, Range],
        idle: Sequence[TopicPartition],
        inputs: Mapping[TopicPartition, bytes],
        columns: Columns,
        factory: ProcessorFactory,
    ) -> dict[TopicPartition, bytes]:
        share = factory()
        results = {tp: share(tp, inputs[tp], self._batches(r.start, r.end)) for tp, r in ranges.items()}
        results |= {tp: share(tp, inputs[tp], iter(())) for tp in idle}
        share.close()
        return results

    def cancel(self) -> None:
        """Does nothing: no task runs in the background."""

    def end_offsets(self, partitions: Sequence[TopicPartition], *, committed: bool = True) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, self.records)

    def beginning_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 0)

    def offsets_for_times(self, partitions: Sequence[TopicPartition], ms: int) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 0)

    def topics(self, names: Sequence[str] | None = None, *, pattern: str | None = None) -> dict[str, TopicInfo]:
        return {TOPIC: TopicInfo("endless-id", 1)}

    def cluster_id(self) -> str:
        return "endless"

    def group_offsets(
        self, group: str, partitions: Sequence[TopicPartition], *, metadata: str = ""
    ) -> dict[TopicPartition, int]:
        return {tp: offset for tp, offset in self._committed.items() if tp in partitions}

    def group_metadata(self, group: str, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, str]:
        return {}

    def group_members(self, group: str) -> int:
        return 0

    def active_groups(self, topics: Sequence[str]) -> Sequence[GroupMember]:
        return ()

    def alter_group_offsets(self, group: str, offsets: Mapping[TopicPartition, int], *, metadata: str = "") -> None:
        self._committed.update(offsets)

    def log_sizes(self, topics: Sequence[str]) -> dict[TopicPartition, int]:
        return {TopicPartition(TOPIC, 0): self.records * VALUE_BYTES}


def _avro(value: bytes) -> bytes:
    """The path of a JSON value, and the value as a text."""
    data = io.BytesIO()
    fastavro.schemaless_writer(data, SCHEMA, {"path": json.loads(value)["path"], "text": value[16:].decode()})
    return data.getvalue()


def main() -> None:
    given = json.load(sys.stdin)
    sink = load_sink(json.dumps(given["manifest"]))
    memory = memory_of(sink, cores=given["cores"], total=None)
    bare_values = bare_value_schema(sink.spec.format)
    log = EndlessLog(given["records"], avro=bare_values is not None)
    tracker = Progress(sink, _clock)
    world = CoordinatorContext(
        s3=S3Settings.of(sink.spec, {}),
        admin=log,
        engine=log,
        clock=_clock,
        owner=owner_of(sink, {}),
        attempt=uuid.uuid4().hex,
        budget=memory.budget,
        threads=memory.part_buffers,
        part_buffers=memory.part_buffers,
        registry=None if bare_values is None else BareValueSchema(bare_values, None),
    )
    Coordinator(sink, world, StopCondition(until_caught_up=True), tracker).run()
    report = tracker.report()
    figures = {
        "budget_mb": round(memory.budget / 1e6),
        "rounds": report.rounds.count,
        "open_objects": report.memory.open_objects,
        "buffered_mb": round(report.memory.buffered_bytes / 1e6),
        "spilled_mb": round(report.memory.spilled_bytes / 1e6),
    }
    print(json.dumps(figures))


def _clock() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    main()
