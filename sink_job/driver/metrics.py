"""`/metrics`: the report in Prometheus' text format. docs/metrics.md describes the metrics.

The collector reads the report at each scrape. It has no counters of its own.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
    StateSetMetricFamily,
    SummaryMetricFamily,
)
from prometheus_client.exposition import generate_latest
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from sink_job.api.report import PartitionReport, Report, RunState, TableSums, max_lag_ms
from sink_job.api.version import package_version

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "s3sink_"
PARTITION_PREFIX = f"{PREFIX}partition_"

_TOTALS = {
    "records": "Records in recorded objects, open ones included",
    "bytes": "Encoded, uncompressed bytes of recorded objects",
    "objects": "Published objects",
    "parts": "Uploaded parts",
    "uploaded_bytes": "Bytes of uploaded parts",
    "ignored_records": "Records without value, ignored by errors.onNullValue",
    "filtered_records": "Records left out by a transform of type Filter",
    "skipped_records": "Records passed over by errors.skip",
    "dropped_records": "Invalid records, dropped by errors.tolerance: All",
    "dead_letters": "Invalid records in dead-letter objects (errors.deadLetters.prefix), open ones included",
    "dropped_properties": "Properties that the schema of their value lacks, dropped by format.unknownFields: Drop",
    "rebuilt_objects": "Objects rebuilt after the loss of their upload",
    "s3_retries": "Retried requests of tasks to S3",
    "clock_jumps": "Changes of the host's clock by more than 5 s",
}
_FIELDS = {
    "ignored_records": "ignored",
    "filtered_records": "filtered",
    "skipped_records": "skipped",
    "dropped_records": "dropped",
    "rebuilt_objects": "rebuilt",
    "s3_retries": "retries",
}

_PARTITION: Mapping[str, tuple[str, Callable[[PartitionReport], float | None]]] = {
    "committed_offset": ("First offset that is not in a visible object", lambda p: p.committed),
    "next_offset": ("First offset that has not been read", lambda p: p.next),
    "end_offset": ("Log end offset at the sink's isolation level", lambda p: p.end),
    "lag_records": ("Offsets between committed_offset and end_offset", lambda p: p.lag),
    "lag_seconds": (
        "Age of the first record that is not in a visible object",
        lambda p: None if p.lag_ms is None else p.lag_ms / 1000,
    ),
    "open_objects": ("Open objects", lambda p: p.open_objects),
}


class ReportCollector(Collector):
    """Metrics of the report and of the requests to S3, but for those of single topic-partitions."""

    def __init__(
        self,
        *,
        report: Callable[[], Report],
        lost: Callable[[], int],
        requests: Mapping[str, Callable[[], Mapping[str, int]]],
    ) -> None:
        """`lost`: offsets that Kafka deleted before they were in S3. `requests`: requests to S3 by operation, for each
        process (driver, task)."""
        self._report = report
        self._lost = lost
        self._requests = requests

    def collect(self) -> Iterator[Metric]:
        report = self._report()
        yield from self._identity(report)
        for name, about in _TOTALS.items():
            yield CounterMetricFamily(PREFIX + name, about, value=getattr(report.totals, _FIELDS.get(name, name)))
        about = "Offsets deleted in Kafka before they were in S3"
        yield CounterMetricFamily(f"{PREFIX}lost_offsets", about, value=self._lost())
        yield self._s3()
        yield from self._durations(report)
        yield from self._sizes(report)
        yield from _progress(report.partitions)
        if report.table_sums is not None:
            yield from _tables(report.table_sums)

    def _identity(self, report: Report) -> Iterator[Metric]:
        info = InfoMetricFamily(PREFIX.removesuffix("_"), "Identity of the sink")
        info.add_metric([], {"sink_id": report.sink_id, "name": report.name, "namespace": report.namespace})
        yield info
        build = InfoMetricFamily(f"{PREFIX}build", "Versions of the job and of Python")
        build.add_metric([], {"version": package_version(), "python_version": platform.python_version()})
        yield build
        states = {state.value: state is report.state for state in RunState}
        yield StateSetMetricFamily(f"{PREFIX}state", "State of the driver", value=states)
        yield _gauge("epoch", "Number of this driver's claim in the ledger", report.epoch)
        yield _gauge("ledger_record", "Number of the last record in the ledger", report.round)
        yield _gauge("start_time_seconds", "Start time of this driver", report.started_at / 1000)
        yield _gauge(
            "last_publish_time_seconds",
            "Time of the last publication of an object",
            None if report.last_publish is None else report.last_publish / 1000,
        )

    def _s3(self) -> Metric:
        family = CounterMetricFamily(f"{PREFIX}s3_requests", "Requests to S3", labels=["process", "operation"])
        for process, read in self._requests.items():
            for operation, count in sorted(read().items()):
                family.add_metric([process, operation], count)
        return family

    def _durations(self, report: Report) -> Iterator[Metric]:
        for name, about, timing in (
            ("round_duration", "Time to plan, read, upload and record one round", report.rounds),
            ("publish_duration", "Time to publish the objects of one round and commit offsets", report.publishes),
        ):
            yield SummaryMetricFamily(
                f"{PREFIX}{name}_seconds", about, count_value=timing.count, sum_value=timing.total_ms / 1000
            )

    def _sizes(self, report: Report) -> Iterator[Metric]:
        memory = report.memory
        yield _gauge("assigned_partitions", "Topic-partitions of this sink", report.assigned_partitions)
        yield _gauge("active_partitions", "Topic-partitions read by the last round", report.active_partitions)
        yield _gauge("task_slots", "Maximum number of concurrent tasks", memory.slots)
        yield _gauge("buffered_bytes", "Peak bytes in memory of the tasks of the last round", memory.buffered_bytes)
        yield _gauge("spilled_bytes", "Bytes that the tasks of the last round spilled to disk", memory.spilled_bytes)
        yield _gauge("jvm_peak_bytes", "Peak resident memory of the JVM", memory.jvm_bytes)
        yield _gauge("python_worker_peak_bytes", "Peak resident memory of the largest worker", memory.python_bytes)


class PartitionCollector(Collector):
    """Metrics of each topic-partition. Their number is not limited."""

    def __init__(self, report: Callable[[], Report]) -> None:
        self._report = report

    def collect(self) -> Iterator[Metric]:
        partitions = self._report().partitions
        for name, (about, value) in _PARTITION.items():
            yield _of_partitions(name, about, partitions, value)


def exposition(collectors: Iterable[Collector]) -> bytes:
    """All metrics of these collectors in the text format."""
    registry = CollectorRegistry(auto_describe=False)
    for each in collectors:
        registry.register(each)
    return generate_latest(registry)


def process_collector() -> Collector:
    """CPU time, memory and open files of the driver's own process (Linux)."""
    return ProcessCollector(registry=None)


