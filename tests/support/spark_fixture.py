"""Where a test's sinks run: a real broker, a real S3 server and a real Spark, with the driver in this very process.

That is `s3sink run` without its command line: a run takes a second, where a process with a JVM of its own takes ten.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from pyspark.sql import SparkSession

from devtools import bucket_listing
from devtools.processes import wait_until
from devtools.s3 import S3Server, credentials_secret
from devtools.sink_process import local_spec, manifest
from devtools.topics import Topics
from sink_job.api.report import Report
from sink_job.api.spec import Sink, load_sink
from sink_job.coordinator.context import CoordinatorContext, StopCondition
from sink_job.coordinator.coordinator import Coordinator
from sink_job.coordinator.hanging_transactions import HANGING_AFTER_MS
from sink_job.coordinator.progress import Progress
from sink_job.kafka.admin import JavaKafkaAdmin
from sink_job.kafka.properties import KafkaProperties
from sink_job.ledger.ownership import Owner
from sink_job.s3 import RetryPolicy, S3Settings
from sink_job.spark.engine import SparkEngine

SOON = StopCondition(until_caught_up=True)
ALL = StopCondition(until_caught_up=True, publish_open=True)
FOR_EVER = StopCondition()

KAFKA_TIMEOUT_MS = 5_000
"""How long a question to Kafka may take in tests that don't say."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """One test's share of the servers: a bucket of its own, and secrets in `folder`."""

    spark: SparkSession
    topics: Topics
    bootstrap: str
    s3: S3Server
    bucket: str
    folder: Path
    endpoint: str | None = None
    kafka_timeout_ms: int = KAFKA_TIMEOUT_MS
    look_every: int = 30_000
    stuck_after: int = HANGING_AFTER_MS
    patience_s: float = 5.0

    # -- running -----------------------------------------------------------------------------------------------------

    def sink(self, topics: Sequence[str] | None, **sections: Mapping[str, Any] | str) -> Sink:
        """A sink that cuts objects of ten records and reads whatever there is at once; `sections` as `local_spec`."""
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
        """The directories of secrets: `s3-keys`, and whatever the test has put beside it."""
        credentials_secret(self.folder / "secrets" / "s3-keys")
        return {folder.name: folder for folder in (self.folder / "secrets").iterdir()}

    @contextmanager
    def driver(self, sink: Sink, goal: StopCondition) -> Iterator[Coordinator]:
        """A driver as `s3sink run` wires it, but for its patience."""
        secrets = self.secrets()
        properties = KafkaProperties.of(sink.spec.kafka, secrets)
        gateway = self.spark.sparkContext._gateway
        assert gateway is not None
        with JavaKafkaAdmin(gateway, properties, timeout_ms=self.kafka_timeout_ms) as admin:
            engine = SparkEngine(
                self.spark, properties.client(), group_id=sink.group_id, redact=properties.redact, poll_timeout_ms=5_000
            )
            world = CoordinatorContext(
                s3=replace(
                    S3Settings.of(sink.spec.s3, secrets),
                    retry=RetryPolicy(patience_s=self.patience_s, first_s=0.02, cap_s=0.2),
                ),
                admin=admin,
                engine=engine,
                clock=lambda: time.time_ns() // 1_000_000,
                owner=Owner("test", sink.namespace, sink.name, sink.sink_id),
                attempt=uuid.uuid4().hex,
                discovery_interval_ms=self.look_every,
                hanging_after_ms=self.stuck_after,
            )
            yield Coordinator(sink, world, goal, Progress(sink, world.clock))

    def run(self, sink: Sink, goal: StopCondition) -> Report:
        """Runs until the goal; raises what ends the run, returns its last report."""
        with self.driver(sink, goal) as driver:
            driver.run()
            return driver.progress.report()

    @contextmanager
    def running(self, sink: Sink) -> Iterator[Running]:
        """The sink runs in the background until the block ends; what ended it before that is raised at the end."""
        with self.driver(sink, FOR_EVER) as driver:
            running = Running(driver)
            try:
                yield running
            finally:
                driver.stop()
                running.thread.join(60)
            running.raise_failure()

    # -- looking -----------------------------------------------------------------------------------------------------

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


class Running:
    """A driver in a thread."""

    def __init__(self, driver: Coordinator) -> None:
        self._driver = driver
        self._failure: BaseException | None = None
        self.report = driver.progress.report
        self.thread = threading.Thread(target=self._run, name="driver", daemon=True)
        self.thread.start()

    def wait_until(self, is_so: Callable[[], bool], what: str, seconds: float = 180) -> None:
        """Waits; raises what ended the driver as soon as it has ended."""

        def so() -> bool:
            if not self.thread.is_alive():
                self.raise_failure()
            return is_so()

        wait_until(so, what, seconds=seconds)

    def ended_by(self, seconds: float = 120) -> BaseException | None:
        """Waits until the driver ends by itself; what ended it is not raised again."""
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
