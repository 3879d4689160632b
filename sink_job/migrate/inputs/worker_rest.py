"""Reads connectors from a running worker of Kafka Connect, over its REST API."""

from __future__ import annotations

import base64
import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from sink_job.api.errors import (
    ConfigurationError,
    InvalidConnector,
    InvalidCredentials,
    SinkError,
    TransientError,
)
from sink_job.api.field_errors import in_a_line
from sink_job.migrate.findings import Configuration
from sink_job.migrate.inputs.documents import MAX_LENGTH, of_json, read_json
from sink_job.migrate.inputs.other_sinks import other_class

TIMEOUT_S: Final = 20.0
"""Maximum time for one request, in s."""
_MAX_OFFSETS: Final = 20
_STATES: Final = {"PAUSED": "Paused", "STOPPED": "Stopped"}


class WorkerUrl:
    """The address of a worker, and the path of one connector or of all."""

    def __init__(self, url: str) -> None:
        """Raises InvalidConnector for a text that is not a URL of a worker."""
        try:
            parts = urlsplit(url)
            self.host, port = parts.hostname or "", parts.port
        except ValueError:
            raise InvalidConnector("the URL of the worker is not valid: use http://HOST:8083/connectors/NAME") from None
        if not self.host or any(each.isspace() or not each.isprintable() for each in url):
            raise InvalidConnector("the URL of the worker is not valid: use http://HOST:8083/connectors/NAME")
        self.is_https = parts.scheme == "https"
        self.port = port or (443 if self.is_https else 80)
        base, found, rest = parts.path.partition("/connectors")
        self.base = base.rstrip("/")
        self.connector = unquote(rest.strip("/").split("/")[0]) if found else ""
        login = parts.netloc.rpartition("@")[0]
        self.login = ":".join(unquote(each) for each in login.split(":", 1)) if login else ""

    @property
    def shown(self) -> str:
        """Scheme, host and port, without the login."""
        return f"{'https' if self.is_https else 'http'}://{self.host}:{self.port}"


def read_running(url: str, timeout_s: float = TIMEOUT_S) -> list[Configuration]:
    """The connector of a URL `…/connectors/NAME`, or all S3 sinks of `…/connectors`.

    Raises InvalidConnector, ConfigurationError and TransientError.
    """
    worker = WorkerRest(WorkerUrl(url), timeout_s)
    at = worker.url
    if at.connector:
        return [worker.connector(at.connector)]
    found = list(worker.all_sinks())
    if not found:
        raise InvalidConnector(f"{at.shown} runs no connector of the class S3SinkConnector")
    return found


