"""The servers of a run, and `s3sink` processes, each with its own proxy to the store."""

from __future__ import annotations

import contextlib
import itertools
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from devtools.chaos import limits
from devtools.chaos.registry import KeptRegistry
from devtools.faults.s3_proxy import FaultProxy
from devtools.faults.s3_requests import S3Request
from devtools.kafka import KafkaBroker
from devtools.processes import Process, ServerFailedError, in_session, wait_until
from devtools.s3 import VersityGW, credentials_environment
from devtools.sink_process import local_spec, manifest, short_run

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_LEDGER = re.compile(r"/ledger/[0-9]{20}")
_numbers = itertools.count(1)


class VersioningGW(VersityGW):
    """VersityGW with bucket versioning."""

    def command(self) -> list[str | Path]:
        *words, data = super().command()
        versions = self.directory / "versions"
        versions.mkdir(exist_ok=True)
        return [*words, "--versioning-dir", versions, data]


class Servers:
    """A broker, an S3 server and a schema registry with data in `folder`."""

    def __init__(self, folder: Path) -> None:
        (folder / "kafka").mkdir()
        (folder / "s3").mkdir()
        (folder / "registry").mkdir()
        self.broker = KafkaBroker(folder / "kafka", short_lived=True)
        self.s3 = VersioningGW(folder / "s3")
        self.registry = KeptRegistry(folder / "registry")

    def start(self) -> None:
        self.broker.start()
        self.s3.start()
        self.registry.start()

    def kill(self) -> None:
        self.broker.kill()
        self.s3.kill()
        self.registry.kill()

    def client(self) -> S3Client:
        return self.s3.client()


class DriverProcess:
    """A process of `s3sink run`. Its requests to the store pass through `proxy`, which outlives the process."""

    def __init__(self, process: Process, proxy: FaultProxy, *, temp: Path, group: limits.MemoryGroup | None) -> None:
        self.process = process
        self.proxy = proxy
        self.temp = temp
        self.group = group
        self.code: int | None = None

    def records(self) -> int:
        """The number of ledger records that this driver has stored, including its claim."""
        return sum(1 for request, status in list(self.proxy.answered) if status == 200 and is_record(request))

    def wait_for_records(self, count: int, seconds: float) -> bool:
        """Waits for `count` records; returns False if the process ends before. Raises `ServerFailedError` on
        timeout."""

        def so() -> bool:
            return self.records() >= count or not self.process.running()

        wait_until(so, f"record {count} of {self.process}", seconds=seconds)
        return self.records() >= count

    def wait(self, seconds: float) -> int:
        """The exit code."""
        self.code = self.process.wait(seconds)
        return self.code

    def children(self, word: bytes) -> list[int]:
        """The processes of this driver whose command line contains `word`."""
        found = []
        for pid in in_session(self.process.pid):
            with contextlib.suppress(OSError):
                if word in Path(f"/proc/{pid}/cmdline").read_bytes() and pid != self.process.pid:
                    found.append(pid)
        return found

    def close(self) -> None:
        """Ends the process, if it runs, and its proxy."""
        self.process.kill()
        self.proxy.__exit__()
        if self.group is not None:
            self.group.remove()


def is_record(request: S3Request) -> bool:
    """Whether a request stores a record of the ledger."""
    return request.kind == "PutObject" and _LEDGER.search(request.key) is not None


class Fleet:
    """Starts the drivers and other commands of a sink; `spec` may change between starts."""

    def __init__(
        self, servers: Servers, folder: Path, *, name: str, topic: str, bucket: str, spec: Mapping[str, Any], zone: str
    ) -> None:
        folder.mkdir()
        self.servers = servers
        self.folder = folder
        self.name = name
        self.topic = topic
        self.bucket = bucket
        self.spec = dict(spec)
        self.memory: int | None = None
        self.drivers: list[DriverProcess] = []
        self.exits: Counter[str] = Counter()
        self.oom_kills = 0
        self._env = {**credentials_environment(), "TZ": zone, "PYTHONFAULTHANDLER": "1"}

    def start(
        self, *arguments: str, small_folder: int | None = None, memory: int | None = None, cores: int = 2
    ) -> DriverProcess:
        """Starts a driver. `small_folder` is the size in bytes of a separate file system for temporary files; `memory`
        is a limit of its control group in bytes that is not in its arguments."""
        proxy = FaultProxy(self.servers.s3.endpoint)
        proxy.__enter__()
        number = next(_numbers)
        temp = self.folder / f"t{number}" if small_folder else self.folder / "tmp"
        temp.mkdir(exist_ok=True)
        words: list[str] = [] if small_folder is None else limits.in_small_folder(temp, small_folder)
        group = None
        if (memory or self.memory) and limits.MemoryGroup.possible():
            group = limits.MemoryGroup(memory or (self.memory or 0) + (64 << 20))
            words += group.words
        if self.memory:
            arguments = ("--memory", str(self.memory), *arguments)
        arguments = ("--cores", str(cores), "--progress", "never", *arguments)
        process = self._process("run", proxy.endpoint, number, arguments, words, temp)
        driver = DriverProcess(process, proxy, temp=temp, group=group)
        self.drivers.append(driver)
        return driver

    def command(self, command: str, *arguments: str, seconds: float) -> tuple[int, str]:
        """Runs another command without a proxy; returns its exit code and output."""
        temp = self.folder / "tmp"
        temp.mkdir(exist_ok=True)
        process = self._process(command, self.servers.s3.endpoint, next(_numbers), arguments, [], temp)
        try:
            return process.wait(seconds), process.log
        finally:
            process.kill()

    def _process(
        self, command: str, endpoint: str, number: int, arguments: Sequence[str], words: Sequence[str], temp: Path
    ) -> Process:
        path = self.folder / f"{number}.yaml"
        path.write_text(yaml.safe_dump(self._manifest(endpoint), sort_keys=False))
        program = Path(sys.executable).with_name("s3sink")
        log = self.folder / f"{number}-{command}.log"
        env = {**self._env, "TMPDIR": str(temp)}
        return Process([*words, program, command, path, *arguments], log=log, env=env, cwd=self.folder)

    def _manifest(self, endpoint: str) -> dict[str, Any]:
        sections = {name: section for name, section in self.spec.items() if isinstance(section, Mapping)}
        spec = local_spec(
            bootstrap=self.servers.broker.bootstrap,
            topics=[self.topic],
            endpoint=endpoint,
            bucket=self.bucket,
            **sections,
        )
        spec |= {name: value for name, value in self.spec.items() if name not in sections}
        return short_run(manifest(self.name, {name: section for name, section in spec.items() if section}))

    def close(self) -> None:
        """Ends all drivers."""
        for driver in self.drivers:
            with contextlib.suppress(ServerFailedError, OSError):
                if driver.group is not None:
                    self.oom_kills += driver.group.kills
                driver.close()
