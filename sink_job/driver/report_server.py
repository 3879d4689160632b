"""Serves what the driver knows about itself: `/report`, `/metrics`, `/healthz`, `/readyz`.

A few small answers to a few clients: the standard library's server does. It knows no authentication, so it listens on
loopback unless told otherwise; nothing it serves is a secret.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import NamedTuple, Self

from sink_job.api.errors import ConfigurationError

_log = logging.getLogger(__name__)

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"


class Answer(NamedTuple):
    """What is sent: HTTP status, type and body."""

    status: int
    content_type: str
    body: bytes


Routes = Mapping[str, Callable[[], Answer]]


class ReportServer:
    """Listens while it is entered. `routes` are called in threads of their own."""

    def __init__(self, host: str, port: int, routes: Routes) -> None:
        """`port` 0: any that is free, see `address`. Raises ConfigurationError when the address cannot be had."""

        class Handler(_Handler):
            answers = routes

        try:
            self._server = _Server((host, port), Handler)
        except OSError as error:
            raise ConfigurationError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
        self._thread = threading.Thread(target=self._server.serve_forever, name="s3sink-http", daemon=True)

    @property
    def address(self) -> str:
        """`host:port` that it listens on."""
        host, port = self._server.server_address[:2]
        return f"{host if isinstance(host, str) else host.decode()}:{port}"

    def __enter__(self) -> Self:
        self._thread.start()
        _log.info("serving /report, /metrics, /healthz and /readyz on http://%s", self.address)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a client that does not read must not hold up the end


class _Handler(BaseHTTPRequestHandler):
    answers: Routes
    timeout = 10  # s without a byte; then the client has gone
    server_version = "s3sink"
    sys_version = ""

    def do_GET(self) -> None:
        self._serve()

    def do_HEAD(self) -> None:
        self._serve(body=False)

    def _serve(self, *, body: bool = True) -> None:
        route = self.answers.get(self.path.partition("?")[0])
        answer = _called(route) if route else Answer(404, TEXT, f"try {', '.join(self.answers)}\n".encode())
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if body:
            self.wfile.write(answer.body)

    def log_message(self, template: str, *args: object) -> None:
        _log.debug(template, *args)


def _called(route: Callable[[], Answer]) -> Answer:
    try:
        return route()
    except Exception:
        _log.exception("a report could not be made")
        return Answer(500, TEXT, b"the report could not be made; the log says why\n")