class WorkerRest:
    """Requests to one worker. Redirects are not followed, since they would take the login to another host."""

    def __init__(self, url: WorkerUrl, timeout_s: float) -> None:
        self.url = url
        self._timeout_s = timeout_s

    def connector(self, name: str) -> Configuration:
        """One connector with its state and its offsets."""
        path = f"/connectors/{quote(name, safe='')}"
        (found,) = of_json(self.get(path))
        return self._with_state(found, self._optional(f"{path}/status"), self._optional(f"{path}/offsets"))

    def all_sinks(self) -> Iterator[Configuration]:
        """All S3 sinks with their states."""
        document = self.get("/connectors?expand=info&expand=status")
        if not isinstance(document, dict):
            raise InvalidConnector(f"{self.url.shown} does not answer with connectors: give the URL of one")
        for each in document.values():
            if not isinstance(each, dict) or not isinstance(each.get("info"), dict):
                continue
            (found,) = of_json(each["info"])
            if other_class(found.settings.get("connector.class", "").strip()) is None:
                name = quote(found.name or "", safe="")
                yield self._with_state(found, each.get("status"), self._optional(f"/connectors/{name}/offsets"))

    def _with_state(self, found: Configuration, status: Any, offsets: Any) -> Configuration:
        connector, tasks = _part(status, "connector", {}), _part(status, "tasks", [])
        state = str(connector.get("state", "")) if isinstance(connector, dict) else ""
        remarks = [
            f"Task {in_a_line(str(task.get('id')))} of the connector is {in_a_line(str(task.get('state')))}."
            for task in tasks
            if isinstance(task, dict) and task.get("state") not in ("RUNNING", "PAUSED", "UNASSIGNED")
        ]
        remarks += _offset_remarks(_part(offsets, "offsets", []))
        return Configuration(
            found.settings, found.name, found.namespace, _STATES.get(state, "Running"), remarks=tuple(remarks)
        )

    def _optional(self, path: str) -> Any:
        """The answer to a request that older workers do not know; None without one."""
        try:
            return self.get(path)
        except (ConfigurationError, InvalidConnector):
            return None

    def get(self, path: str) -> Any:
        response, content = self._request("GET", path)
        return self._document(response, content)

    def put(self, path: str) -> bool:
        """Sends a request without content; False if the worker does not know the path."""
        response, content = self._request("PUT", path)
        if response.status in (404, 405):
            return False
        if response.status not in (202, 204):
            self._document(response, content)
        return True

    def _request(self, method: str, path: str) -> tuple[HTTPResponse, bytes]:
        deadline, at = time.monotonic() + self._timeout_s, self.url
        kind = HTTPSConnection if at.is_https else HTTPConnection
        connection = kind(at.host, at.port, timeout=self._timeout_s)
        alarm = threading.Timer(self._timeout_s, _abort, [connection])  # a socket's timeout begins again at each byte
        alarm.daemon = True
        alarm.start()
        try:
            headers = {"Accept": "application/json"}
            if at.login:
                headers["Authorization"] = f"Basic {base64.b64encode(at.login.encode()).decode()}"
            connection.request(method, at.base + path, headers=headers)
            response = connection.getresponse()
            content = self._content(response)
            if time.monotonic() >= deadline:  # the alarm has cut the answer
                raise TimeoutError
        except (OSError, HTTPException) as error:
            raise self._failure(error, is_late=time.monotonic() >= deadline) from None
        finally:
            alarm.cancel()
            connection.close()
        return response, content

    def _failure(self, error: Exception, *, is_late: bool) -> SinkError:
        """The error of a request without an answer."""
        where = self.url.shown
        if isinstance(error, TimeoutError) or is_late:
            return TransientError(f"{where} did not answer within {self._timeout_s:g} s: try again")
        if isinstance(error, ssl.SSLCertVerificationError):
            reason = f"the certificate of {where} is not trusted ({error.verify_message})"
            return ConfigurationError(f"{reason}: set SSL_CERT_FILE to its CA")
        if isinstance(error, ssl.SSLError):
            return ConfigurationError(f"{where} does not speak TLS as expected: check http and https")
        reason = getattr(error, "strerror", None) or type(error).__name__
        return TransientError(f"{where} cannot be reached: {reason}")

    def _content(self, response: HTTPResponse) -> bytes:
        content = response.read(MAX_LENGTH + 1)
        if len(content) > MAX_LENGTH:
            raise InvalidConnector(f"the answer of {self.url.shown} is larger than {MAX_LENGTH >> 20} MiB")
        return content

    def _document(self, response: HTTPResponse, content: bytes) -> Any:
        status, where = response.status, self.url.shown
        if status in (401, 403):
            action = "give user and password as in https://USER:PASSWORD@HOST/connectors/NAME"
            raise InvalidCredentials(f"{where} answered {status}: {action}")
        if status == 404:
            if self.url.connector:
                raise InvalidConnector(f"{where} answered 404: it has no connector {in_a_line(self.url.connector)}")
            raise ConfigurationError(f"{where} answered 404: check the URL")
        if 300 <= status < 400:
            target = urlsplit(response.getheader("Location") or "").hostname or "another place"
            raise ConfigurationError(f"{where} redirects to {in_a_line(target)}: give the URL of the worker itself")
        if status == 409 or status == 429 or status >= 500:
            raise TransientError(f"{where} answered {status}: try again")
        if status != 200:
            raise ConfigurationError(f"{where} answered {status}: check the URL")
        try:
            return read_json(content.decode("utf-8"))
        except (InvalidConnector, UnicodeDecodeError, RecursionError):
            kind = in_a_line((response.getheader("Content-Type") or "").split(";")[0] or "no content type")
            message = f"{where} answered with {kind}, not with JSON: is it a worker of Kafka Connect?"
            raise InvalidConnector(message) from None


