"""Builds the class data sharing (CDS) archive of the JVM, which shortens the start of a session.

Half of the CPU time until the first round is spent on loading and compiling the same classes. A CDS archive contains
them in a form that the JVM maps into memory. The archive is valid for one Java and one set of jars; a JVM with another
Java or other jars ignores it. `python -m sink_job.spark.class_data_sharing` builds it, before many starts: in an image
build, or before tests. The archive is optional.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from zipfile import ZipFile

import pyarrow as pa
from py4j.protocol import Py4JJavaError

from sink_job.api.errors import SinkError
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.types import Columns, Range, stateless
from sink_job.kafka.admin import admin_bridge
from sink_job.kafka.record_times import time_reader
from sink_job.spark.conf import SparkSettings, java_option
from sink_job.spark.engine import SparkEngine
from sink_job.spark.jars import archive_path, client_jars
from sink_job.spark.pyspark_core import SparkContext
from sink_job.spark.session import session

_KAFKA_PACKAGES = ("org/apache/kafka/clients/", "org/apache/kafka/common/")
UNUSED_S = 7 * 86_400
"""Archives that were not used within this time, in seconds, are deleted when another one is built."""


def build_cds_archive() -> Path:
    """Builds the archive (150 MB) if it does not exist, and returns its path.

    Starts a session and runs a round; the JVM writes the loaded classes at its exit.
    """
    jars = client_jars()
    path = archive_path(jars)
    if path.exists():
        with suppress(OSError):  # the cache of an image is read-only
            os.utime(path)
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(f".{os.getpid()}")
    conf = {
        "spark.driver.extraJavaOptions": java_option(f"-XX:ArchiveClassesAtExit={new}"),
        "spark.python.daemon.module": "pyspark.daemon",  # the build of an image has only the packages of this module
    }
    settings = SparkSettings(app_name="s3sink-archive", jars=jars, cores=1, conf=conf)
    with session(settings, exit_timeout_s=300) as spark:
        unreachable = {"bootstrap.servers": "127.0.0.1:1"}
        engine = SparkEngine(spark, unreachable, poll_timeout_ms=100)
        idle, read = TopicPartition("archive", 0), TopicPartition("archive", 1)
        engine.run(ranges={}, idle=[idle], inputs={}, columns=Columns(), factory=stateless(_discard))
        with suppress(SinkError):  # no broker answers, but the classes of a consumer have been loaded
            columns = Columns(timestamp=True)
            engine.run(ranges={read: Range(0, 1)}, idle=[], inputs={}, columns=columns, factory=stateless(_discard))
        _load_kubernetes_client(spark)
        _load_kafka_client(spark, jars)
        _compile_classes(spark)
    new.replace(path)
    remove_unused(path)
    return path


def remove_unused(path: Path) -> None:
    """Deletes the archives beside `path` that were not used for `UNUSED_S` seconds.

    Other checkouts have their own archives, because an archive belongs to the files of one PySpark.
    """
    for other in path.parent.glob("spark-*.jsa"):
        if other != path and other.stat().st_mtime < time.time() - UNUSED_S:
            other.unlink(missing_ok=True)


def _load_kubernetes_client(context: SparkContext) -> None:
    """Loads the classes of the Kubernetes client, which a driver with executor pods uses, with a request that fails."""
    jvm = context._gateway.jvm.io.fabric8.kubernetes.client  # type: ignore[union-attr]
    config = jvm.ConfigBuilder().withMasterUrl("https://127.0.0.1:1").withRequestRetryBackoffLimit(0).build()
    client = jvm.KubernetesClientBuilder().withConfig(config).build()
    with suppress(Py4JJavaError):
        client.pods().inNamespace("archive").withLabel("spark-role", "executor").list()
    client.close()


def _compile_classes(context: SparkContext) -> None:
    """Puts the sink's other Java classes into the cache, beside those of the engine: an image has them from there."""
    gateway = context._gateway
    assert gateway is not None
    admin_bridge(gateway)
    time_reader(gateway)


def _load_kafka_client(context: SparkContext, jars: Sequence[Path]) -> None:
    """Loads the classes of Kafka's clients by their names: most are used only after an answer of a broker."""
    gateway = context._gateway
    loader = gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader()  # type: ignore[union-attr]
    for jar in jars:
        for name in _kafka_classes(jar):
            with suppress(Py4JJavaError):  # classes of optional libraries
                loader.loadClass(name)


def _kafka_classes(jar: Path) -> list[str]:
    """The names of the classes of `jar` in the packages of Kafka's clients, without those of other libraries."""
    with ZipFile(jar) as archive:
        names = [name.removesuffix(".class") for name in archive.namelist() if name.endswith(".class")]
    return [name.replace("/", ".") for name in names if name.startswith(_KAFKA_PACKAGES)]


def _discard(tp: TopicPartition, task_input: bytes, batches: Iterator[pa.RecordBatch]) -> bytes:
    for _ in batches:
        pass
    return b""


if __name__ == "__main__":
    sys.stdout.write(f"{build_cds_archive()}\n")
