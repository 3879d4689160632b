"""The demo's servers: a broker and an S3 server over one folder, and its sink's manifest with their addresses."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from demo.console import Show
from demo.flights import Flights
from devtools.jars import broker_class_path
from devtools.kafka import KafkaBroker
from devtools.processes import LOOPBACK, accepts_connections, in_session, kill_session, wait_until
from devtools.s3 import Moto, S3Server, VersityGW, credentials_environment
from devtools.topics import Record, Topics
from devtools.versitygw import versitygw_binary, versitygw_possible
from sink_job.spark.jars import client_jars

ROOT = Path(__file__).resolve().parent.parent
MANIFEST = ROOT / "examples" / "flights.yaml"
TABLE_MANIFEST = ROOT / "examples" / "flights-table.yaml"
PARTITIONS = 6


class Servers:
    """A broker and an S3 server in `folder`, at `host`, for the sink of `manifest`.

    With `stays` they outlive this process, at the manifest's ports.
    """

    def __init__(self, folder: Path, *, stays: bool = False, manifest: Path = MANIFEST, host: str = LOOPBACK) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        for name in ("kafka", "s3"):
            (folder / name).mkdir(parents=True)
        self.folder = folder
        self.example = manifest
        self.manifest: dict[str, Any] = yaml.safe_load(manifest.read_text())
        self.kafka = KafkaBroker(folder / "kafka", with_parent=not stays, host=host)
        kind = VersityGW if versitygw_possible() else Moto
        self.s3: S3Server = kind(folder / "s3", with_parent=not stays, host=host)
        if stays:
            self.kafka.port = _port_or(self.spec["kafka"]["bootstrapServers"], self.kafka.port)
            self.s3.port = _port_or(self.spec["s3"]["endpoint"], self.s3.port)

    @property
    def spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = self.manifest["spec"]
        return spec

    @property
    def topic(self) -> str:
        return str(self.spec["kafka"]["topics"][0])

    @property
    def bucket(self) -> str:
        return str(self.spec["s3"]["bucket"])

    def fetch(self, show: Show) -> None:
        """What has to be fetched or built once a machine."""
        broker_class_path(show.say)
        client_jars(show.say)
        if isinstance(self.s3, VersityGW):
            versitygw_binary()

    def start(self, show: Show) -> None:
        with show.spinner("starting Kafka"):
            self.kafka.start()
        show.say(f"Kafka at {self.kafka.bootstrap}")
        self.s3.start()
        self.s3.client().create_bucket(Bucket=self.bucket)
        show.say(f"{type(self.s3).__name__} at {self.s3.endpoint}")

    def fill(self, show: Show, flights: Flights) -> Topics:
        """Makes the topic and produces the flights into it."""
        topics = Topics(self.kafka.bootstrap)
        topics.create(self.topic, partitions=PARTITIONS)
        with show.bar("producing", len(flights), "flights") as advance:

            def counted() -> Iterator[Record]:
                for number, record in enumerate(self.records(flights), 1):
                    yield record
                    if number % 1000 == 0:
                        advance(number)
                advance(len(flights))

            settings = {"partitioner": "murmur2_random", "compression.type": "lz4", "linger.ms": 50}
            topics.produce(self.topic, counted(), **settings)
        return topics

    def records(self, flights: Flights) -> Iterator[Record]:
        """The records to produce."""
        return flights.records()

    def write_manifest(self, endpoint: str) -> Path:
        """The example's manifest, with the addresses of these servers."""
        spec = self.spec
        spec["kafka"]["bootstrapServers"] = self.kafka.bootstrap
        spec["s3"]["endpoint"] = endpoint
        path = self.folder / self.example.name
        path.write_text(yaml.safe_dump(self.manifest, sort_keys=False))
        return path

    def write_table_manifest(self) -> Path:
        """The manifest of the example with a table, for the same servers, with a SQL catalog in `folder`."""
        manifest = yaml.safe_load(TABLE_MANIFEST.read_text())
        spec = manifest["spec"]
        spec["kafka"]["bootstrapServers"] = self.kafka.bootstrap
        spec["s3"] |= {"endpoint": self.s3.endpoint, "topicsDir": "parquet"}
        uri = f"sqlite:///{self.folder.absolute() / 'catalog.db'}"
        spec["tables"][0]["catalog"] = {"type": "Sql", "uri": uri, "warehouse": f"s3://{self.bucket}/tables"}
        path = self.folder / TABLE_MANIFEST.name
        path.write_text(yaml.safe_dump(manifest, sort_keys=False))
        return path

    def remember(self) -> None:
        """Writes down what `forget` needs to end them from another process."""
        pids = [each.process.pid for each in (self.kafka, self.s3) if each.process]
        (self.folder / "state.json").write_text(json.dumps({"sessions": pids}))
        lines = [f"export {name}={value}\n" for name, value in credentials_environment().items()]
        (self.folder / "credentials.sh").write_text("".join(lines))

    def stop(self) -> None:
        self.s3.kill()
        self.kafka.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def remembered(folder: Path) -> list[int]:
    """The sessions of servers that `remember` wrote down and that still run; what only has their ids is left out."""
    try:
        sessions: list[int] = json.loads((folder / "state.json").read_text())["sessions"]
    except FileNotFoundError:
        return []
    return [session for session in sessions if _is_ours(session, folder)]


def forget(folder: Path) -> int:
    """Ends them and removes their data; gives how many there were."""
    sessions = remembered(folder)
    for session in sessions:
        with contextlib.suppress(ProcessLookupError):
            os.kill(session, signal.SIGTERM)
    with contextlib.suppress(RuntimeError):
        wait_until(lambda: not any(map(in_session, sessions)), "the servers' end", seconds=20)
    for session in sessions:
        kill_session(session)
    shutil.rmtree(folder, ignore_errors=True)
    return len(sessions)


def _is_ours(pid: int, folder: Path) -> bool:
    try:
        return str(folder).encode() in Path(f"/proc/{pid}/cmdline").read_bytes() or (
            Path(f"/proc/{pid}/cwd").resolve().is_relative_to(folder)
        )
    except (FileNotFoundError, ProcessLookupError):
        return False


def _port_or(address: str, other: int) -> int:
    port = int(address.rpartition(":")[2])
    return other if accepts_connections(port) else port