def stop_connector(url: str, timeout_s: float = TIMEOUT_S) -> str:
    """Stops the connector of a URL `…/connectors/NAME`; returns what was done, as a sentence. A worker before Kafka 3.5
    cannot stop a connector: it is paused, and stays a member of its group.

    Raises the errors of `read_running`.
    """
    at = connector_url(url)
    worker, path = WorkerRest(at, timeout_s), f"/connectors/{quote(at.connector, safe='')}"
    worker.get(path)
    name = in_a_line(at.connector)
    if worker.put(f"{path}/stop"):
        return f"the connector {name} was stopped at {at.shown}"
    if worker.put(f"{path}/pause"):
        return (
            f"the connector {name} was paused: {at.shown} is older than Kafka 3.5 and cannot stop it. A paused "
            f"connector stays a member of its group. Delete it, after keeping its configuration: {delete_command(at)}"
        )
    raise ConfigurationError(f"{at.shown} can neither stop nor pause the connector {name}: stop it there")


def connector_url(url: str) -> WorkerUrl:
    """The address of one connector. Raises InvalidConnector."""
    at = WorkerUrl(url) if url.startswith(("http://", "https://")) else None
    if at is None or not at.connector:
        raise InvalidConnector("the URL names no connector: use http://HOST:8083/connectors/NAME")
    return at


def stop_command(at: WorkerUrl) -> str:
    """The command that stops a connector, without the login."""
    return f"curl -X PUT '{_shown_connector(at)}/stop'"


def delete_command(at: WorkerUrl) -> str:
    """The command that deletes a connector, without the login."""
    return f"curl -X DELETE '{_shown_connector(at)}'"


def _shown_connector(at: WorkerUrl) -> str:
    return f"{at.shown}{at.base}/connectors/{quote(at.connector, safe='')}"


def _abort(connection: HTTPConnection) -> None:
    """Ends the connection of a request that takes too long."""
    if connection.sock is not None:
        with contextlib.suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)


def _part(document: Any, name: str, default: Any) -> Any:
    found = document.get(name) if isinstance(document, dict) else None
    return found if isinstance(found, type(default)) else default


def _offset_remarks(offsets: list[Any]) -> Iterator[str]:
    """The offsets of the connector, as one sentence."""
    shown = []
    for each in offsets:
        partition, offset = _part(each, "partition", {}), _part(each, "offset", {})
        if "kafka_topic" in partition and "kafka_offset" in offset:
            name = f"{partition['kafka_topic']}-{partition.get('kafka_partition')}"
            shown.append(f"{in_a_line(name)}: {in_a_line(str(offset['kafka_offset']))}")
    if shown:
        more = f", and {len(shown) - _MAX_OFFSETS} more" if len(shown) > _MAX_OFFSETS else ""
        yield f"Offsets of the connector when this was written: {', '.join(shown[:_MAX_OFFSETS])}{more}."


def check_worker(url: str, timeout_s: float = TIMEOUT_S) -> str:
    """A sentence about a running worker: its version and its cluster. It does not publish its settings.

    Raises the errors of `read_running`.
    """
    at = WorkerUrl(url)
    document = WorkerRest(at, timeout_s).get("/")
    version = in_a_line(str(_part(document, "version", "") or "unknown version"))
    cluster = in_a_line(str(_part(document, "kafka_cluster_id", "") or "unknown"))
    return f"The worker {at.shown} has version {version} of Kafka Connect; its Kafka cluster is {cluster}."
