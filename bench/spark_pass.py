"""The measured process: a Spark session as in `s3sink run`, and consecutive passes over a topic.

A pass is a *stage*: `consumer` (a plain Java consumer without Spark that discards records), `reader` (the sink's engine
with a function that only counts), `sink` (the whole driver, until it has caught up and published open objects). The
process reads one pass per line from standard input. It prints the events `begin` and `end` and waits for a line after
each, so the bench can sample all processes in between. `python -m bench.spark_pass < …`.
"""

from __future__ import annotations

import json
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

import pyarrow as pa

from sink_job.api import memory_budget
from sink_job.api.parser import load_sink
from sink_job.api.spec import Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.context import CoordinatorContext, StopCondition
from sink_job.coordinator.coordinator import Coordinator
from sink_job.coordinator.progress import Progress
from sink_job.driver.machine import memory_of, owner_of
from sink_job.engine.types import Columns, Range, stateless
from sink_job.kafka.admin import JavaKafkaAdmin
from sink_job.kafka.java_classes import new_instance
from sink_job.kafka.properties import KafkaProperties
from sink_job.registry.client import open_schemas
from sink_job.registry.settings import RegistrySettings
from sink_job.s3 import S3Settings, connect
from sink_job.spark.conf import SparkSettings
from sink_job.spark.engine import SparkEngine
from sink_job.spark.executor_pods import ExecutorConfig
from sink_job.spark.jars import client_jars
from sink_job.spark.session import session

Pass = Mapping[str, Any]
_DESERIALIZER = "org.apache.kafka.common.serialization.ByteArrayDeserializer"


def count(tp: TopicPartition, given: bytes, batches: Iterator[pa.RecordBatch]) -> bytes:
    """The engine's function: it counts records and bytes."""
    records = size = 0
    for batch in batches:
        records += batch.num_rows
        size += batch.nbytes
    return json.dumps([records, size]).encode()


class RoundLog(Progress):
    """A `Progress` that keeps the times of each round in ms: tasks and record, publication. `spilled`: bytes that all
    rounds spilled. `buffered`: the most that a topic-partition had in memory."""

    def __init__(self, sink: Sink) -> None:
        super().__init__(sink, clock)
        self.rounds: list[tuple[int, int]] = []
        self.spilled = self.buffered = 0

    def round_completed(self, results: Any, commits: Any, *, started: int, recorded: int, ended: int) -> None:
        super().round_completed(results, commits, started=started, recorded=recorded, ended=ended)
        self.rounds.append((recorded - started, ended - recorded))
        counts = [result.counts for result in results.values()]
        self.spilled += sum(each.spilled_bytes for each in counts)
        self.buffered = max(self.buffered, *(each.buffered_bytes for each in counts), 0)


