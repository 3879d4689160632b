"""A Kafka Connect worker of this machine, in distributed mode, with the connectors for files.

It runs no connector for S3: what matters to a sink that follows one is its consumer group, which is Connect's own for
every sink connector.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from devtools.jars import connect_jars
from devtools.kafka import java_command
from devtools.processes import LOOPBACK, Process, ServerFailedError, accepts_connections, free_ports, wait_until

_START_SECONDS = 120
_FILE_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"


class ConnectWorker:
    """A worker of its own Connect cluster. `start` again after `kill` continues its connectors.

    Its connectors commit their offsets only when they stop, are paused or rebalance: a killed one leaves what it has
    delivered since.
    """

    def __init__(self, directory: Path, bootstrap: str) -> None:
        self.directory = directory
        (self.port,) = free_ports(1)
        self.process: Process | None = None
        self._bootstrap = bootstrap
        self._name = f"connect-{uuid.uuid4().hex[:8]}"

    @property
    def url(self) -> str:
        """The URL of the REST API."""
        return f"http://{LOOPBACK}:{self.port}"

    def connector_url(self, name: str) -> str:
        """The URL of a connector."""
        return f"{self.url}/connectors/{name}"

    def start(self) -> None:
        """Starts the worker and returns when it has joined its cluster; `ServerFailedError` has the end of its log."""
        properties = self.directory / "worker.properties"
        storage = {
            f"{each}.storage.{name}": value
            for each in ("config", "offset", "status")
            for name, value in {"topic": f"{self._name}-{each}", "replication.factor": "1"}.items()
        }
        settings = {
            "bootstrap.servers": self._bootstrap,
            "group.id": self._name,
            "listeners": f"{self.url}",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            **storage,
            "offset.storage.partitions": "1",
            "status.storage.partitions": "1",
            "offset.flush.interval.ms": "3600000",
            "plugin.discovery": "only_scan",
            "connector.client.config.override.policy": "All",
            "scheduled.rebalance.max.delay.ms": "0",
            "session.timeout.ms": "6000",
            "heartbeat.interval.ms": "1000",
        }
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        options = ["-Xmx256m", "-XX:TieredStopAtLevel=1"]
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        command = java_command(main, str(properties), options=options, more=connect_jars())
        process = Process(command, log=self.directory / "worker.log", cwd=self.directory)
        self.process = process
        try:
            wait_until(
                lambda: accepts_connections(self.port) and self._answers(),
                "Kafka Connect",
                seconds=_START_SECONDS,
                unless=process.failed,
            )
        except ServerFailedError:
            process.kill()
            raise

    def kill(self) -> None:
        """Ends the worker without a commit of its offsets."""
        if self.process:
            self.process.kill()
            self.process = None

    def create_file_sink(self, name: str, topic: str, file: Path, **settings: str) -> None:
        """Creates a sink connector that appends the values of `topic` to `file`, or changes its settings."""
        config = {
            "connector.class": _FILE_SINK,
            "topics": topic,
            "file": str(file),
            "tasks.max": "1",
            "consumer.override.auto.offset.reset": "earliest",
            "consumer.override.session.timeout.ms": "6000",
            "consumer.override.heartbeat.interval.ms": "500",
            **settings,
        }
        self.request("PUT", f"/connectors/{name}/config", config)

    def delete(self, name: str) -> None:
        """Deletes a connector. Its group and its offsets stay."""
        self.request("DELETE", f"/connectors/{name}")

    def states(self, name: str) -> list[str]:
        """The state of a connector, then those of its tasks."""
        status = self.request("GET", f"/connectors/{name}/status")
        return [status["connector"]["state"], *(task["state"] for task in status["tasks"])]

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Sends a request; it is sent again while the worker rebalances (409, and 404 for a new connector)."""
        answers: list[tuple[int, bytes]] = []

        def is_answered() -> bool:
            answers.append(self._send(method, path, body))
            return answers[-1][0] not in (404, 409, 500, 503)

        wait_until(is_answered, f"{method} {path}", seconds=60)
        status, content = answers[-1]
        if status >= 400:
            raise ServerFailedError(f"{method} {path}: {status} {content.decode()}")
        return json.loads(content) if content else None

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None) -> tuple[int, bytes]:
        connection = HTTPConnection(LOOPBACK, self.port, timeout=90)
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, path, body=content, headers={"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def _answers(self) -> bool:
        try:
            return self._send("GET", "/connectors", None)[0] == 200
        except OSError:
            return False


@contextlib.contextmanager
def connect_worker(bootstrap: str) -> Iterator[ConnectWorker]:
    """A running worker in a temporary folder; at the end it is killed and the folder removed."""
    with tempfile.TemporaryDirectory(prefix="s3sink-connect-", ignore_cleanup_errors=True) as name:
        worker = ConnectWorker(Path(name), bootstrap)
        try:
            worker.start()
            yield worker
        finally:
            worker.kill()
