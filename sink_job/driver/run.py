"""Wires one sink's driver to Kafka, S3 and Spark, and runs it in this process until its goal or a signal.

What can be told early is told early: secrets, memory and the bucket are looked at before the JVM is started.
"""

from __future__ import annotations

import logging
import os
import platform
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from sink_job.api import memory_budget
from sink_job.api.errors import SinkError, TooManyExecutorFailures, TransientError
from sink_job.api.report import Failure, Report
from sink_job.api.spec import Sink
from sink_job.coordinator.context import CoordinatorContext, StopCondition
from sink_job.coordinator.coordinator import Coordinator
from sink_job.driver import console, logs, metrics, termination_message
from sink_job.driver.broker_check import wait_for_broker
from sink_job.driver.cgroup_memory import ContainerMemory
from sink_job.driver.liveness import HEARTBEAT_TIMEOUT_S, Heartbeat, LiveTracker
from sink_job.driver.process_memory import peak_rss
from sink_job.driver.report_server import JSON, TEXT, Answer, ReportServer, Routes
from sink_job.driver.secret_registry import SECRETS
from sink_job.driver.signals import StopSignals
from sink_job.kafka.admin import JavaKafkaAdmin
from sink_job.kafka.properties import KafkaProperties
from sink_job.ledger.ownership import Owner
from sink_job.s3 import S3Client, S3Settings, connect
from sink_job.spark.conf import SparkSettings
from sink_job.spark.engine import SparkEngine
from sink_job.spark.executor_pods import read_executor_config
from sink_job.spark.jars import connector_jars
from sink_job.spark.session import session

KAFKA_TIMEOUT_MS = 50_000
"""How long Kafka may keep a question waiting before the run ends with TransientError."""

JVM_ENDS_S = 3
"""How long a killed JVM may take to be gone, which is when an error is blamed on it."""