class Passes:
    """Runs passes in one session; `sink` determines the settings of the session."""

    def __init__(self, spark: Any, sink: Sink, *, cores: int, executor_memory: int | None = None) -> None:
        self.cores = cores
        self.executor_memory = executor_memory
        self.spark = spark
        self.gateway = spark._gateway
        self.properties = KafkaProperties.of(sink.spec.kafka, {})
        self.admin = JavaKafkaAdmin(self.gateway, self.properties, timeout_ms=50_000)
        self.engine = SparkEngine(spark, self.properties.client(), cores=cores)

    def run(self, what: Pass) -> dict[str, Any]:
        """The results of the pass, except its time."""
        stages = {"consumer": self.consumer, "reader": self.reader, "sink": self.sink}
        return stages[what["stage"]](what)

    def consumer(self, what: Pass) -> dict[str, Any]:
        properties = self.consumer_properties({"max.poll.records": "5000"})
        consume = new_instance(self.gateway, files("bench") / "Consume.java", "bench.Consume")
        per_partition = what["records"] // what["partitions"]
        return {"bytes": consume.read(properties, what["topic"], what["partitions"], per_partition, self.cores)}

    def consumer_properties(self, more: Mapping[str, str]) -> Any:
        properties = self.gateway.jvm.java.util.HashMap()
        for name, value in {
            "bootstrap.servers": self.properties.client()["bootstrap.servers"],
            "key.deserializer": _DESERIALIZER,
            "value.deserializer": _DESERIALIZER,
            "max.partition.fetch.bytes": str(4 << 20),
            "receive.buffer.bytes": str(1 << 20),
            "enable.auto.commit": "false",
            **more,
        }.items():
            properties.put(name, value)
        return properties

    def reader(self, what: Pass) -> dict[str, Any]:
        ranges = {TopicPartition(what["topic"], n): Range(0, 0) for n in range(what["partitions"])}
        ends = self.admin.end_offsets(list(ranges))
        results = self.engine.run(
            ranges={tp: Range(0, ends[tp]) for tp in ranges},
            idle=[],
            inputs={},
            columns=Columns(timestamp=what.get("timestamp", False)),
            factory=stateless(count),
        )
        return {"records_read": sum(json.loads(result)[0] for result in results.values())}

    def sink(self, what: Pass) -> dict[str, Any]:
        sink = load_sink(json.dumps(what["manifest"]))
        settings = S3Settings.of(sink.spec, {})
        if self.executor_memory is None:
            memory = memory_of(sink, cores=self.cores, total=what.get("memory"))
        else:
            memory = memory_of(sink, cores=1, total=self.executor_memory)
        registry = None if sink.spec.format.registry is None else RegistrySettings.of(sink.spec.format.registry, {})
        schemas = open_schemas(sink.spec.format, registry, lambda seconds: False, lambda secrets: None)
        world = CoordinatorContext(
            s3=settings,
            admin=self.admin,
            engine=self.engine,
            clock=clock,
            owner=owner_of(sink, {}),
            attempt=uuid.uuid4().hex,
            budget=memory.budget,
            threads=memory.part_buffers,
            part_buffers=memory.part_buffers,
            registry=schemas,
        )
        tracker = RoundLog(sink)
        before = connect(settings).meter.snapshot()
        goal = StopCondition(until_caught_up=True, publish_open=what.get("publish_open", True))
        Coordinator(sink, world, goal, tracker).run()
        if schemas is not None:
            schemas.close()
        asked = connect(settings).meter.snapshot() - before
        report = tracker.report()
        return {
            "requests": dict(Counter(asked.requests) + Counter(tracker.requests)),
            "rounds_ms": tracker.rounds,
            "records_written": report.totals.records + report.totals.dead_letters,
            "objects": report.totals.objects,
            "spilled_bytes": tracker.spilled,
            "buffered_bytes": tracker.buffered,
            "budget_bytes": memory.budget,
        }


def clock() -> int:
    return time.time_ns() // 1_000_000


def executor_config(executors: int, memory: int) -> ExecutorConfig:
    """Executors of one core that Spark's master `local-cluster` starts as processes here. `memory`: bytes."""
    heap = memory_budget.heap_of(1) >> 20
    properties = {
        "spark.master": f"local-cluster[{executors},1,{heap}]",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": f"{heap}m",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
    }
    return ExecutorConfig(properties=properties, instances=executors, cores=1, memory=memory)


def main() -> None:
    """The first input line has the settings of the session; an empty pass ends it."""
    first = json.loads(sys.stdin.readline())
    sink = load_sink(json.dumps(first["manifest"]))
    cores, executor_memory = first["cores"], first.get("executor_memory")
    memory = memory_of(sink, cores=cores, total=None)
    cluster = None if executor_memory is None else executor_config(cores, executor_memory)
    conf = {**sink.spec.spark_conf, **first.get("conf", {})}
    jars = client_jars()
    settings = SparkSettings(app_name="bench", jars=jars, cores=cores, heap=memory.heap, conf=conf, cluster=cluster)
    with session(settings) as spark:
        passes = Passes(spark, sink, cores=cores, executor_memory=executor_memory)
        _emit({"event": "ready"})
        while line := sys.stdin.readline().strip():
            what = json.loads(line)
            _emit({"event": "begin"})
            started = time.monotonic()
            found = passes.run(what)
            seconds = time.monotonic() - started
            _emit({"event": "end", "seconds": seconds, **found})


def _emit(event: Mapping[str, Any]) -> None:
    """Prints an event and waits for the bench's sample; the line after `ready` and `end` is the next pass."""
    print(json.dumps(event), flush=True)
    if event["event"] == "begin":
        sys.stdin.readline()


if __name__ == "__main__":
    main()