def _progress(partitions: list[PartitionReport]) -> Iterator[Metric]:
    """Sums over the topic-partitions. A sum of values of which none is known has no sample."""
    yield _sum("lag_records", "Offsets between committed and end offsets", (each.lag for each in partitions))
    age = max_lag_ms(partitions)
    about = "Age of the oldest record that is not in a visible object"
    yield _gauge("lag_seconds", about, None if age is None else age / 1000)
    unread = (None if each.end is None else max(0, each.end - each.next) for each in partitions)
    yield _sum("unread_records", "Offsets between next and end offsets", unread)
    yield _sum("read_offsets", "Sum of the next offsets: it grows with each read", (each.next for each in partitions))
    yield _sum("open_objects", "Open objects", (each.open_objects for each in partitions))


def _tables(sums: TableSums) -> Iterator[Metric]:
    """Sums over the tables of the sink: their number is not limited."""
    yield _gauge("tables", "Tables of spec.tables", sums.tables)
    yield _gauge("tables_failing", "Tables to which nothing can be added", sums.failing)
    yield _gauge("table_lag_objects", "Published objects that are not in a table yet", sums.lag_objects)
    yield _gauge("table_lag_seconds", "Longest time since when a table lacks objects", sums.lag_ms / 1000)
    about = "Objects that did not exist and were left out of tables"
    yield _gauge("table_skipped_objects", about, sums.skipped_objects)
    about = "Objects that this driver has added to tables"
    yield CounterMetricFamily(f"{PREFIX}table_objects", about, value=sums.objects)
    yield CounterMetricFamily(f"{PREFIX}table_commits", "Commits of this driver to tables", value=sums.commits)


def _sum(name: str, about: str, values: Iterable[int | None]) -> Metric:
    known = [each for each in values if each is not None]
    return _gauge(name, about, sum(known) if known else None)


def _gauge(name: str, about: str, value: float | None) -> Metric:
    """A gauge; without a sample if the value is unknown."""
    family = GaugeMetricFamily(PREFIX + name, about)
    if value is not None:
        family.add_metric([], value)
    return family


def _of_partitions(
    name: str, about: str, partitions: list[PartitionReport], value: Callable[[PartitionReport], float | None]
) -> Metric:
    family = GaugeMetricFamily(PARTITION_PREFIX + name, about, labels=["topic", "partition"])
    for partition in partitions:
        number = value(partition)
        if number is not None:
            family.add_metric([partition.topic, str(partition.partition)], number)
    return family
