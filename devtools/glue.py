"""AWS Glue Schema Registry on this machine: moto as a process, with everything in memory."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import boto3

from devtools.processes import LOOPBACK, Process, ServerFailedError, accepts_connections, free_ports, wait_until

REGION: Final = "eu-central-1"
ACCESS_KEY: Final = "glue-access-key"
SECRET_KEY: Final = "glue-secret-key"
_START_SECONDS: Final = 60


class GlueServer:
    """moto at a port of the loopback address, also for STS. It accepts all keys. Its schemas are lost when it ends."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_ports(1)[0]
        self.process: Process | None = None

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    def start(self) -> None:
        """Starts the server and returns when it accepts connections; raises `ServerFailedError` otherwise."""
        process = Process(
            [sys.executable, "-m", "moto.server", "-H", LOOPBACK, "-p", str(self.port)],
            log=self.directory / "moto.log",
            cwd=self.directory,
        )
        self.process = process
        try:
            wait_until(lambda: accepts_connections(self.port), "moto", seconds=_START_SECONDS, unless=process.failed)
        except ServerFailedError:
            process.kill()
            raise

    def kill(self) -> None:
        if self.process:
            self.process.kill()
            self.process = None

    def register(self, registry: str, schema: str, text: object, *, language: str = "AVRO") -> str:
        """Registers a schema (a text, or what its JSON text contains) as the next version; returns the version's id."""
        definition = text if isinstance(text, str) else json.dumps(text)
        client = self.client()
        with contextlib.suppress(client.exceptions.AlreadyExistsException):
            client.create_registry(RegistryName=registry)
        try:
            created = client.create_schema(
                RegistryId={"RegistryName": registry},
                SchemaName=schema,
                DataFormat=language,
                Compatibility="NONE",
                SchemaDefinition=definition,
            )
        except client.exceptions.AlreadyExistsException:
            created = client.register_schema_version(
                SchemaId={"RegistryName": registry, "SchemaName": schema}, SchemaDefinition=definition
            )
        return str(created["SchemaVersionId"])

    def client(self) -> Any:
        """boto3's client of Glue."""
        return boto3.client(
            "glue",
            region_name=REGION,
            endpoint_url=self.url,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
        )


@contextlib.contextmanager
def glue() -> Iterator[GlueServer]:
    """A running server; at the end it is killed."""
    with tempfile.TemporaryDirectory(prefix="s3sink-glue-", ignore_cleanup_errors=True) as name:
        server = GlueServer(Path(name))
        try:
            server.start()
            yield server
        finally:
            server.kill()
