"""A server in front of a REST catalog that demands a login: a bearer token, user and password, or OAuth. It can lose
replies. Without a catalog behind it, it has no tables."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

from devtools.certificates import Certificate
from devtools.processes import LOOPBACK

USER, PASSWORD, TOKEN = "flights", "hush of the catalog", "token-of-the-catalog"
CLIENT, CLIENT_SECRET = "client", "secret-of-the-client"
BASIC: Final = b64encode(f"{USER}:{PASSWORD}".encode()).decode()


@dataclass
class CatalogFront:
    """`target`: URL of the catalog. `accepted`: values of the header Authorization that it accepts. `forms`: the
    requests for tokens. `loses`: the number of commits whose reply is lost from now on. `requests`: as `METHOD path`,
    `commits`: the contents of commits.
    `fixed`: the answer to each request, as of another service.
    `lifetime_s`: of tokens, `rejects`: the status of the token endpoint, 0: it issues tokens."""

    target: str | None = None
    url: str = ""
    accepted: set[str] = field(default_factory=lambda: {f"Bearer {TOKEN}", f"Basic {BASIC}"})
    forms: list[Mapping[str, str]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    commits: list[bytes] = field(default_factory=list)
    loses: int = 0
    lifetime_s: int = 3600
    rejects: int = 0
    defaults: dict[str, object] = field(default_factory=dict)
    overrides: dict[str, object] = field(default_factory=dict)
    fixed: tuple[int, bytes] | None = None

    def token(self, body: bytes) -> tuple[int, bytes]:
        """The answer of the token endpoint."""
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        self.forms.append(form)
        if self.rejects or form.get("client_secret") != CLIENT_SECRET:
            return self.rejects or 401, json.dumps({"error": "invalid_client", "about": form}).encode()
        issued = f"issued-token-{len(self.forms)}"
        self.accepted.add(f"Bearer {issued}")
        return 200, json.dumps({"access_token": issued, "expires_in": self.lifetime_s}).encode()

    def answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        """The answer of the catalog."""
        if self.fixed is not None:
            return self.fixed
        given = headers.get("Authorization", "")
        if given not in self.accepted:
            error = {"message": f"not accepted: {given}", "type": "NotAuthorizedException", "code": 401}
            return 401, json.dumps({"error": error}).encode()
        if self.target is None:
            if path.startswith("/v1/config"):
                return 200, json.dumps({"defaults": self.defaults, "overrides": self.overrides}).encode()
            error = {"message": "no table", "type": "NoSuchTableException", "code": 404}
            return 404, json.dumps({"error": error}).encode()
        connection = http.client.HTTPConnection(urlsplit(self.target).netloc)
        try:
            kept = {"Content-Type": headers.get("Content-Type", "application/json")}
            connection.request(method, path, body or None, kept)
            found = connection.getresponse()
            return found.status, found.read()
        finally:
            connection.close()


def _handler(front: CatalogFront) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            front.requests.append(f"{self.command} {self.path}")
            if self.path == "/v1/oauth/tokens":
                status, answer = front.token(body)
            else:
                status, answer = front.answer(self.command, self.path, dict(self.headers.items()), body)
            is_commit = self.command == "POST" and "/tables/" in self.path
            front.commits += [body] if is_commit else []
            if is_commit and front.loses:
                front.loses -= 1
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer)

        do_GET = do_POST = do_HEAD = do_DELETE = _respond  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@contextmanager
def catalog_front(certificate: Certificate | None = None, target: str | None = None) -> Iterator[CatalogFront]:
    """A running server, with TLS if there is a certificate."""
    front = CatalogFront(target)
    server = ThreadingHTTPServer((LOOPBACK, 0), _handler(front))
    server.daemon_threads = True
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.certificate, certificate.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    front.url = f"{'http' if certificate is None else 'https'}://{LOOPBACK}:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield front
    finally:
        server.shutdown()
        server.server_close()


def login_folder(folder: Path, **keys: str) -> Path:
    """A directory in the layout of a mounted Secret."""
    folder.mkdir(exist_ok=True)
    for name, value in keys.items():
        (folder / name).write_text(value)
    return folder