CLUSTER = "S3SINK_CLUSTER"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to run. `http`: host and port to serve the report on; `memory`: bytes of the whole process tree; `cores`:
    tasks at a time; `screen`: show the live screen if standard error is a terminal; `spark_properties`: the file that
    describes executors in pods of their own, whose sizes then count for tasks instead."""

    goal: StopCondition = field(default_factory=StopCondition)
    secret_dirs: Mapping[str, Path] = field(default_factory=dict)
    http: tuple[str, int] | None = None
    log: str = "text"
    screen: bool = True
    cores: int | None = None
    memory: int | None = None
    spark_properties: Path | None = None
    debug: bool = False


def run_sink(sink: Sink, options: Options, signals: StopSignals) -> Report:
    """Runs the sink until its goal is reached or a signal comes; returns its last report.

    Raises the SinkError that ended it.
    """
    handler = logs.set_up(options.log, debug=options.debug)
    return _Run(sink, options, signals, handler).run()


class _Run:
    """One run and what belongs to it."""

    def __init__(self, sink: Sink, options: Options, signals: StopSignals, handler: logs.LogHandler) -> None:
        """Raises SecretNotFound and ConfigurationError: parts don't fit in memory, executors are not described."""
        self.sink = sink
        self.options = options
        self.signals = signals
        self.handler = handler
        file = options.spark_properties
        self.cluster = None if file is None else read_executor_config(file, os.environ)
        self.cores = options.cores or usual_cores() if self.cluster is None else self.cluster.slots
        self.memory = self._memory()
        self.given = ContainerMemory(options.memory if self.cluster is None else None)
        self.properties = KafkaProperties.of(sink.spec.kafka, options.secret_dirs)
        self.s3_settings = S3Settings.of(sink.spec.s3, options.secret_dirs)
        self.heart = Heartbeat()
        self.tracker = LiveTracker(sink, _clock, slots=self.cores, heart=self.heart)
        self.context: Any = None  # Spark's, while there is one
        self.begins_spark = False

    def run(self) -> Report:
        failure: Exception | None = None
        with ExitStack() as stack:
            try:
                s3 = connect(self.s3_settings)
                self._serve(stack, s3)
                self._until_stopped(stack, s3)
            except Exception as error:
                failure = self._classify(error)
            self.tracker.ended(None if failure is None else failure_of(failure))
            termination_message.write(self.tracker.report().final().termination_message())
        if failure is not None:
            raise failure
        return self.tracker.report()

    def _classify(self, error: Exception) -> Exception | None:
        """What an error means: nothing while stopping, when it is what an end in the middle of something looks like."""
        named = isinstance(error, SinkError) and type(error) is not SinkError
        if self.signals.requested and (not named or isinstance(error, TransientError)):
            _log.info("stopped: %s", error)
            return None
        if named and not isinstance(error, TransientError):
            return error
        if not named and self.cluster is not None and self.begins_spark:
            return TransientError(
                "Spark did not start with Kubernetes as its cluster; the driver's log has the API server's words. May "
                "its account get, list, watch, create and delete pods? The chart's ClusterRole for drivers gives that"
            )
        code = self._jvm_ended() if not named or self.cluster is not None else None
        if code == TooManyExecutorFailures.exit_code:
            return TooManyExecutorFailures(
                "too many executors failed, and Spark gave up. Look at how their pods ended, at their memory "
                "(spec.executor.memory) and at spec.executor.podTemplate; the sink goes on where its ledger says"
            )
        if not named and code is not None:
            return TransientError(
                "Spark's JVM has ended, perhaps killed for want of memory. Nothing is lost; if it happens again, take "
                "fewer tasks at a time (--cores) or look for what else uses this machine's memory"
            )
        return error

    def _jvm_ended(self) -> int | None:
        """The exit code of Spark's JVM; None as long as it lives."""
        if self.context is None:
            return None
        try:
            return int(self.context._gateway.proc.wait(JVM_ENDS_S))
        except subprocess.TimeoutExpired:
            return None

    def _memory(self) -> memory_budget.MemoryBudget:
        """Of this process tree or, with executors of their own, of each of those."""
        if self.cluster is None:
            return memory_of(self.sink, cores=self.cores, total=self.options.memory)
        return memory_of(self.sink, cores=self.cluster.cores, total=self.cluster.memory)

    def _grown(self) -> tuple[int, int] | None:
        """Each task's budget and bodies once the container has been given more; the JVM's heap stays as it is."""
        total = self.given.current()
        if total is None:
            return None
        memory = memory_of(self.sink, cores=self.cores, total=total)
        return memory.budget, memory.part_buffers

    def _until_stopped(self, stack: ExitStack, s3: S3Client) -> None:
        _log.info(
            "%s: %d tasks at a time, %s%d MiB of memory (each task %d MiB and %d parts under way)",
            self.sink.sink_id,
            self.cores,
            "" if self.cluster is None else f"in {self.cluster.instances} executors with each ",
            self.memory.total >> 20,
            self.memory.budget >> 20,
            self.memory.part_buffers,
        )
        present = machine_memory() if self.cluster is None else None
        if present is not None and self.memory.total > present:
            _log.warning("this machine has only %d MiB of memory", present >> 20)
        self.signals.on_stop(self.tracker.stopping)
        self.signals.on_stop(s3.cancel_retries)
        s3.check_access()
        stop = threading.Event()
        self.signals.on_stop(stop.set)
        wait_for_broker(self.properties.bootstrap_servers, stop=stop)
        jars = connector_jars(_log.info)
        if self.signals.requested:
            return
        self.begins_spark = True
        spark = stack.enter_context(session(self._spark_settings(jars)))
        self.context = spark.sparkContext
        self.begins_spark = False
        admin = JavaKafkaAdmin(self.context._gateway, self.properties, timeout_ms=KAFKA_TIMEOUT_MS)
        stack.callback(_quietly, admin.close)
        self.heart.beat()
        engine = SparkEngine(
            spark,
            self.properties.client(),
            group_id=self.sink.group_id,
            redact=self.properties.redact,
            cores=self.cores,
        )
        driver = Coordinator(self.sink, self._world(engine, admin), self.options.goal, self.tracker)
        self.signals.on_stop(driver.stop)
        self.signals.on_stop(admin.close, after_s=3)
        if not self.signals.begin():
            return
        stack.enter_context(self._progress())
        driver.run()

    def _spark_settings(self, jars: list[Path]) -> SparkSettings:
        return SparkSettings(
            app_name=f"s3sink-{self.sink.sink_id}",
            jars=jars,
            cores=self.cores,
            heap=self.memory.heap if self.cluster is None else memory_budget.heap_beside_executors(self.options.memory),
            conf=self.sink.spec.spark_conf,
            cluster=self.cluster,
        )

    def _world(self, engine: SparkEngine, admin: JavaKafkaAdmin) -> CoordinatorContext:
        return CoordinatorContext(
            s3=self.s3_settings,
            admin=admin,
            engine=engine,
            clock=_clock,
            owner=owner_of(self.sink, os.environ),
            attempt=uuid.uuid4().hex,
            budget=self.memory.budget,
            threads=self.memory.part_buffers,
            part_buffers=self.memory.part_buffers,
            current_task_memory=self._grown,
            store_clock=connect(self.s3_settings).clock_ms,
            steady_clock=_steady_clock,
        )

    # -- what others see -----------------------------------------------------------------------------------------------

    def _report(self) -> Report:
        report = self.tracker.report()
        report.memory.jvm_bytes, report.memory.python_bytes = peak_rss()
        return report

    def _serve(self, stack: ExitStack, s3: S3Client) -> None:
        if self.options.http is not None:
            stack.enter_context(ReportServer(*self.options.http, self._routes(s3)))

    def _routes(self, s3: S3Client) -> Routes:
        numbers = metrics.ReportCollector(
            report=self._report,
            lost=lambda: self.tracker.lost_offsets,
            requests={"driver": lambda: s3.meter.snapshot().requests, "task": lambda: self.tracker.requests},
        )
        return {
            "/report": lambda: Answer(200, JSON, self._report().model_dump_json().encode() + b"\n"),
            "/metrics": lambda: Answer(200, metrics.CONTENT_TYPE, metrics.exposition(numbers)),
            "/healthz": self._health,
            "/readyz": self._readiness,
        }

    def _health(self) -> Answer:
        if self.heart.silence_s() > HEARTBEAT_TIMEOUT_S / 4:
            self.heart.observed(self._tasks())
        silence = self.heart.silence_s()
        if silence > HEARTBEAT_TIMEOUT_S:
            return Answer(503, TEXT, f"stuck: no sign of life for {silence:.0f} s\n".encode())
        return Answer(200, TEXT, b"ok\n")

    def _readiness(self) -> Answer:
        state = self.tracker.report().state
        return Answer(200 if state == "Running" else 503, TEXT, f"{state.value}\n".encode())

    def _progress(self) -> AbstractContextManager[None]:
        terminal = Console(stderr=True)
        if (
            self.options.screen
            and self.options.log == "text"
            and terminal.is_terminal
            and not terminal.is_dumb_terminal
        ):
            return console.live(self.tracker.report, self._tasks, self.s3_settings.url, self.handler, terminal)
        return console.plain(self.tracker.report, self._tasks)

    def _tasks(self) -> console.TaskCount | None:
        """The round under way, as Spark sees it; None between rounds."""
        if self.context is None:
            return None
        with suppress(Exception):  # it may end at any moment
            status = self.context.statusTracker()
            jobs = [status.getJobInfo(job) for job in status.getActiveJobsIds()]
            stages = [status.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
            if known := [stage for stage in stages if stage]:
                return console.TaskCount(sum(s.numCompletedTasks for s in known), sum(s.numTasks for s in known))
        return None


def usual_cores() -> int:
    """Tasks at a time when nobody says: the CPUs of this process, at most `memory_budget.MOST_CORES`."""
    available = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return min(available, memory_budget.MAX_CORES)


def machine_memory() -> int | None:
    """Bytes of memory of this machine; None where it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None


def memory_of(sink: Sink, *, cores: int, total: int | None) -> memory_budget.MemoryBudget:
    """How a run divides `total` bytes, or the usual. Raises ConfigurationError when a part does not fit."""
    part_size, bounds = sink.spec.s3.part_size, sink.spec.executor.memory
    usual = memory_budget.default_total(cores=cores, part_size=part_size, least=bounds.min, most=bounds.max)
    return memory_budget.divide(total or usual, cores=cores, part_size=part_size)


def owner_of(sink: Sink, environ: Mapping[str, str]) -> Owner:
    """Who this sink is to others: its cluster is `$S3SINK_CLUSTER`, or this host."""
    cluster = environ.get(CLUSTER) or platform.node() or "localhost"
    return Owner(cluster=cluster, namespace=sink.namespace, name=sink.name, sink_id=sink.sink_id)


def failure_of(error: Exception) -> Failure:
    """The error as the report tells it, without secrets."""
    failure = Failure.of(error)
    failure.message = SECRETS(failure.message)
    return failure


def _quietly(close: Callable[[], object]) -> None:
    """Closes what may be gone already; why the run ends is known by now."""
    try:
        close()
    except Exception as error:
        _log.debug("while closing: %s", error)


def _clock() -> int:
    return time.time_ns() // 1_000_000


def _steady_clock() -> int:
    """Milliseconds that have passed, also while the host was suspended where the system counts that."""
    clock = time.CLOCK_BOOTTIME if sys.platform == "linux" else time.CLOCK_MONOTONIC
    return time.clock_gettime_ns(clock) // 1_000_000
