"""`s3sink` commands in this process, on the Spark that the tests of a worker share.

The command line, its output and its exit code are those of the program. A JVM of its own costs a command ten seconds of
CPU time; `tests/data/test_cli_errors.py` and `test_demo.py` have the program itself.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

from py4j.java_gateway import JavaGateway
from pyspark import SparkContext

from devtools.processes import Process, wait_until
from devtools.s3 import credentials_secret
from devtools.sink_process import SinkCommand
from sink_job.cli.main import main
from sink_job.driver import run, standalone_admin
from sink_job.spark import session


class CommandHere(SinkCommand):
    """The commands of a manifest that run until they end in this process; `start` still makes a process.

    The keys of the store are in a secret: the workers of the shared Spark do not have the environment of a command.
    """

    def __init__(self, spark: SparkContext, folder: Path, document: Mapping[str, Any], **more: Any) -> None:
        super().__init__(folder, document, **more)
        self._spark = spark
        self._keys = ("--secret", f"s3-keys={credentials_secret(folder / 's3-keys')}")
        self.outputs: list[str] = []

    def write(self, document: Mapping[str, Any]) -> None:
        """Rewrites the manifest for the next command."""
        spec = document["spec"]
        s3 = {"credentials": {"secret": "s3-keys"}, **spec["s3"]}
        super().write({**document, "spec": {**spec, "s3": s3}})

    def start(self, command: str = "run", *arguments: str, env: Mapping[str, str] | None = None) -> Process:
        """Starts a command in a process of its own, with its own Spark."""
        return super().start(command, *self._keys, *arguments, env=env)

    def must(self, command: str, *arguments: str, exit_code: int = 0, seconds: float = 300) -> str:
        """Runs a command and returns its output. Raises AssertionError for another exit code."""
        if command == "run":
            # A driver leaves uploads that were started in the second of its claim to the next driver. A process takes
            # longer to start.
            started = int(time.time())
            wait_until(lambda: int(time.time()) > started, "the store's next second", seconds=5)
        log = self.folder / f"{command}-here-{len(self.outputs)}.log"
        with log.open("w") as output, ExitStack() as stack:
            stack.enter_context(redirect_stdout(output))
            stack.enter_context(redirect_stderr(output))
            stack.enter_context(mock.patch.dict(os.environ, self.env))
            stack.enter_context(_logging_kept())
            stack.enter_context(_on(self._spark))
            code = main([command, str(self.path), *self._keys, *arguments])
        self.outputs.append(log.read_text())
        assert code == exit_code, f"s3sink {command} exited with {code}, expected {exit_code}:\n{self.outputs[-1]}"
        return self.outputs[-1]


@contextmanager
def _on(spark: SparkContext) -> Iterator[None]:
    """Commands use this Spark and its JVM in place of ones of their own."""

    @contextmanager
    def shared(
        *_: Any, launched: Callable[[JavaGateway], object] = lambda _: None, **__: Any
    ) -> Iterator[SparkContext]:
        launched(spark._gateway)
        yield spark

    gateway = spark._gateway
    with (
        mock.patch.object(run, "session", shared),
        mock.patch.object(session, "session", shared),
        mock.patch.object(standalone_admin, "plain_jvm", return_value=gateway),
        mock.patch.object(gateway, "shutdown"),  # the JVM stays
    ):
        yield


@contextmanager
def _logging_kept() -> Iterator[None]:
    """Undoes what a command changes of logging."""
    root, job = logging.getLogger(), logging.getLogger("sink_job")
    kept = root.handlers[:], root.level, job.level
    try:
        yield
    finally:
        logging.captureWarnings(False)
        root.handlers[:], level, level_of_job = kept
        root.setLevel(level)
        job.setLevel(level_of_job)
