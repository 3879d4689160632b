"""A front of moto that hands out sessions of a role for a few seconds, and accepts no request with an ended one."""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

from devtools.s3 import S3Server

_SKIPPED = ("connection", "transfer-encoding", "server", "date")


class ShortSessions:
    """`seconds`: the lifetime of a session. `requests`: the parameters of each request to STS. `rejected`: the number
    of requests with keys that are of no session, or of an ended one."""

    def __init__(self, server: S3Server, seconds: float) -> None:
        self.seconds = seconds
        self.requests: list[dict[str, str]] = []
        self.rejected = 0
        self.used: set[str] = set()
        self.ends: dict[str, float] = {}
        self._port = server.port
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def all_have_ended(self) -> bool:
        return time.monotonic() > max(self.ends.values())

    def rejection(self, authorization: str, body: bytes) -> tuple[int, bytes] | None:
        """The answer to a request that is not passed on."""
        if b"Action=AssumeRole" in body:
            self.requests.append({name: values[0] for name, values in parse_qs(body.decode()).items()})
            return None
        key = authorization.partition("Credential=")[2].partition("/")[0]
        self.used.add(key)
        if time.monotonic() < self.ends.get(key, 0.0):
            return None
        self.rejected += 1
        code = "ExpiredToken" if key in self.ends else "InvalidAccessKeyId"
        return 400 if key in self.ends else 403, f"<Error><Code>{code}</Code></Error>".encode()

    def passed_on(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, dict[str, str], bytes]:
        """moto's answer. That of STS ends earlier, as its `Expiration` says."""
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _SKIPPED}
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            connection.request(request.command, request.path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if b"<AssumeRoleResult>" in content:
            (key,) = re.findall(rb"<AccessKeyId>(\w+)</AccessKeyId>", content)
            self.ends[key.decode()] = time.monotonic() + self.seconds
            end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + self.seconds)).encode()
            content = re.sub(rb"<Expiration>[^<]*<", b"<Expiration>" + end + b"<", content)
        return answer.status, dict(answer.getheaders()), content


@contextmanager
def short_sessions(server: S3Server, *, seconds: float) -> Iterator[ShortSessions]:
    front = ShortSessions(server, seconds)
    try:
        yield front
    finally:
        front.stop()


def _handler(front: ShortSessions) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            rejection = front.rejection(self.headers.get("Authorization", ""), body)
            if rejection is not None:
                status, content = rejection
                headers = {"Content-Type": "application/xml"}
            else:
                status, headers, content = front.passed_on(self, body)
            self.send_response(status)
            length = headers.get("content-length", headers.get("Content-Length", "0"))
            for name, value in headers.items():
                if name.lower() not in (*_SKIPPED, "content-length"):
                    self.send_header(name, value)
            self.send_header("Content-Length", length if self.command == "HEAD" else str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    return Handler
