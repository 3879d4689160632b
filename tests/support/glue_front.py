"""A server in front of moto that checks the `VersionId` of UpdateTable, as AWS Glue does and moto does not. It can lose
replies, hold requests back and deliver them later, and deny."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import urlsplit

from devtools.processes import LOOPBACK

COMMITS: Final = ("CreateTable", "UpdateTable")
Answer = tuple[int, bytes]


@dataclass
class GlueFront:
    """`target`: URL of moto. `loses`: the number of commits whose reply is lost from now on. `holds`: commits are kept
    in `held`, and their replies are lost. `denied`: operations with the error code of their answer. `requests`: the
    operations."""

    target: str
    url: str = ""
    loses: int = 0
    holds: bool = False
    held: list[Callable[[], Answer]] = field(default_factory=list)
    denied: dict[str, str] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, headers: Mapping[str, str], body: bytes) -> Answer | None:
        """None: the reply is lost."""
        operation = headers["X-Amz-Target"].rpartition(".")[2]
        self.requests.append(operation)
        if operation in self.denied:
            return _error(self.denied[operation], "denied by the front")
        if operation not in COMMITS:
            return self._sent(headers, body)
        if self.holds:
            self.held.append(lambda: self._commit(headers, operation, body))
            return None
        found = self._commit(headers, operation, body)
        if self.loses:
            self.loses -= 1
            return None
        return found

    def _commit(self, headers: Mapping[str, str], operation: str, body: bytes) -> Answer:
        with self._lock:
            given = json.loads(body)
            if operation == "UpdateTable" and given["VersionId"] != self._version(headers, given):
                return _error("ConcurrentModificationException", "Update table failed due to concurrent modifications.")
            return self._sent(headers, body)

    def _version(self, headers: Mapping[str, str], given: Mapping[str, Any]) -> str | None:
        query = {"DatabaseName": given["DatabaseName"], "Name": given["TableInput"]["Name"]}
        _, found = self._sent({**headers, "X-Amz-Target": "AWSGlue.GetTable"}, json.dumps(query).encode())
        version: str | None = json.loads(found).get("Table", {}).get("VersionId")
        return version

    def _sent(self, headers: Mapping[str, str], body: bytes) -> Answer:
        connection = http.client.HTTPConnection(urlsplit(self.target).netloc)
        names = ("Content-Type", "X-Amz-Target", "Authorization", "X-Amz-Date")
        try:
            connection.request("POST", "/", body, {name: headers[name] for name in names if name in headers})
            found = connection.getresponse()
            return found.status, found.read()
        finally:
            connection.close()


def _error(code: str, message: str) -> Answer:
    return 400, json.dumps({"__type": code, "Message": message, "message": message}).encode()


def _handler(front: GlueFront) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            found = front.answer(dict(self.headers.items()), body)
            if found is None:
                self.close_connection = True
                return
            status, answer = found
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@contextmanager
def glue_front(target: str) -> Iterator[GlueFront]:
    """A running server."""
    front = GlueFront(target)
    server = ThreadingHTTPServer((LOOPBACK, 0), _handler(front))
    server.daemon_threads = True
    front.url = f"http://{LOOPBACK}:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield front
    finally:
        server.shutdown()
        server.server_close()
