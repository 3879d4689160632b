"""An archive of the classes that a session loads, so that the next JVM maps them instead of loading them anew.

Half of the CPU time until the first round goes into loading and compiling the same classes each time. The JVM can keep
them in a file (class data sharing). The file belongs to one Java and one set of jars: another JVM, or other jars, leave
it alone. It is made on request, `python -m sink_job.spark.class_data_sharing`, where many starts will follow: when an
image is built, before tests. Without it everything works, only later.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from sink_job.api.errors import SinkError
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.types import Columns, Range, stateless
from sink_job.spark.conf import SparkSettings
from sink_job.spark.engine import SparkEngine
from sink_job.spark.jars import archive_path, connector_jars
from sink_job.spark.session import session

UNUSED_S = 7 * 86_400
"""Archives that were not asked for within this time, in seconds, are removed when another one is made."""


def build_cds_archive() -> Path:
    """Make the archive unless it is there: starts a session, runs a round, and takes down what that loaded (150 MB)."""
    jars = connector_jars()
    path = archive_path(jars)
    if path.exists():
        with suppress(OSError):  # the cache of an image is read-only
            os.utime(path)
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_suffix(f".{os.getpid()}")
    option = {"spark.driver.extraJavaOptions": f"-XX:ArchiveClassesAtExit={made}"}
    settings = SparkSettings(app_name="s3sink-archive", jars=jars, cores=1, conf=option)
    with session(settings, patience_s=300) as spark:
        nobody = {"bootstrap.servers": "127.0.0.1:1"}
        engine = SparkEngine(spark, nobody, group_id="archive", poll_timeout_ms=100)
        here, there = TopicPartition("archive", 0), TopicPartition("archive", 1)
        engine.run(ranges={}, idle=[here], inputs={}, columns=Columns(), factory=stateless(_nothing))
        with suppress(SinkError):  # nobody answers there, but a consumer has been made
            columns = Columns(timestamp=True)
            engine.run(ranges={there: Range(0, 1)}, idle=[], inputs={}, columns=columns, factory=stateless(_nothing))
        _ask_kubernetes(spark)
    made.replace(path)
    remove_unused(path)
    return path


def remove_unused(path: Path) -> None:
    """Removes the archives beside `path` that were not used for `UNUSED_S`.

    Other checkouts have archives of their own: an archive belongs to the files of one PySpark.
    """
    for other in path.parent.glob("spark-*.jsa"):
        if other != path and other.stat().st_mtime < time.time() - UNUSED_S:
            other.unlink(missing_ok=True)


def _ask_kubernetes(spark: SparkSession) -> None:
    """Makes the client of a driver with executors in pods, and has it ask where nobody answers."""
    jvm = spark.sparkContext._gateway.jvm.io.fabric8.kubernetes.client  # type: ignore[union-attr]
    config = jvm.ConfigBuilder().withMasterUrl("https://127.0.0.1:1").withRequestRetryBackoffLimit(0).build()
    client = jvm.KubernetesClientBuilder().withConfig(config).build()
    with suppress(Py4JJavaError):
        client.pods().inNamespace("archive").withLabel("spark-role", "executor").list()
    client.close()


def _nothing(tp: TopicPartition, given: bytes, batches: Iterator[pa.RecordBatch]) -> bytes:
    for _ in batches:
        pass
    return b""


if __name__ == "__main__":
    sys.stdout.write(f"{build_cds_archive()}\n")
