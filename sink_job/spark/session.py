"""The Spark session of a sink: starts and ends the JVM, forwards its log, and removes its files.

A sink uses a Spark context and Kafka's client, and neither Spark SQL nor the web UI. Spark writes all files to one
directory. It is removed at the end of the session, or after a SIGKILL at the next start.
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.resources import as_file, files
from pathlib import Path
from typing import IO, Any, TypeAlias

from py4j.java_gateway import JavaGateway

from sink_job.api.errors import ConfigurationError, TooManyExecutorFailures
from sink_job.spark.conf import ARENAS, SHORT_DIR, SOCKET_DIR_LENGTH, SparkSettings, spark_conf
from sink_job.spark.executor_log import ExecutorLog
from sink_job.spark.java_command import java_command
from sink_job.spark.pyspark_core import SparkConf, SparkContext, java_gateway, launch_gateway
from sink_job.spark.resource_errors import jvm_error

_log = logging.getLogger("sink_job.spark.jvm")
_PREFIX = "s3sink-spark-"
_MAX_OUTPUT = 64 << 10
_LAUNCHER_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of the JVM in which Spark puts together the command of the JVM that stays, if it has to: it runs for a
second."""
_JVM_ENDS_S = 2.0
"""Time until a JVM that was killed is gone."""


Session: TypeAlias = SparkContext
"""A running Spark, for modules that do not import PySpark."""
Gateway: TypeAlias = JavaGateway
"""The way into the JVM of a session, for modules that do not import Py4J."""


@contextmanager
def session(
    settings: SparkSettings,
    *,
    executor_log: ExecutorLog | None = None,
    launched: Callable[[Gateway], object] = lambda _: None,
    exit_timeout_s: float = 5,
) -> Iterator[SparkContext]:
    """A Spark session. At its end the JVM, its workers and their files are removed. One session at a time per process.

    `executor_log` reads the log of the JVM. `launched` is called with the gateway of the JVM before Spark starts in it,
    and must not block. The JVM is killed if it has not exited `exit_timeout_s` seconds after the
    end. Raises ConfigurationError for a property in `settings.conf` that the sink sets, and if the JVM does not start;
    OutOfMemory if it was killed or has no memory.
    """
    with _work_dir(settings.temp_dir) as folder, _socket_dir(folder) as sockets, _log4j() as log4j:
        conf = SparkConf(loadDefaults=False).setAll(list(spark_conf(settings, folder, sockets, log4j).items()))
        gateway = _launch(conf, executor_log)
        try:
            launched(gateway)
            with _interrupts_kept(), _jvm_needed(gateway.proc):
                context = SparkContext(conf=conf, gateway=gateway)
            context.pythonExec = sys.executable
            try:
                yield context
            finally:
                with suppress(Exception):  # the JVM may have exited; it is ended below in any case
                    context.stop()
        finally:
            _end(gateway, exit_timeout_s)


def _launch(conf: SparkConf, executor_log: ExecutorLog | None) -> Any:
    """Starts the JVM and forwards its standard error to the log. Raises OutOfMemory for a JVM that was killed or that
    did not get its memory, and ConfigurationError for any other one that does not start."""
    with _recorded_process() as launched:
        try:
            gateway = launch_gateway(conf, popen_kwargs={"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE})
        except Exception as error:
            process = launched[0] if launched else None
            if process is None:
                raise ConfigurationError(f"Spark's JVM does not start: {error}") from None
            raise jvm_error(process.poll(), _rest_of(process)) from None
    if executor_log is not None:
        executor_log.end = lambda: _exit(gateway, TooManyExecutorFailures.exit_code)
    arguments = (gateway.proc.stderr, executor_log)
    threading.Thread(target=_forward, args=arguments, name="jvm-log", daemon=True).start()
    return gateway


@contextmanager
def _recorded_process() -> Iterator[list[subprocess.Popen[bytes]]]:
    """The process that PySpark starts within the context: it does not hand out the one of a JVM that ends at once."""
    launched: list[subprocess.Popen[bytes]] = []

    def recording(words: Sequence[str], **more: Any) -> subprocess.Popen[bytes]:
        environment = more["env"]
        environment.setdefault("MALLOC_ARENA_MAX", ARENAS)
        if command := java_command(words, environment):
            words = command.words
            environment.update(command.environment)
        else:
            environment.setdefault("SPARK_LAUNCHER_OPTS", _LAUNCHER_OPTIONS)
        launched.append(subprocess.Popen(words, **more))
        return launched[-1]

    module: Any = java_gateway
    original = module.Popen
    module.Popen = recording
    try:
        yield launched
    finally:
        module.Popen = original


def _rest_of(process: subprocess.Popen[bytes]) -> str:
    """The end of what an ended process has written to its standard error."""
    stream = process.stderr
    return "" if stream is None else stream.read()[-_MAX_OUTPUT:].decode(errors="replace")


@contextmanager
def _jvm_needed(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Turns an error within the context into that of the JVM if the JVM has ended meanwhile."""
    try:
        yield
    except Exception:
        with suppress(subprocess.TimeoutExpired):
            raise jvm_error(process.wait(_JVM_ENDS_S), "") from None
        raise


def _exit(gateway: Any, code: int) -> None:
    """Ends the JVM with this exit code."""
    with suppress(Exception):  # it ends before it answers
        gateway.jvm.java.lang.System.exit(code)


def _forward(stream: IO[bytes], executor_log: ExecutorLog | None) -> None:
    """Logs errors of the JVM as warnings, and other lines as debug messages. Traces of workers are reported
    otherwise."""
    for raw in stream:
        line = raw.decode(errors="replace").rstrip()
        is_new = executor_log is None or executor_log.read(line)
        level = logging.WARNING if is_new and line.startswith(("ERROR ", "FATAL ")) else logging.DEBUG
        _log.log(level, "%s", line)


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
    """`folder`; if its path is too long for sockets, a directory in /tmp. Records have no other way to the workers."""
    if len(bytes(folder)) <= SOCKET_DIR_LENGTH:
        yield folder
    else:
        with _work_dir(Path(SHORT_DIR)) as short:
            yield short


@contextmanager
def _log4j() -> Iterator[Path]:
    with as_file(files("sink_job.spark") / "log4j2.properties") as path:
        yield path.resolve()
