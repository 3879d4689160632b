"""The schema registry of a run, which keeps its schemas over a restart, and a proxy that injects faults."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from devtools.chaos.registry_values import VERSIONS, VersionedValues
from devtools.faults.http1 import Head
from devtools.faults.proxy import Relay, Reply
from devtools.schema_registry.server import SchemaRegistryServer

_ID = re.compile(r"/schemas/ids/([0-9]+)")
UNKNOWN_ID = 40403
"""Confluent's error code for an id that the registry does not know."""


class KeptRegistry(SchemaRegistryServer):
    """A registry that has the same schemas under the same ids after each start."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._kept: list[VersionedValues] = []

    def start(self) -> None:
        super().start()
        for values in self._kept:
            self._register(values)

    def keep(self, values: VersionedValues) -> None:
        """Registers all versions of a topic's schema."""
        self._register(values)
        self._kept.append(values)

    def _register(self, values: VersionedValues) -> None:
        for version in VERSIONS:
            self.seed(
                values.subject, version, values.schema_id(version), values.text(version), language=values.language
            )


@dataclass(frozen=True)
class RegistryRequest:
    """A request for a schema: `schema_id` is None for other requests, `is_text` if it asks for the schema itself."""

    number: int
    kind: str
    schema_id: int | None
    is_text: bool
    mutating: bool = False


class RegistryProxy(Relay[RegistryRequest]):
    """A proxy of the requests of all drivers of a sink to the registry."""

    def _classify(self, number: int, head: Head) -> RegistryRequest:
        path = urlsplit(head.first[1]).path
        match = _ID.match(path)
        return RegistryRequest(
            number, head.first[0], int(match[1]) if match else None, match is not None and match.end() == len(path)
        )


@dataclass(frozen=True)
class RegistryReply(Reply):
    """An answer instead of the registry's."""

    status: int
    body: object

    @classmethod
    def error(cls, status: int, code: int | None = None) -> RegistryReply:
        return cls(status, {"error_code": code or status, "message": "by chaos"})

    def encode(self) -> bytes:
        body = json.dumps(self.body).encode()
        head = f"HTTP/1.1 {self.status} Chaos\r\nContent-Type: application/vnd.schemaregistry.v1+json\r\n"
        return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
