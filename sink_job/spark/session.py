"""The Spark session of a sink: a JVM beside this process, quiet logs, nothing left behind.

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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.resources import as_file, files
from pathlib import Path
from typing import IO, Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from sink_job.api.errors import ConfigurationError
from sink_job.spark.conf import SOCKET_DIR_LENGTH, SparkSettings, spark_conf

_log = logging.getLogger("sink_job.spark.jvm")
_PREFIX = "s3sink-spark-"


@contextmanager
def session(settings: SparkSettings, *, patience_s: float = 5) -> Iterator[SparkSession]:
    """A session; on leaving, the JVM, its workers and their files are gone. One at a time in a process.

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
    if len(str(folder)) <= SOCKET_DIR_LENGTH:
        yield folder
    else:
        with _work_dir(None) as short:
            yield short


@contextmanager
def _log4j() -> Iterator[Path]:
    with as_file(files("sink_job.spark") / "log4j2.properties") as path:
        yield path.resolve()
