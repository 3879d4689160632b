"""The Spark configuration: measured defaults, the user's settings, and settings that exactly-once delivery requires.

A sink runs its tasks in the driver's JVM (Local), or in executor pods that Spark creates in Kubernetes (Cluster). For
Cluster the operator supplies a file with additional properties.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import sink_job
from sink_job.api.errors import ConfigurationError
from sink_job.spark.daemon import MODULES_VARIABLE
from sink_job.spark.executor_log import MAX_FAILURES, OF_USER, UNLIMITED
from sink_job.spark.executor_pods import ExecutorConfig
from sink_job.spark.jars import archive_path

SHORT_DIR = "/tmp"
"""Directory of sockets in a pod, where it has the same path in the driver and in executors, and beside long paths."""

SOCKET_DIR_LENGTH = 60
"""Maximum of the path of a directory of sockets, in bytes. Their names must fit into the operating system's limit."""

_MAX_TASK_ATTEMPTS = 4  # Spark's default in local mode is 1

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
    "spark.submit.deployMode",
    "spark.task.maxFailures",
}
_FIXED = {
    "spark.python.worker.reuse": "true",
    "spark.speculation": "false",
    "spark.task.maxFailures": str(_MAX_TASK_ATTEMPTS),
}
_DEFAULTS = {
    "spark.locality.wait": "0",
    "spark.python.daemon.module": "sink_job.spark.daemon",
    # Limit the data about past rounds for the web UI, which is disabled.
    "spark.ui.enabled": "false",
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.ui.retainedTasks": "1",
    "spark.ui.showConsoleProgress": "false",
}
_DRIVER_OPTIONS, _EXECUTOR_OPTIONS = "spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"
_DRIVER_CLASSES, _EXECUTOR_CLASSES = "spark.driver.extraClassPath", "spark.executor.extraClassPath"
_PYTHON_PATH = "spark.executorEnv.PYTHONPATH"
_TASK_MODULES = f"spark.executorEnv.{MODULES_VARIABLE}"

_MALLOC_ARENAS = "spark.executorEnv.MALLOC_ARENA_MAX"
ARENAS = "2"
"""Arenas of malloc in a JVM and its Python workers: with one for each thread, as by default, they keep 25 MB more."""

_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b|-Xmn|-XX:(Max)?New(Size|Ratio)=|-XX:SurvivorRatio=")
_MAX_SERIAL = 4  # concurrent tasks up to which one thread collects the garbage
# Most code of a start runs once or twice. Later compilation saves a quarter of the CPU time until the first round; the
# loops of the reader are still compiled within the first 100,000 records.
_LATE_COMPILATION = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)


@dataclass(frozen=True, kw_only=True)
class SparkSettings:
    """The settings of a session.

    `jars`: Kafka's client. `java_options`: options that it needs in the JVM of the driver and in those of executors.
    `cores`: number of concurrent tasks; None: the number of CPUs that this process may use.
    `heap`: heap of the driver's JVM, in bytes.
    `temp_dir`: parent of the directory for Spark's files; None: the system's temporary directory.
    `conf`: the user's Spark properties.
    `task_modules`: what Python workers import before the first task, beside what the tasks of every sink need.
    `cluster`: executor pods, whose image has the same files at the same paths; None: local mode.
    """

    app_name: str
    jars: Sequence[Path]
    java_options: Sequence[str] = ()
    cores: int | None = None
    heap: int = 640 << 20
    temp_dir: Path | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    task_modules: Sequence[str] = ()
    cluster: ExecutorConfig | None = None


