"""Connects a sink's coordinator to Kafka, S3 and Spark, and runs it until its stop condition or a signal.

Secrets, memory and the bucket are checked before the JVM starts, to report errors early.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from rich.console import Console

from sink_job.api import memory_budget
from sink_job.api.allocation import Allocation
from sink_job.api.enums import IsolationLevel
from sink_job.api.report import Failure, Report
from sink_job.api.report_access import AT_STOP, REPORT_TOKEN_VARIABLE
from sink_job.api.spec import Sink
from sink_job.codecs.modules import task_modules
from sink_job.coordinator.activity import WINDOW_MS
from sink_job.coordinator.context import CoordinatorContext, StopCondition
from sink_job.coordinator.coordinator import Coordinator
from sink_job.coordinator.progress import Progress
from sink_job.driver import console, logs, termination_message
from sink_job.driver.broker_check import wait_for_broker
from sink_job.driver.executor_permission import ExecutorPermission
from sink_job.driver.lag_sampler import LagSampler
from sink_job.driver.live_allocation import LiveAllocation, allocation_file
from sink_job.driver.liveness import Heartbeat
from sink_job.driver.machine import owner_of
from sink_job.driver.report_endpoints import ReportEndpoints
from sink_job.driver.report_server import ReportServer
from sink_job.driver.run_errors import classified
from sink_job.driver.secret_registry import SECRETS
from sink_job.driver.signals import StopInstruction, StopSignals
from sink_job.driver.started_spark import StartedSpark
from sink_job.driver.task_resources import TaskResources
from sink_job.engine.dead_letter_topic import DeadLetterTopic
from sink_job.kafka.admin import JavaKafkaAdmin
from sink_job.kafka.dead_letter_topic import JavaDeadLetterTopic
from sink_job.kafka.properties import KafkaProperties
from sink_job.kafka.record_times import RecordTimes
from sink_job.kafka.unknown_properties import unknown_properties
from sink_job.ledger.clocks import checked_now
from sink_job.ledger.first_claim.ledger_place import ledger_root
from sink_job.ledger.first_claim.previous_writer import PreviousWriter
from sink_job.maintenance.position.start import FromConnector, previous_writer
from sink_job.registry.base import SchemaRegistry
from sink_job.registry.client import open_schemas
from sink_job.registry.settings import RegistrySettings
from sink_job.s3 import S3Client, S3Settings, StoreAdvice, check_store, connect
from sink_job.spark.conf import SparkSettings
from sink_job.spark.engine import SparkEngine
from sink_job.spark.executor_log import ExecutorLog, failure_limit
from sink_job.spark.executor_scaling import ExecutorScaler
from sink_job.spark.login_jars import kafka_jars
from sink_job.spark.session import Gateway, Session, session
from sink_job.tables.catalog.access import CatalogSecrets
from sink_job.tables.registering import check_installed, holding_topics, registering

KAFKA_TIMEOUT_MS = 50_000
"""Timeout of a request to Kafka's admin API. After it, the run ends with TransientError."""

ACTIVITY_WINDOW = "S3SINK_ACTIVITY_WINDOW_MS"
"""Environment variable of tests: a shorter window than `activity.WINDOW_MS`."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of a run.

    `http`: host and port of the report server. `memory`: bytes for the whole process tree. `cores`: concurrent tasks.
    `screen`: show the live console if standard error is a terminal. `spark_properties`: file with the Spark properties
    of executor pods; tasks then use the memory and cores of these pods. `from_connector`: a first start continues a
    connector.
    """

    goal: StopCondition = field(default_factory=StopCondition)
    secret_dirs: Mapping[str, Path] = field(default_factory=dict)
    http: tuple[str, int] | None = None
    log: str = "text"
    screen: bool = True
    cores: int | None = None
    memory: int | None = None
    spark_properties: Path | None = None
    from_connector: FromConnector | None = None
    debug: bool = False


def run_sink(sink: Sink, options: RunOptions, signals: StopSignals) -> Report:
    """Runs the sink until its stop condition or a signal; returns its last report.

    Raises the SinkError that ended the run.
    """
    handler = logs.set_up(options.log, debug=options.debug)
    return _Run(sink, options, signals, handler).run()


