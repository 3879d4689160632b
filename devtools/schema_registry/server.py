"""A schema registry as a process of its own, for tests, demo and bench, and requests to it."""

from __future__ import annotations

import base64
import contextlib
import json
import ssl
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from devtools.certificates import Certificate
from devtools.processes import LOOPBACK, Process, ServerFailedError, accepts_connections, free_ports, wait_until
from devtools.schema_registry import schema_registry_program

_START_SECONDS = 30
_REQUEST_SECONDS = 30
Reference = tuple[str, str, int]
"""Name, subject and version of a schema that another one refers to."""


class SchemaRegistryServer:
    """srfake at a port of the loopback address. Its schemas are in memory: they are lost when it ends.

    `authorization` is the Authorization header that each request must have. With a `certificate` it listens with TLS,
    with `client_ca` it requires a client certificate of that authority.
    """

    def __init__(
        self,
        directory: Path,
        *,
        authorization: str = "",
        certificate: Certificate | None = None,
        client_ca: Path | None = None,
    ) -> None:
        self.directory = directory
        self.authorization = authorization
        self.certificate = certificate
        self.client_ca = client_ca
        self.port = free_ports(1)[0]
        self.process: Process | None = None
        self._answers: list[dict[str, object]] = []

    @property
    def url(self) -> str:
        return f"{'https' if self.certificate else 'http'}://{LOOPBACK}:{self.port}"

    def start(self) -> None:
        """Starts the server and returns when it accepts connections; raises `ServerFailedError` otherwise."""
        process = Process(self._command(), log=self.directory / "registry.log", cwd=self.directory)
        self.process = process
        try:
            wait_until(
                lambda: accepts_connections(self.port),
                "schema registry",
                seconds=_START_SECONDS,
                unless=process.failed,
            )
        except ServerFailedError:
            process.kill()
            raise

    def kill(self) -> None:
        if self.process:
            self.process.kill()
            self.process = None

    def _command(self) -> list[str | Path]:
        words: list[str | Path] = [schema_registry_program(), "-listen", f"{LOOPBACK}:{self.port}"]
        if self.authorization:
            words += ["-authorization", self.authorization]
        if self.certificate:
            words += ["-cert", self.certificate.certificate, "-key", self.certificate.key]
        if self.client_ca:
            words += ["-client-ca", self.client_ca]
        return words

    # -- schemas -----------------------------------------------------------------------------------------------------

    def register(
        self, subject: str, schema: object, *, language: str = "AVRO", references: Sequence[Reference] = ()
    ) -> int:
        """Registers a schema (a text, or what its JSON text contains); returns its id."""
        answer = self.request(
            "POST", f"/subjects/{quote(subject, safe='')}/versions", _body(schema, language, references)
        )
        return int(answer["id"])

    def seed(
        self,
        subject: str,
        version: int,
        schema_id: int,
        schema: object,
        *,
        language: str = "AVRO",
        references: Sequence[Reference] = (),
    ) -> None:
        """Registers a schema with this version and id."""
        body = {"subject": subject, "version": version, "id": schema_id, "schema": _body(schema, language, references)}
        self.request("POST", "/test/seed", body)

    def guid(self, subject: str, version: int) -> str:
        """The GUID of a schema."""
        return str(self.request("GET", f"/subjects/{quote(subject, safe='')}/versions/{version}")["guid"])

    def delete(self, subject: str) -> None:
        """Deletes the versions of a subject softly."""
        self.request("DELETE", f"/subjects/{quote(subject, safe='')}")

    def reset(self) -> None:
        """Deletes all schemas, as a registry that was re-created. Ids start at 1 again."""
        self.request("POST", "/test/reset")

    def answer(self, path: str, status: int, body: object = "", *, count: int = 1_000_000) -> None:
        """Answers the next `count` requests for `path` with this status and body, instead of the registry."""
        text = body if isinstance(body, str) else json.dumps(body)
        kind = "text/html" if isinstance(body, str) else "application/vnd.schemaregistry.v1+json"
        self._answers.append({"path": path, "count": count, "status": status, "contentType": kind, "body": text})
        self.request("PUT", "/test/answers", self._answers)

    def answer_normally(self) -> None:
        """Ends all `answer`."""
        self._answers.clear()
        self.request("PUT", "/test/answers", [])

    def request(self, method: str, path: str, body: object = None) -> Any:
        """The JSON answer to a request; None if it is empty. Raises `urllib.error.HTTPError`."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        if self.authorization:
            headers["Authorization"] = self.authorization
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=_REQUEST_SECONDS, context=self._tls()) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def _tls(self) -> ssl.SSLContext | None:
        return ssl.create_default_context(cafile=self.certificate.certificate) if self.certificate else None


def basic_authorization(user: str, password: str) -> str:
    """The Authorization header of a user."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@contextlib.contextmanager
def schema_registry(**options: Any) -> Iterator[SchemaRegistryServer]:
    """A running server with the options of `SchemaRegistryServer`; at the end it is killed."""
    with tempfile.TemporaryDirectory(prefix="s3sink-registry-", ignore_cleanup_errors=True) as name:
        server = SchemaRegistryServer(Path(name), **options)
        try:
            server.start()
            yield server
        finally:
            server.kill()


def _body(schema: object, language: str, references: Sequence[Reference]) -> Mapping[str, object]:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    body: dict[str, object] = {"schema": text}
    if language != "AVRO":
        body["schemaType"] = language
    if references:
        body["references"] = [dict(zip(("name", "subject", "version"), each, strict=True)) for each in references]
    return body
