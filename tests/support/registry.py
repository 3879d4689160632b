"""Clients of a schema registry for tests, and schemas."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from devtools.schema_registry.server import SchemaRegistryServer
from sink_job.api.enums import RegistryType
from sink_job.api.errors import ConfigurationError, SinkError, TransientError
from sink_job.driver.secret_registry import Redactor
from sink_job.engine.retry import RetryPolicy
from sink_job.registry.clients.apicurio import ApicurioRegistry
from sink_job.registry.clients.confluent import ConfluentRegistry
from sink_job.registry.clients.glue import GlueRegistry
from sink_job.registry.settings import RegistrySettings

QUICK = RetryPolicy(max_elapsed_s=0.3, first_s=0.01, cap_s=0.05)
PERSISTENT = RetryPolicy(max_elapsed_s=60, first_s=0.01, cap_s=0.05)


def record(name: str, *fields: str) -> dict[str, Any]:
    """An Avro record with fields of type long."""
    return {"type": "record", "name": name, "fields": [{"name": field, "type": "long"} for field in fields]}


FLIGHT = record("example.Flight", "number")
FLIGHT_2 = record("example.Flight", "number", "seats")


@contextmanager
def registry_client(
    *servers: SchemaRegistryServer, redactor: Redactor | None = None, **settings: Any
) -> Iterator[ConfluentRegistry]:
    """A client of the servers, with quick retries. `redactor` gets its secrets."""
    urls = tuple(server.url for server in servers)
    options = RegistrySettings(**{"urls": urls, "retry": QUICK, **settings})
    client = ConfluentRegistry(options, threading.Event().wait, (redactor or Redactor()).hide)
    try:
        yield client
    finally:
        client.close()


@contextmanager
def apicurio_client(*urls: str, redactor: Redactor | None = None, **settings: Any) -> Iterator[ApicurioRegistry]:
    """A client of Apicurio's own API, with quick retries. `redactor` gets its secrets."""
    found = RegistrySettings(**{"urls": urls, "type": RegistryType.APICURIO, "retry": QUICK, **settings})
    client = ApicurioRegistry(found, threading.Event().wait, (redactor or Redactor()).hide)
    try:
        yield client
    finally:
        client.close()


@contextmanager
def glue_client(url: str = "", **settings: Any) -> Iterator[GlueRegistry]:
    """A client of AWS Glue at the endpoint `url`, with quick retries."""
    found = RegistrySettings(
        **{
            "urls": (url,) if url else (),
            "type": RegistryType.GLUE,
            "region": "eu-central-1",
            "retry": QUICK,
            **settings,
        }
    )
    client = GlueRegistry(found, threading.Event().wait)
    try:
        yield client
    finally:
        client.close()


def secret(folder: Path, **values: str) -> Path:
    """A folder in the layout of a mounted Secret, with these keys."""
    for key, value in values.items():
        (folder / key).write_text(value + "\n")
    return folder


def error_of(client: ConfluentRegistry) -> SinkError:
    """The error of a request for the schema with the id 1."""
    with pytest.raises((ConfigurationError, TransientError)) as raised:
        client.fetch("flights", "1")
    return raised.value
