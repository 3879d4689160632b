"""What Spark is told: measured settings, those that exactly-once rests on, and the user's between them.

A sink runs its tasks in the driver's own JVM (Local), or in executor pods that Spark makes in Kubernetes (Cluster).
What is different there comes as a file of properties from the operator; the rest is the same.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import sink_job
from sink_job.api.errors import ConfigurationError
from sink_job.spark.executor_pods import ExecutorConfig
from sink_job.spark.jars import archive_path

POD_SOCKETS = "/tmp"
"""Where workers' sockets are in a pod, whose folders are its own: the same place in the driver and in executors."""

SOCKET_DIR_LENGTH = 60  # Spark's limit, which leaves room for its names in the system's 107
_TRIES = 4  # of a task; local mode has none unless told

_OWNED = {
    "spark.driver.bindAddress",
    "spark.driver.host",
    "spark.driver.memory",
    "spark.local.dir",
    "spark.master",
    "spark.python.unix.domain.socket.dir",
    "spark.python.unix.domain.socket.enabled",
    "spark.python.worker.reuse",
    "spark.speculation",
    "spark.sql.adaptive.enabled",
    "spark.sql.catalogImplementation",
    "spark.sql.execution.arrow.maxBytesPerBatch",
    "spark.sql.execution.arrow.maxRecordsPerBatch",
    "spark.sql.warehouse.dir",
    "spark.submit.deployMode",
    "spark.task.maxFailures",
}
_FIXED = {
    "spark.python.worker.reuse": "true",
    "spark.speculation": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.catalogImplementation": "in-memory",
    # A batch by its bytes alone: records are of any size.
    "spark.sql.execution.arrow.maxBytesPerBatch": "1m",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "0",
    "spark.task.maxFailures": str(_TRIES),
}
_DEFAULTS = {
    # Consumers are kept from round to round: making one costs more than reading a small range. What they fetched beyond
    # a range is let go sooner: in a backlog of many partitions it would fill the heap.
    "spark.kafka.consumer.cache.capacity": "2048",
    "spark.kafka.consumer.cache.timeout": "20s",
    "spark.kafka.consumer.cache.evictorThreadRunInterval": "5s",
    "spark.kafka.consumer.fetchedData.cache.timeout": "5s",
    "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "2s",
    "spark.locality.wait": "0",
    "spark.sql.session.timeZone": "UTC",
    # What is kept of past rounds for pages that nobody serves.
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.enabled": "false",
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.ui.retainedTasks": "1",
    "spark.ui.showConsoleProgress": "false",
}
_DRIVER_OPTIONS, _EXECUTOR_OPTIONS = "spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"
_DRIVER_CLASSES, _EXECUTOR_CLASSES = "spark.driver.extraClassPath", "spark.executor.extraClassPath"
_PYTHON_PATH = "spark.executorEnv.PYTHONPATH"

# What a reader makes is garbage at once: a collector that marks beside it takes a third more CPU time.
_COLLECT = ("-XX:+UseParallelGC",)
# Most of what a start runs, it runs once or twice: a compiler that waits for code that stays hot saves a quarter of the
# CPU until the first round, and finds a reader's loops within the first 100,000 records all the same.
_COMPILE_LATE = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)


@dataclass(frozen=True, kw_only=True)
class SparkSettings:
    """`cores`: tasks at a time (None: as many as this process may use). `heap` of the JVM in bytes. `conf`: the user's.

    `jars`: Spark's Kafka connector. `temp_dir`: under it is the folder for all that Spark writes (None: the system's).
    `cluster`: where tasks run in executors of their own, which have the same files as this process at the same places.
    """

    app_name: str
    jars: Sequence[Path]
    cores: int | None = None
    heap: int = 640 << 20
    temp_dir: Path | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    cluster: ExecutorConfig | None = None


def spark_conf(settings: SparkSettings, folder: Path, sockets: Path, log4j: Path) -> dict[str, str]:
    """The whole configuration, with `folder` for files and `sockets` for sockets. Raises ConfigurationError."""
    owned = sorted(key for key in settings.conf if key in _OWNED)
    if owned:
        raise ConfigurationError(f"spec.sparkConf: {', '.join(owned)}: the sink sets this itself")
    cluster = settings.cluster
    told = {**settings.conf, **({} if cluster is None else cluster.properties)}
    return {
        **_DEFAULTS,
        **told,
        **_FIXED,
        **(_in_process(settings, sockets) if cluster is None else _in_pods(settings, cluster, told, log4j)),
        "spark.app.name": settings.app_name,
        "spark.driver.memory": f"{settings.heap >> 20}m",
        _DRIVER_CLASSES: _class_path(settings, told.get(_DRIVER_CLASSES)),
        _DRIVER_OPTIONS: _options(
            told.get(_DRIVER_OPTIONS),
            *_archive(settings.jars),
            _logging(log4j),
            f"-Djava.io.tmpdir={folder}",
            f"-Dderby.system.home={folder}",
        ),
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        _PYTHON_PATH: os.pathsep.join(filter(None, [_packages(), told.get(_PYTHON_PATH)])),
    }


def _in_process(settings: SparkSettings, sockets: Path) -> dict[str, str]:
    cores = settings.cores or len(os.sched_getaffinity(0))
    return {
        "spark.master": f"local[{cores},{_TRIES}]",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.python.unix.domain.socket.enabled": str(len(str(sockets)) <= SOCKET_DIR_LENGTH).lower(),
        "spark.python.unix.domain.socket.dir": str(sockets),
    }


def _in_pods(settings: SparkSettings, cluster: ExecutorConfig, told: Mapping[str, str], log4j: Path) -> dict[str, str]:
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": POD_SOCKETS,
        _EXECUTOR_CLASSES: _class_path(settings, told.get(_EXECUTOR_CLASSES)),
        # A container without a limit of CPUs sees all of its node's, and would collect with a thread on each.
        _EXECUTOR_OPTIONS: _options(
            told.get(_EXECUTOR_OPTIONS),
            *_archive(settings.jars),
            f"-XX:ActiveProcessorCount={max(2, cluster.cores)}",
            _logging(log4j),
        ),
    }


def _class_path(settings: SparkSettings, users: str | None) -> str:
    return os.pathsep.join(filter(None, [*map(str, settings.jars), users]))


def _options(users: str | None, *ours: str) -> str:
    return " ".join(filter(None, [users, *_COLLECT, *_COMPILE_LATE, *ours]))


def _logging(log4j: Path) -> str:
    return f"-Dlog4j2.configurationFile={log4j.as_uri()}"


def _packages() -> str:
    return str(Path(sink_job.__file__).parents[1])


def _archive(jars: Sequence[Path]) -> list[str]:
    """The JVM's option for the class archive, where somebody made one."""
    if not all(jar.exists() for jar in jars):
        return []
    path = archive_path(jars)
    return [f"-XX:SharedArchiveFile={path}"] if path.exists() else []