def spark_conf(settings: SparkSettings, folder: Path, sockets: Path, log4j: Path) -> dict[str, str]:
    """The complete configuration. `folder`: directory for files; `sockets`: directory for sockets; `log4j`: logging
    configuration. Raises ConfigurationError for a user's property that the sink sets."""
    owned = sorted(key for key in settings.conf if key in _OWNED)
    if owned:
        raise ConfigurationError(f"spec.sparkConf: {', '.join(owned)}: set by the sink; remove it from the spec")
    cluster = settings.cluster
    properties = {**settings.conf, **({} if cluster is None else cluster.properties)}
    return {
        **_DEFAULTS,
        **properties,
        **_FIXED,
        **(_local(settings, sockets) if cluster is None else _in_pods(settings, cluster, properties, log4j)),
        "spark.app.name": settings.app_name,
        "spark.driver.memory": f"{settings.heap >> 20}m",
        _DRIVER_CLASSES: _class_path(settings, properties.get(_DRIVER_CLASSES)),
        _DRIVER_OPTIONS: _options(
            properties.get(_DRIVER_OPTIONS),
            *_garbage_collection(_cores(settings) if cluster is None else 1, properties.get(_DRIVER_OPTIONS)),
            *_archive(settings.jars),
            _logging(log4j),
            f"-Djava.io.tmpdir={folder}",
            *settings.java_options,
        ),
        "spark.local.dir": str(folder),
        _MALLOC_ARENAS: ARENAS,
        _TASK_MODULES: " ".join(settings.task_modules),
        _PYTHON_PATH: os.pathsep.join(filter(None, [_packages(), properties.get(_PYTHON_PATH)])),
    }


def _local(settings: SparkSettings, sockets: Path) -> dict[str, str]:
    return {
        "spark.master": f"local[{_cores(settings)},{_MAX_TASK_ATTEMPTS}]",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.python.unix.domain.socket.enabled": str(len(bytes(sockets)) <= SOCKET_DIR_LENGTH).lower(),
        "spark.python.unix.domain.socket.dir": str(sockets),
    }


def _in_pods(
    settings: SparkSettings, cluster: ExecutorConfig, properties: Mapping[str, str], log4j: Path
) -> dict[str, str]:
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": SHORT_DIR,
        **({} if any(name in properties for name in OF_USER) else {MAX_FAILURES: UNLIMITED}),
        _EXECUTOR_CLASSES: _class_path(settings, properties.get(_EXECUTOR_CLASSES)),
        # A container without a CPU limit has all CPUs of its node, and would use one collector thread for each.
        _EXECUTOR_OPTIONS: _options(
            properties.get(_EXECUTOR_OPTIONS),
            *_garbage_collection(cluster.cores, properties.get(_EXECUTOR_OPTIONS)),
            *_archive(settings.jars),
            f"-XX:ActiveProcessorCount={max(2, cluster.cores)}",
            _logging(log4j),
            *settings.java_options,
        ),
    }


def _class_path(settings: SparkSettings, users: str | None) -> str:
    return os.pathsep.join(filter(None, [*map(str, settings.jars), users]))


def _cores(settings: SparkSettings) -> int:
    return settings.cores or len(os.sched_getaffinity(0))


def _garbage_collection(cores: int, users: str | None) -> list[str]:
    """The collector of a JVM with `cores` concurrent tasks. None if the options of the user choose one, or the size of
    the young generation: a JVM with two collectors does not start.

    The objects of a reader are short-lived, and the young generation has space for the two fetches of each task among
    the survivors. So nothing but what stays gets old (40 MB), and the pages of the rest of the heap are never touched.
    The parallel collector promotes the fetches: its old generation grows up to the size of the heap.
    """
    if _COLLECTOR.search(users or ""):
        return []
    if cores > _MAX_SERIAL:
        return ["-XX:+UseParallelGC"]
    return ["-XX:+UseSerialGC", f"-Xmn{48 + 24 * cores}m", "-XX:SurvivorRatio=2"]


def _options(users: str | None, *additional: str) -> str:
    own = map(java_option, [*_LATE_COMPILATION, *additional])
    return " ".join(filter(None, [users, *own]))


def java_option(text: str) -> str:
    """A JVM option as a word of Spark's extraJavaOptions: quoted if it has spaces or quotes, as a path may."""
    if not any(character.isspace() or character in "\"'\\" for character in text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _logging(log4j: Path) -> str:
    return f"-Dlog4j2.configurationFile={log4j.as_uri()}"


def _packages() -> str:
    return str(Path(sink_job.__file__).parents[1])


def _archive(jars: Sequence[Path]) -> list[str]:
    """The JVM's options for the CDS archive, if one exists.

    By default Java maps an archive at a random address, and changes every pointer in it: 0.1 s of CPU time, and 55 MB
    of private memory instead of pages of the file, which the JVMs of a host share. It does so to make addresses hard
    to guess for code that is not trusted (JDK-8294323); this JVM runs none.
    """
    if not all(jar.exists() for jar in jars):
        return []
    path = archive_path(jars)
    if not path.exists():
        return []
    return [f"-XX:SharedArchiveFile={path}", "-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0"]
