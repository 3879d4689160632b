"""A fixture that runs sinks on a real broker, a real S3 server and a real Spark, with the driver in this process.

This is `s3sink run` without its command line. A run takes a second; a process with its own JVM takes ten.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from py4j.java_gateway import JavaGateway
from pyspark import SparkContext

from devtools import bucket_listing
from devtools.processes import wait_until
from devtools.s3 import S3Server, credentials_secret
from devtools.sink_process import local_spec, manifest
from devtools.topics import Topics
from sink_job.api.parser import load_sink
from sink_job.api.report import Report
from sink_job.api.spec import Sink
from sink_job.coordinator.context import CoordinatorContext, StopCondition
from sink_job.coordinator.coordinator import Coordinator
from sink_job.coordinator.hanging_transactions import HANGING_AFTER_MS
from sink_job.coordinator.progress import Progress
from sink_job.kafka.admin import JavaKafkaAdmin
from sink_job.kafka.dead_letter_topic import JavaDeadLetterTopic
from sink_job.kafka.properties import KafkaProperties
from sink_job.ledger.ownership import Owner
from sink_job.registry.base import SchemaRegistry
from sink_job.registry.client import open_schemas
from sink_job.registry.settings import RegistrySettings
from sink_job.s3 import RetryPolicy, S3Settings, connect
from sink_job.spark.engine import SparkEngine
from sink_job.verify.compare_job import CompareContext, compare
from sink_job.verify.evidence import collect_evidence
from sink_job.verify.results import PartitionResult

UNTIL_CAUGHT_UP = StopCondition(until_caught_up=True)
PUBLISH_ALL = StopCondition(until_caught_up=True, publish_open=True)
FOREVER = StopCondition()

KAFKA_TIMEOUT_MS = 5_000
"""Default timeout of Kafka admin requests in tests."""


@dataclass(frozen=True, kw_only=True)
class SparkFixture:
    """The servers of a test with its own bucket, and secrets in `folder`."""

    spark: SparkContext
    topics: Topics
    bootstrap: str
    s3: S3Server
    bucket: str
    folder: Path
    endpoint: str | None = None
    kafka_timeout_ms: int = KAFKA_TIMEOUT_MS
    discovery_interval_ms: int = 30_000
    hanging_after_ms: int = HANGING_AFTER_MS
    max_elapsed_s: float = 5.0

    # -- running -----------------------------------------------------------------------------------------------------

    def sink(self, topics: Sequence[str] | None, **sections: Mapping[str, Any] | str) -> Sink:
        """A sink with ten records per object that reads available records at once; `sections` as in `local_spec`."""
        plain = {name: value for name, value in sections.items() if not isinstance(value, Mapping)}
        given: dict[str, Mapping[str, Any]] = {
            "rotation": {"flushSize": 10},
            "rounds": {"minBytes": 0, "maxDelay": "50ms"},
            **{name: value for name, value in sections.items() if isinstance(value, Mapping)},
        }
        given["s3"] = {"credentials": {"secret": "s3-keys"}, **given.get("s3", {})}
        spec = local_spec(
            bootstrap=self.bootstrap,
            topics=list(topics or ()),
            endpoint=self.endpoint or self.s3.endpoint,
            bucket=self.bucket,
            **given,
        )
        if topics is None:
            del spec["kafka"]["topics"]
        return load_sink(yaml.safe_dump(manifest(self.bucket, {**spec, **plain})))

    def secrets(self) -> dict[str, Path]:
        """The directories of secrets: `s3-keys`, and those that the test has added."""
        credentials_secret(self.folder / "secrets" / "s3-keys")
        return {folder.name: folder for folder in (self.folder / "secrets").iterdir()}

    @contextmanager
    def driver(self, sink: Sink, goal: StopCondition) -> Iterator[Coordinator]:
        """A driver as in `s3sink run`, with shorter timeouts."""
        secrets = self.secrets()
        properties = KafkaProperties.of(sink.spec.kafka, secrets)
        with self._admin(properties) as admin, self._registry(sink) as registry:
            engine = SparkEngine(self.spark, properties.client(), redact=properties.redact, poll_timeout_ms=5_000)
            context = CoordinatorContext(
                s3=replace(
                    S3Settings.of(sink.spec, secrets),
                    retry=RetryPolicy(max_elapsed_s=self.max_elapsed_s, first_s=0.02, cap_s=0.2),
                ),
                admin=admin,
                engine=engine,
                clock=lambda: time.time_ns() // 1_000_000,
                owner=Owner("test", sink.namespace, sink.name, sink.sink_id),
                attempt=uuid.uuid4().hex,
                registry=registry,
                discovery_interval_ms=self.discovery_interval_ms,
                hanging_after_ms=self.hanging_after_ms,
                dead_letter_topic=lambda name, transactions: JavaDeadLetterTopic(
                    self._gateway, properties, admin, name, transactions=transactions
                ),
            )
            yield Coordinator(sink, context, goal, Progress(sink, context.clock))

    @property
    def _gateway(self) -> JavaGateway:
        gateway = self.spark._gateway
        assert gateway is not None
        return gateway

    def _admin(self, properties: KafkaProperties) -> JavaKafkaAdmin:
        return JavaKafkaAdmin(self._gateway, properties, timeout_ms=self.kafka_timeout_ms)

    @contextmanager
    def _registry(self, sink: Sink) -> Iterator[SchemaRegistry | None]:
        section = sink.spec.format.registry
        settings = None if section is None else RegistrySettings.of(section, self.secrets())
        registry = open_schemas(sink.spec.format, settings, threading.Event().wait, lambda _: None)
        with ExitStack() as stack:
            if registry is not None:
                stack.callback(registry.close)
            yield registry

    def verify_deep(self, sink: Sink) -> list[PartitionResult]:
        """The results of `s3sink verify --deep`."""
        secrets = self.secrets()
        properties = KafkaProperties.of(sink.spec.kafka, secrets)
        s3 = S3Settings.of(sink.spec, secrets)
        with self._admin(properties) as admin:
            evidence = collect_evidence(sink, connect(s3), admin)
            engine = SparkEngine(self.spark, properties.client(), redact=properties.redact)
            context = CompareContext(s3=s3, admin=admin, engine=engine)
            return compare(evidence, evidence.results(), context, sink.spec.errors)

    def run(self, sink: Sink, goal: StopCondition) -> Report:
        """Runs until the stop condition; returns the last report, or raises the error that ends the run."""
        with self.driver(sink, goal) as driver:
            driver.run()
            return driver.progress.report()

    @contextmanager
    def running(self, sink: Sink) -> Iterator[RunningDriver]:
        """Runs the sink in the background until the end of the block, then raises the error that ended it, if any."""
        with self.driver(sink, FOREVER) as driver:
            running = RunningDriver(driver)
            try:
                yield running
            finally:
                driver.stop()
                running.thread.join(60)
            running.raise_failure()

    # -- queries -----------------------------------------------------------------------------------------------------

    def keys(self) -> list[str]:
        """The visible objects."""
        return list(bucket_listing.objects(self.s3.client(), self.bucket))

    def lines(self, key: str) -> list[bytes]:
        return bucket_listing.lines(self.s3.client(), self.bucket, key)

    def values(self) -> dict[str, list[bytes]]:
        """The lines of each visible object."""
        return {key: self.lines(key) for key in self.keys()}

    def committed(self, sink: Sink, topic: str) -> dict[int, int]:
        return self.topics.committed(sink.group_id, topic)


class RunningDriver:
    """A driver in a thread."""

    def __init__(self, driver: Coordinator) -> None:
        self._driver = driver
        self._failure: BaseException | None = None
        self.report = driver.progress.report
        self.thread = threading.Thread(target=self._run, name="driver", daemon=True)
        self.thread.start()

    def wait_until(self, is_so: Callable[[], bool], what: str, seconds: float = 180) -> None:
        """Waits until `is_so`; raises the driver's error as soon as the driver has ended."""

        def so() -> bool:
            if not self.thread.is_alive():
                self.raise_failure()
            return is_so()

        wait_until(so, what, seconds=seconds)

    def ended_by(self, seconds: float = 120) -> BaseException | None:
        """Waits until the driver ends; returns its error, which is not raised again."""
        self.thread.join(seconds)
        assert not self.thread.is_alive(), f"the driver still runs after {seconds:g} s"
        failure, self._failure = self._failure, None
        return failure

    def raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _run(self) -> None:
        try:
            self._driver.run()
        except BaseException as error:
            self._failure = error
