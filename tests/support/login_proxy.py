"""An HTTP proxy that demands a login: tunnels (CONNECT) and plain requests, with or without TLS to the client."""

from __future__ import annotations

import base64
import http.client
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from devtools.certificates import Certificate

USER, PASSWORD = "s3sink", "p@ss:word/ %41"
_IDLE_S = 30


class LoginProxy:
    """`hosts`: what was asked for, each as `METHOD host:port`. `rejected`: the number of requests without the login.
    `forbids`: whether it rejects all tunnels with 403."""

    def __init__(self, certificate: Certificate | None = None) -> None:
        self.hosts: list[str] = []
        self.rejected = 0
        self.forbids = False
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._scheme = "http"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate.certificate, certificate.key)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
            self._scheme = "https"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def login_proxy(certificate: Certificate | None = None) -> Iterator[LoginProxy]:
    proxy = LoginProxy(certificate)
    try:
        yield proxy
    finally:
        proxy.stop()


def login_secret(folder: Path, *, password: str = PASSWORD) -> Path:
    """The login as a mounted Secret."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "username").write_text(USER)
    (folder / "password").write_text(password)
    return folder


def _handler(proxy: LoginProxy) -> type[BaseHTTPRequestHandler]:
    expected = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_CONNECT(self) -> None:
            if not self.accepted(self.path):
                return
            host, _, port = self.path.rpartition(":")
            with socket.create_connection((host, int(port)), timeout=_IDLE_S) as server:
                self.send_response(200, "Connection established")
                self.end_headers()
                _tunnel(self.connection, server)
            self.close_connection = True

        def plain(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            url = urlsplit(self.path)
            if not self.accepted(url.netloc):
                return
            names = ("proxy-authorization", "proxy-connection", "connection")
            headers = {name: value for name, value in self.headers.items() if name.lower() not in names}
            upstream = http.client.HTTPConnection(url.netloc, timeout=_IDLE_S)
            upstream.request(self.command, url.path + (f"?{url.query}" if url.query else ""), body, headers)
            answer = upstream.getresponse()
            content = answer.read()
            upstream.close()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = plain  # noqa: N815

        def accepted(self, host: str) -> bool:
            proxy.hosts.append(f"{self.command} {host}")
            if proxy.forbids:
                self.answer(403)
                return False
            if self.headers.get("Proxy-Authorization") == expected:
                return True
            proxy.rejected += 1
            self.answer(407)
            return False

        def answer(self, status: int) -> None:
            self.send_response(status)
            if status == 407:
                self.send_header("Proxy-Authenticate", 'Basic realm="proxy"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def _tunnel(client: socket.socket, server: socket.socket) -> None:
    """Copies bytes in both directions until one side closes."""
    ends = {client.fileno(): (client, server), server.fileno(): (server, client)}
    poll = select.poll()  # select() takes no descriptor above 1,023, and a worker may have more
    for number in ends:
        poll.register(number, select.POLLIN)
    while True:
        pending = isinstance(client, ssl.SSLSocket) and client.pending() > 0
        ready = [client.fileno()] if pending else [number for number, _ in poll.poll(_IDLE_S * 1000)]
        if not ready:
            return
        for source, target in map(ends.__getitem__, ready):
            try:
                data = source.recv(1 << 16)
            except OSError:
                return
            if not data:
                return
            target.sendall(data)
