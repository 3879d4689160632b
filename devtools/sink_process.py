"""The `s3sink` command as a process, with its output in a file."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from devtools.fork_server import forked
from devtools.processes import Process, wait_until
from devtools.s3 import REGION, credentials_environment

_numbers = itertools.count(1)
LAUNCHER = {"SPARK_LAUNCHER_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""Options of the JVM in which Spark builds the command of the JVM that stays: it runs for a second, as in the image."""
SHORT_RUN = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
"""Spark properties for a run of seconds: optimized compilation takes a quarter of the JVM's CPU time until its end, and
it pays only later."""


def manifest(name: str, spec: Mapping[str, Any], *, namespace: str | None = None) -> dict[str, Any]:
    """An S3Sink object with `spec`, in the form of parsed YAML."""
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": "s3sink.io/v1alpha1", "kind": "S3Sink", "metadata": metadata, "spec": dict(spec)}


def local_spec(
    *, bootstrap: str, topics: list[str], endpoint: str, bucket: str, **sections: Mapping[str, Any]
) -> dict[str, Any]:
    """A spec for servers of this machine; `sections` override it, one level deep."""
    spec: dict[str, Any] = {
        "kafka": {"bootstrapServers": bootstrap, "topics": topics},
        "s3": {
            "bucket": bucket,
            "region": REGION,
            "endpoint": endpoint,
            "pathStyle": True,
            **({"insecure": True} if endpoint.startswith("http:") else {}),
        },
    }
    for name, section in sections.items():
        spec[name] = {**spec.get(name, {}), **section}
    return spec


def short_run(document: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest with SHORT_RUN, unless it has Spark properties of its own for the same purpose."""
    spec = document["spec"]
    return {**document, "spec": {**spec, "sparkConf": {**SHORT_RUN, **spec.get("sparkConf", {})}}}


class _ForkedCommand(Process):
    """A command that is forked from a process with `imports`, and is the same from there on."""

    def __init__(self, command: Sequence[str | Path], *, imports: Sequence[str], **more: Any) -> None:
        self._imports = imports
        super().__init__(command, **more)

    def _start(self, command: Sequence[str], log: Path, env: Mapping[str, str], cwd: Path | None) -> Any:
        return forked(_main, command[1:], imports=self._imports, log=log, env=env, cwd=cwd)


def _main(argv: Sequence[str]) -> int:
    from sink_job.cli.main import main

    return main(argv)


class SinkCommand:
    """The commands of a manifest in a folder: `run` in the background, others until they end.

    With `imports` they are forked from a process that has these modules, which saves their start a second or two of CPU
    time.
    """

    def __init__(
        self,
        folder: Path,
        document: Mapping[str, Any],
        *,
        env: Mapping[str, str] | None = None,
        imports: Sequence[str] = (),
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.path = folder / f"{document['metadata']['name']}.yaml"
        self.env = {**credentials_environment(), **LAUNCHER, **(env or {})}
        self.processes: list[Process] = []
        self._imports = imports
        self.write(document)

    def write(self, document: Mapping[str, Any]) -> None:
        """Rewrites the manifest for the next command."""
        self.path.write_text(yaml.safe_dump(dict(document), sort_keys=False))

    def start(self, command: str = "run", *arguments: str, env: Mapping[str, str] | None = None) -> Process:
        """Starts `s3sink COMMAND MANIFEST ARGUMENTS…`; it runs until it exits or is ended."""
        words: list[str | Path] = [Path(sys.executable).with_name("s3sink"), command, self.path, *arguments]
        log = self.folder / f"{command}-{next(_numbers)}.log"
        given: dict[str, Any] = {"log": log, "env": {**self.env, **(env or {})}, "cwd": self.folder}
        process = _ForkedCommand(words, imports=self._imports, **given) if self._imports else Process(words, **given)
        self.processes.append(process)
        return process

    def run(self, *arguments: str, seconds: float = 300) -> Process:
        """Runs `s3sink run` until it exits; `Process.wait` returns the exit code."""
        process = self.start("run", *arguments)
        process.wait(seconds)
        return process

    def catch_up(self, *arguments: str, publish_open: bool = True, seconds: float = 300) -> None:
        """Runs until the current records are in the ledger (and published). Raises AssertionError with the log
        otherwise."""
        flags = ["--until-caught-up", *(["--publish-open"] if publish_open else [])]
        self.must("run", *flags, *arguments, seconds=seconds)

    def must(self, command: str, *arguments: str, exit_code: int = 0, seconds: float = 300) -> str:
        """Runs a command and returns its output. Raises AssertionError for another exit code."""
        process = self.start(command, *arguments)
        code = process.wait(seconds)
        assert code == exit_code, f"s3sink {command} exited with {code}, expected {exit_code}:\n{process.log}"
        return process.log

    def kill(self) -> None:
        """Kills all running processes."""
        for process in self.processes:
            process.kill()

    @staticmethod
    def wait_for(is_so: Callable[[], bool], what: str, process: Process, seconds: float = 300) -> None:
        """Waits until `is_so` holds. Raises `ServerFailedError` on timeout or when the process has ended."""
        wait_until(is_so, what, seconds=seconds, unless=process.failed)


@contextlib.contextmanager
def sink_command(
    folder: Path,
    document: Mapping[str, Any],
    *,
    env: Mapping[str, str] | None = None,
    imports: Sequence[str] = (),
) -> Iterator[SinkCommand]:
    """A `Sink` none of whose processes outlives the block."""
    each = SinkCommand(folder, document, env=env, imports=imports)
    try:
        yield each
    finally:
        each.kill()
