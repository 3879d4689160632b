"""HTTP server of the driver: `/report`, `/metrics`, `/healthz`, `/readyz`.

With `?wait=SECONDS` a route that is not available yet (503) is repeated until it is, so a probe of a starting driver
does not fail.

It uses the standard library's server: responses are small and clients are few. It serves no secrets. On Kubernetes
all but `/healthz` and `/readyz` require a token, as `Authorization: Bearer TOKEN` or `?token=TOKEN`. Elsewhere there is
none, and the default address is on loopback.
"""

from __future__ import annotations

import hmac
import logging
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Final, NamedTuple, Self
from urllib.parse import parse_qs, parse_qsl

from sink_job.api.errors import ConfigurationError
from sink_job.api.report_access import LIMIT

_log = logging.getLogger(__name__)

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
MAX_WAIT_S = 60.0
"""Maximum time in s for which a request waits."""
_POLL_S = 0.2
OPEN: Final = ("/healthz", "/readyz")
"""The paths that require no token."""


class Answer(NamedTuple):
    """A response: HTTP status, content type and body. `may_change`: a later response may have another status."""

    status: int
    content_type: str
    body: bytes
    may_change: bool = False


Routes = Mapping[str, Callable[[], Answer]]
Parameters = Mapping[str, Callable[[str], object]]
"""Called with the values of query parameters by their names. Unknown parameters are ignored."""


class ReportServer:
    """Listens while the context is active. Each route is called in its own thread."""

    def __init__(
        self,
        host: str,
        port: int,
        routes: Routes,
        parameters: Parameters | None = None,
        *,
        token: str | None = None,
        limited: Mapping[str, Callable[[int], Answer]] | None = None,
    ) -> None:
        """`port` 0: any free port, see `address`. `token`: what all paths but OPEN require; None: nothing. `limited`:
        routes in place of those of `routes` for requests with `?limit=NUMBER`.

        Raises ConfigurationError if it cannot listen on the address.
        """

        class Handler(_Handler):
            answers = routes
            called_with = parameters or {}
            required = token
            limits = limited or {}

        try:
            self._server = _Server((host, port), Handler)
        except OSError as error:
            raise ConfigurationError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
        self._thread = threading.Thread(target=self._server.serve_forever, name="s3sink-http", daemon=True)

    @property
    def address(self) -> str:
        """The address of the server as `host:port`."""
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
    block_on_close = False  # a client that does not read must not block the end of the driver


class _Handler(BaseHTTPRequestHandler):
    answers: Routes
    required: str | None
    called_with: Parameters
    limits: Mapping[str, Callable[[int], Answer]]
    timeout = 10  # s without data until the connection is closed
    server_version = "s3sink"
    sys_version = ""

    def do_GET(self) -> None:
        self._serve()

    def do_HEAD(self) -> None:
        self._serve(body=False)

    def _serve(self, *, body: bool = True) -> None:
        path, _, query = self.path.partition("?")
        route = self._route(path, query)
        if route is not None and path not in OPEN and not self._is_authorized(query):
            answer = Answer(401, TEXT, b"the token of this driver is required; see docs/metrics.md\n")
        elif route is not None:
            if path not in OPEN:
                self._set_parameters(query)
            answer = _awaited(route, _wait_s(query))
        else:
            answer = Answer(404, TEXT, f"try {', '.join(self.answers)}\n".encode())
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if body:
            self.wfile.write(answer.body)

    def _route(self, path: str, query: str) -> Callable[[], Answer] | None:
        limits = [int(text) for text in parse_qs(query).get(LIMIT, ()) if text.isascii() and text.isdigit()]
        if limits and path in self.limits:
            return partial(self.limits[path], min(limits))
        return self.answers.get(path)

    def _is_authorized(self, query: str) -> bool:
        """Whether the request has the token."""
        if self.required is None:
            return True
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        given = [*parse_qs(query).get("token", ()), *([token.strip()] if scheme.lower() == "bearer" else ())]
        return any(hmac.compare_digest(each.encode(), self.required.encode()) for each in given)

    def _set_parameters(self, query: str) -> None:
        for name, value in parse_qsl(query):
            if name in self.called_with:
                self.called_with[name](value)

    def log_message(self, template: str, *args: object) -> None:
        _log.debug(template, *args)


def _wait_s(query: str) -> float:
    """The time in s for which a request waits, at most MAX_WAIT_S."""
    text = parse_qs(query).get("wait", ["0"])[0]
    return min(float(text), MAX_WAIT_S) if text.isascii() and text.isdigit() else 0.0


def _awaited(route: Callable[[], Answer], wait_s: float) -> Answer:
    """The answer of a route, as soon as it does not change any more or after `wait_s`."""
    end = time.monotonic() + wait_s
    while (answer := _called(route)).may_change and time.monotonic() < end:
        time.sleep(_POLL_S)
    return answer


def _called(route: Callable[[], Answer]) -> Answer:
    try:
        return route()
    except Exception:
        _log.exception("could not create a report")
        return Answer(500, TEXT, b"could not create the report; see the log\n")