@dataclass(frozen=True)
class Connections:
    """The settings of the connections of a run, with their secrets."""

    kafka: KafkaProperties
    s3: S3Settings
    registry: RegistrySettings | None

    @classmethod
    def of(cls, sink: Sink, secret_dirs: Mapping[str, Path]) -> Connections:
        """Raises SecretNotFound."""
        registry = sink.spec.format.registry
        s3 = S3Settings.of(sink.spec, secret_dirs)
        return cls(
            KafkaProperties.of(sink.spec.kafka, secret_dirs),
            s3,
            None if registry is None else RegistrySettings.of(registry, secret_dirs, s3.proxy),
        )


class _Run:
    """One run with its resources."""

    def __init__(self, sink: Sink, options: RunOptions, signals: StopSignals, handler: logs.LogHandler) -> None:
        """Raises SecretNotFound, and ConfigurationError if parts do not fit in memory or the file of executor
        properties is invalid."""
        self.sink = sink
        self.options = options
        self.signals = signals
        self.handler = handler
        self.tasks = TaskResources.of(
            sink, spark_properties=options.spark_properties, cores=options.cores, memory=options.memory
        )
        self.connections = Connections.of(sink, options.secret_dirs)
        self.heartbeat = Heartbeat()
        self.stop_instruction = StopInstruction()
        window_ms = int(os.environ.get(ACTIVITY_WINDOW, WINDOW_MS))
        self.progress = Progress(
            sink, _clock, slots=self.tasks.cores, observer=self.heartbeat.beat, window_ms=window_ms
        )
        self.allocation = LiveAllocation(
            allocation_file(),
            Allocation(executors=self.tasks.executors, memory=self.tasks.memory.total),
            cores=self.tasks.cores_of_executor,
            part_size=sink.spec.s3.part_size,
            encoding=memory_budget.encoding_memory(sink.spec.format),
            registration=self.tasks.registration if self.tasks.cluster is None else 0,
            progress=self.progress,
        )
        self.spark = StartedSpark()
        self.endpoints = ReportEndpoints(self.progress, self.heartbeat, self.spark)

    @property
    def only_publishes(self) -> bool:
        """Whether the run reads no records."""
        return self.options.goal.publish_open and not self.options.goal.until_caught_up

    def run(self) -> Report:
        failure: Exception | None = None
        with ExitStack() as stack:
            try:
                s3 = connect(self.connections.s3)
                self._serve(stack, s3)
                self._until_stopped(stack, s3)
            except Exception as error:
                failure = self._classify(error)
            self.progress.ended(None if failure is None else failure_of(failure))
            termination_message.write(self.progress.report().final().termination_message())
        if failure is not None:
            raise failure
        return self.progress.report()

    def _classify(self, error: Exception) -> Exception | None:
        has_executors = self.tasks.cluster is not None
        return classified(error, stopping=self.signals.requested, has_executors=has_executors, spark=self.spark)

    def _until_stopped(self, stack: ExitStack, s3: S3Client) -> None:
        stop = threading.Event()
        self.signals.on_stop(self.progress.stopping)
        self.signals.on_stop(s3.cancel_retries)
        self.signals.on_stop(stop.set)
        jars = self._before_spark(s3, stop)
        if self.signals.requested:
            return
        pool = ThreadPoolExecutor(thread_name_prefix="s3sink-start")
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)
        store_check = self._begin_store_check(pool, s3)
        admins: list[Future[JavaKafkaAdmin]] = []
        spark = self._start_spark(
            stack, jars, lambda gateway: admins.append(pool.submit(self._open_admin, pool, gateway))
        )
        warn_of_unknown(spark, self.sink)
        (opening,) = admins
        admin = opening.result()
        stack.callback(_quietly, admin.close)
        stack.enter_context(self._lag_sampler(admin))
        self.heartbeat.beat()
        engine = SparkEngine(
            spark,
            self.connections.kafka.client(),
            redact=self.connections.kafka.redact,
            cores=self.tasks.cores,
        )
        self.allocation.connect(engine, self._executor_scaler())
        registry = self._registry(stack, stop)
        previous = self._previous_writer(s3, engine, admin, registry, stop)
        secrets, settings = CatalogSecrets(self.options.secret_dirs, SECRETS.hide), self.connections.s3
        held = stack.enter_context(holding_topics(self.sink, settings, s3, SECRETS, secrets, self.options.goal))
        context = replace(
            self._context(engine, admin, registry), previous=previous, store_check=store_check, held_topics=held.held
        )
        coordinator = Coordinator(self.sink, context, self.options.goal, self.progress)
        self.signals.on_stop(coordinator.stop)
        self.signals.on_stop(admin.close, after_s=3)
        self.signals.publish_if(self.stop_instruction, coordinator.publish_and_stop)
        if not self.signals.begin():
            return
        stack.enter_context(self._console())
        with registering(self.sink, settings, s3, self.progress, _clock, SECRETS, secrets, held) as registrar:
            coordinator.run()
            if registrar is not None and self.options.goal.ends and not self.signals.requested:
                registrar.finish(fails=not self.only_publishes)

    def _previous_writer(
        self,
        s3: S3Client,
        engine: SparkEngine,
        admin: JavaKafkaAdmin,
        registry: SchemaRegistry | None,
        stop: threading.Event,
    ) -> PreviousWriter | None:
        """What a first claim continues (`--from-connector`, `kafka.existingObjects`); None for every other start."""
        request = self.options.from_connector or FromConnector.of_manifest(self.sink, s3)
        if request is None or self.only_publishes:
            return None
        self.signals.on_stop(engine.cancel)
        settings = self.connections.s3
        return previous_writer(
            self.sink, request, s3, settings, admin, engine, registry=registry, report=_log.info, stop=stop
        )

    def _before_spark(self, s3: S3Client, stop: threading.Event) -> list[Path]:
        """Checks what needs no JVM; returns the jars of the connector."""
        check_installed(self.sink)
        self.tasks.log(self.sink)
        s3.check_access()
        wait_for_broker(self.connections.kafka.bootstrap_servers, stop=stop)
        return kafka_jars(self.connections.kafka, _log.info)

    def _begin_store_check(self, pool: ThreadPoolExecutor, s3: S3Client) -> Callable[[], Sequence[StoreAdvice]] | None:
        """Begins the check of the store, which needs no JVM. None for a run that may find that it has nothing to do,
        and writes nothing then."""
        if self.only_publishes:
            return None
        required = self.sink.spec.s3
        root = ledger_root(s3, required.topics_dir, self.sink.sink_id)

        def check() -> Sequence[StoreAdvice]:
            checked_now(_clock, s3.clock_ms, s3)
            lock, encryption = required.object_lock is not None, required.encryption is not None
            return check_store(s3, root, object_lock=lock, encryption=encryption)

        return pool.submit(check).result

    def _open_admin(self, pool: ThreadPoolExecutor, gateway: Gateway) -> JavaKafkaAdmin:
        """Kafka's admin client, with the connections that its first requests need on their way."""
        admin = JavaKafkaAdmin(gateway, self.connections.kafka, timeout_ms=KAFKA_TIMEOUT_MS)
        pool.submit(_quietly, partial(admin.group_offsets, self.sink.group_id))
        return admin

    def _start_spark(self, stack: ExitStack, jars: list[Path], launched: Callable[[Gateway], object]) -> Session:
        cluster = self.tasks.cluster
        self.spark.is_starting = True
        if cluster is not None:
            self.spark.executor_log = ExecutorLog(self._failure_limit(cluster.instances), redact=SECRETS)
        settings, log = self._spark_settings(jars), self.spark.executor_log
        spark = stack.enter_context(session(settings, executor_log=log, launched=launched))
        self.spark.context = spark
        self.spark.is_starting = False
        if cluster is not None:
            self.spark.permission = stack.enter_context(ExecutorPermission(cluster.properties))
        return spark

    def _failure_limit(self, executors: int) -> int | None:
        return None if self.tasks.cluster is None else failure_limit(self.tasks.cluster.properties, executors)

    def _executor_scaler(self) -> ExecutorScaler | None:
        """What changes the executor pods, and the limit of their failures with their number."""
        log = self.spark.executor_log
        if self.tasks.cluster is None or log is None:
            return None

        def scaled(executors: int) -> None:
            log.set_limit(self._failure_limit(executors))

        return ExecutorScaler(self.spark.context, self.tasks.cluster, scaled=scaled)

    def _lag_sampler(self, admin: JavaKafkaAdmin) -> LagSampler:
        committed = self.sink.spec.kafka.isolation_level is IsolationLevel.READ_COMMITTED
        times = RecordTimes(self.spark.context._gateway, self.connections.kafka)
        return LagSampler(self.progress, partial(admin.end_offsets, committed=committed), times, _clock)

    def _spark_settings(self, jars: list[Path]) -> SparkSettings:
        alone = self.tasks.cluster is None
        beside_executors = memory_budget.heap_beside_executors(self.options.memory, self.tasks.registration)
        return SparkSettings(
            app_name=f"s3sink-{self.sink.sink_id}",
            jars=jars,
            java_options=self.connections.kafka.java_options,
            cores=self.tasks.cores,
            heap=self.tasks.memory.heap if alone else beside_executors,
            conf=self.sink.spec.spark_conf,
            task_modules=task_modules(
                self.sink.spec.format, transforms_registered=self.sink.object_settings().transforms_registered
            ),
            cluster=self.tasks.cluster,
        )

    def _registry(self, stack: ExitStack, stop: threading.Event) -> SchemaRegistry | None:
        registry = open_schemas(self.sink.spec.format, self.connections.registry, stop.wait, SECRETS.hide)
        if registry is not None:
            stack.callback(registry.close)
        return registry

    def _context(
        self, engine: SparkEngine, admin: JavaKafkaAdmin, registry: SchemaRegistry | None
    ) -> CoordinatorContext:
        return CoordinatorContext(
            s3=self.connections.s3,
            admin=admin,
            engine=engine,
            clock=_clock,
            owner=owner_of(self.sink, os.environ),
            attempt=uuid.uuid4().hex,
            budget=self.tasks.memory.budget,
            threads=self.tasks.memory.part_buffers,
            part_buffers=self.tasks.memory.part_buffers,
            current_task_memory=partial(self.tasks.current_task_memory, self.sink, self.allocation),
            container=self.allocation.container,
            between_rounds=self.allocation.apply,
            store_clock=connect(self.connections.s3).clock_ms,
            steady_clock=_steady_clock,
            registry=registry,
            dead_letter_topic=partial(self._dead_letter_topic, admin),
        )

    def _dead_letter_topic(self, admin: JavaKafkaAdmin, name: str, transactions: bool) -> DeadLetterTopic:
        gateway = self.spark.context._gateway
        return JavaDeadLetterTopic(gateway, self.connections.kafka, admin, name, transactions=transactions)

    def _serve(self, stack: ExitStack, s3: S3Client) -> None:
        if self.options.http is not None:
            parameters = {AT_STOP: self.stop_instruction.set}
            token = os.environ.get(REPORT_TOKEN_VARIABLE) or None
            limited = {"/report": self.endpoints.report_answer}
            routes = self.endpoints.routes(s3)
            server = ReportServer(*self.options.http, routes, parameters, token=token, limited=limited)
            stack.enter_context(server)

    def _console(self) -> AbstractContextManager[None]:
        terminal = Console(stderr=True)
        if (
            self.options.screen
            and self.options.log == "text"
            and terminal.is_terminal
            and not terminal.is_dumb_terminal
        ):
            return console.live(self.progress.report, self.spark.tasks, self.connections.s3.url, self.handler, terminal)
        return console.plain(self.progress.report, self.spark.tasks)


def warn_of_unknown(spark: Session, sink: Sink) -> None:
    """Logs the properties of the manifest that Kafka's client does not know."""
    for sentence in unknown_properties(spark._gateway, sink.spec.kafka):
        _log.warning("%s", sentence)


def failure_of(error: Exception) -> Failure:
    """The error as a failure of the report, without secrets."""
    failure = Failure.of(error)
    failure.message = SECRETS(failure.message)
    return failure


def _quietly(close: Callable[[], object]) -> None:
    """Calls `close` and ignores its errors: the reason for the end of the run is already known."""
    try:
        close()
    except Exception as error:
        _log.debug("while closing: %s", error)


def _clock() -> int:
    return time.time_ns() // 1_000_000


def _steady_clock() -> int:
    """A monotonic clock in ms. On Linux it includes the time in which the host was suspended."""
    clock = time.CLOCK_BOOTTIME if sys.platform == "linux" else time.CLOCK_MONOTONIC
    return time.clock_gettime_ns(clock) // 1_000_000
