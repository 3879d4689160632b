"""Access to Kafka for commands that need no driver, and their progress on a terminal."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sink_job.api.spec import Sink
    from sink_job.engine.types import Engine
    from sink_job.kafka.admin import JavaKafkaAdmin
    from sink_job.kafka.properties import KafkaProperties
    from sink_job.verify.bucket_scanner import ReportProgress


@contextmanager
def kafka_access(
    sink: Sink, properties: KafkaProperties, command: str, *, reads: bool
) -> Iterator[tuple[JavaKafkaAdmin, Engine | None]]:
    """Kafka's admin client, and with `reads` an engine to read records, on local Spark. Both end with the context.
    `command` is in the name of Spark's application."""
    if not reads:
        from sink_job.driver.standalone_admin import admin

        with admin(properties) as client:
            yield client, None
        return
    from sink_job.driver.machine import usual_cores
    from sink_job.kafka.admin import JavaKafkaAdmin
    from sink_job.spark.conf import SparkSettings
    from sink_job.spark.engine import SparkEngine
    from sink_job.spark.login_jars import kafka_jars
    from sink_job.spark.session import session

    cores = usual_cores()
    settings = SparkSettings(
        app_name=f"s3sink-{command}-{sink.sink_id}",
        jars=kafka_jars(properties),
        java_options=properties.java_options,
        cores=cores,
        conf=sink.spec.spark_conf,
    )
    with _quiet_end(), session(settings) as spark, JavaKafkaAdmin(spark._gateway, properties) as client:
        yield client, SparkEngine(spark, properties.client(), redact=properties.redact, cores=cores)


@contextmanager
def _quiet_end() -> Iterator[None]:
    """Suppresses the stack traces of py4j after Ctrl-C."""

    def stop(number: int, frame: FrameType | None) -> None:
        logging.disable(logging.CRITICAL)
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


@contextmanager
def shown_progress() -> Iterator[ReportProgress]:
    """A function that shows the current step: in a status line on a terminal, not at all elsewhere."""
    if not sys.stderr.isatty():
        yield lambda line: None
        return
    from rich.console import Console

    with Console(stderr=True).status("connecting") as status:
        yield status.update
