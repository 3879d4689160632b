"""The Spark session of a sink: starts and ends the JVM, forwards its log, and removes its files.

A sink uses a Spark context, Arrow and the Kafka connector, and neither catalog nor web UI. Spark writes all files to
one directory. It is removed at the end of the session, or after a SIGKILL at the next start.
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
def session(settings: SparkSettings, *, exit_timeout_s: float = 5) -> Iterator[SparkSession]:
    """A Spark session. At its end the JVM, its workers and their files are removed. One session at a time per process.

    The JVM is killed if it has not exited `exit_timeout_s` seconds after the end. Raises ConfigurationError for a
    property in `settings.conf` that the sink sets, and if the JVM does not start.
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
                with suppress(Exception):  # the JVM may have exited; it is ended below in any case
                    spark.stop()
        finally:
            _end(gateway, exit_timeout_s)


def _launch(conf: SparkConf) -> Any:
    """Starts the JVM and forwards its standard error to the log. Raises ConfigurationError."""
    try:
        gateway = launch_gateway(conf, popen_kwargs={"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE})
    except Exception as error:
        raise ConfigurationError(
            f"Spark's JVM does not start; check that Java 17 or newer is installed: {error}"
        ) from None
    threading.Thread(target=_forward, args=(gateway.proc.stderr,), name="jvm-log", daemon=True).start()
    return gateway


def _forward(stream: IO[bytes]) -> None:
    """Logs errors of the JVM as warnings, and other lines as debug messages. Traces of workers are reported
    otherwise."""
    for line in stream:
        level = logging.WARNING if line.startswith((b"ERROR ", b"FATAL ")) else logging.DEBUG
        _log.log(level, "%s", line.decode(errors="replace").rstrip())


def _end(gateway: Any, exit_timeout_s: float) -> None:
    """Ends the JVM by closing its standard input, and kills it after `exit_timeout_s` seconds."""
    with suppress(Exception):
        gateway.shutdown()
    SparkContext._gateway = None
    SparkContext._jvm = None
    process = gateway.proc
    process.stdin.close()
    try:
        process.wait(exit_timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Keeps the sink's handler of SIGINT. SparkContext installs its own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


@contextmanager
def _work_dir(parent: Path | None) -> Iterator[Path]:
    """A directory that this process locks. Removes directories without a lock, whose process was killed.

    A lock ends with its process. The process id in the name is only information: the system reuses process ids.
    """
    base = Path(parent or tempfile.gettempdir()).resolve()
    for folder in base.glob(f"{_PREFIX}*-*"):
        _remove_if_unlocked(folder)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=base))
        lock = _locked(folder)
        if lock is None:
            continue
        if folder.exists():
            break
        os.close(lock)  # another start has removed it before the lock
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _remove_if_unlocked(folder: Path) -> None:
    if folder.name.removeprefix(_PREFIX).partition("-")[0].isdigit() and (lock := _locked(folder)) is not None:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _locked(folder: Path) -> int | None:
    """A file descriptor that holds the lock on the directory. None if another process holds it, or on an error."""
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
    """`folder`; if its path is too long for sockets, a directory in the system's temporary directory."""
    if len(str(folder)) <= SOCKET_DIR_LENGTH:
        yield folder
    else:
        with _work_dir(None) as short:
            yield short


@contextmanager
def _log4j() -> Iterator[Path]:
    with as_file(files("sink_job.spark") / "log4j2.properties") as path:
        yield path.resolve()
