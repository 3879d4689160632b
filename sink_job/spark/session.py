"""The Spark session of a sink that runs in one process tree: measured settings, quiet logs, nothing left behind.

It needs of Spark a context, Arrow and the Kafka connector: no catalog, no web pages, no listener's memory. All that
Spark writes goes into one folder, which is removed at the end, and which the next start removes after a SIGKILL.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from pathlib import Path
from typing import IO, Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

import sink_job
from sink_job.api.errors import ConfigurationError
from sink_job.spark.jars import archive_path

_log = logging.getLogger("sink_job.spark.jvm")
_PREFIX = "s3sink-spark-"
_SOCKET_DIR_LENGTH = 60  # Spark's limit, which leaves room for its names in the system's 107
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
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.python.worker.reuse": "true",
    "spark.speculation": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.catalogImplementation": "in-memory",
    # A batch by its bytes alone: records are of any size.
    "spark.sql.execution.arrow.maxBytesPerBatch": "1m",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "0",
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
    """

    app_name: str
    jars: Sequence[Path]
    cores: int | None = None
    heap: int = 640 << 20
    temp_dir: Path | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def session(settings: SparkSettings, *, patience_s: float = 5) -> Iterator[SparkSession]:
    """A local session; on leaving, the JVM, its workers and their files are gone. One at a time in a process.

    The JVM has `patience_s` seconds to end by itself before it is killed.
    Raises ConfigurationError for a key of `settings.conf` that the sink owns, and where the JVM does not start.
    """
    with _work_dir(settings.temp_dir) as folder, _socket_dir(folder) as sockets, _log4j() as log4j:
        conf = SparkConf(loadDefaults=False).setAll(list(spark_conf(settings, folder, sockets, log4j).items()))
        gateway = _launch(conf)
        try:
            with _interrupts_kept():
                context = SparkContext(conf=conf, gateway=gateway)
            context.pythonExec = sys.executable
            spark = SparkSession(context)
            try:
                yield spark
            finally:
                with suppress(Exception):  # the JVM may be gone already; it is ended below in any case
                    spark.stop()
        finally:
            _end(gateway, patience_s)


def spark_conf(settings: SparkSettings, folder: Path, sockets: Path, log4j: Path) -> dict[str, str]:
    """The whole configuration, with `folder` for files and `sockets` for sockets. Raises ConfigurationError."""
    owned = sorted(key for key in settings.conf if key in _OWNED)
    if owned:
        raise ConfigurationError(f"spec.sparkConf: {', '.join(owned)}: the sink sets this itself")
    given = dict(settings.conf)
    cores = settings.cores or len(os.sched_getaffinity(0))
    java = [
        given.pop("spark.driver.extraJavaOptions", ""),
        # What a reader makes is garbage at once: a collector that marks beside it takes a third more CPU time.
        "-XX:+UseParallelGC",
        *_COMPILE_LATE,
        *_archive(settings.jars),
        f"-Dlog4j2.configurationFile={log4j.as_uri()}",
        f"-Djava.io.tmpdir={folder}",
        f"-Dderby.system.home={folder}",
    ]
    class_path = [*map(str, settings.jars), *filter(None, [given.pop("spark.driver.extraClassPath", "")])]
    python_path = [str(Path(sink_job.__file__).parents[1]), *filter(None, [given.pop(_PYTHON_PATH, "")])]
    return {
        **_DEFAULTS,
        **given,
        **_FIXED,
        "spark.app.name": settings.app_name,
        "spark.master": f"local[{cores},{_TRIES}]",
        "spark.driver.memory": f"{settings.heap >> 20}m",
        "spark.driver.extraClassPath": os.pathsep.join(class_path),
        "spark.driver.extraJavaOptions": " ".join(filter(None, java)),
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.python.unix.domain.socket.enabled": str(len(str(sockets)) <= _SOCKET_DIR_LENGTH).lower(),
        "spark.python.unix.domain.socket.dir": str(sockets),
        _PYTHON_PATH: os.pathsep.join(python_path),
    }


def _archive(jars: Sequence[Path]) -> list[str]:
    """The JVM's option for the class archive, where somebody made one."""
    if not all(jar.exists() for jar in jars):
        return []
    path = archive_path(jars)
    return [f"-XX:SharedArchiveFile={path}"] if path.exists() else []


_PYTHON_PATH = "spark.executorEnv.PYTHONPATH"


def _launch(conf: SparkConf) -> Any:
    """The JVM, with its error output line by line in our log. Raises ConfigurationError."""
    try:
        gateway = launch_gateway(conf, popen_kwargs={"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE})
    except Exception as error:
        raise ConfigurationError(f"Spark's JVM does not start (Java 17 or newer is needed): {error}") from None
    threading.Thread(target=_forward, args=(gateway.proc.stderr,), name="jvm-log", daemon=True).start()
    return gateway


def _forward(stream: IO[bytes]) -> None:
    """Errors of log4j2.properties as warnings; the rest (the workers' traces, which come back as errors) as debug."""
    for line in stream:
        level = logging.WARNING if line.startswith((b"ERROR ", b"FATAL ")) else logging.DEBUG
        _log.log(level, "%s", line.decode(errors="replace").rstrip())


def _end(gateway: Any, patience_s: float) -> None:
    """The JVM ends when its standard input does; one that does not is killed."""
    with suppress(Exception):
        gateway.shutdown()
    SparkContext._gateway = None
    SparkContext._jvm = None
    process = gateway.proc
    process.stdin.close()
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """SparkContext puts its own handler on SIGINT; the sink's stays."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _work_dir(parent: Path | None) -> Iterator[Path]:
    """A folder that this process holds a lock on; those that nobody holds any more (SIGKILL) are removed on the way.

    A lock ends with its process. The number in the name is for people: numbers come back, to others.
    """
    base = Path(parent or tempfile.gettempdir()).resolve()
    for folder in base.glob(f"{_PREFIX}*-*"):
        _remove_if_left(folder)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=base))
        lock = _locked(folder)
        if lock is None:
            continue
        if folder.exists():
            break
        os.close(lock)  # another start has taken it for one that was left
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _remove_if_left(folder: Path) -> None:
    if folder.name.removeprefix(_PREFIX).partition("-")[0].isdigit() and (lock := _locked(folder)) is not None:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _locked(folder: Path) -> int | None:
    """A descriptor that holds the lock on the folder; None where somebody else does, or where it can't be opened."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


@contextmanager
def _socket_dir(folder: Path) -> Iterator[Path]:
    """`folder`, or one in the system's temporary folder where that is too long a name for sockets."""
    if len(str(folder)) <= _SOCKET_DIR_LENGTH:
        yield folder
    else:
        with _work_dir(None) as short:
            yield short


@contextmanager
def _log4j() -> Iterator[Path]:
    with as_file(files("sink_job.spark") / "log4j2.properties") as path:
        yield path.resolve()
