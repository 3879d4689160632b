"""AWS STS on loopback, as far as a role is assumed: it returns one set of keys and records the requests."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

from devtools.processes import LOOPBACK

ROLE_KEY, ROLE_SECRET, ROLE_TOKEN = "ASIAROLEOFTHETESTS00", "secret+of/the=role", "token-of-the-role=="
_ANSWER = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
<AssumedRoleUser><Arn>{arn}</Arn><AssumedRoleId>A:s</AssumedRoleId></AssumedRoleUser>
<Credentials><AccessKeyId>{key}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey>
<SessionToken>{token}</SessionToken><Expiration>{end}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"""


@dataclass
class StsServer:
    """`url`: endpoint. `requests`: the fields of each request."""

    url: str = ""
    requests: list[dict[str, str]] = field(default_factory=list)

    def answer(self, body: str) -> str:
        """The answer to a request."""
        asked = {name: values[0] for name, values in parse_qs(body).items()}
        self.requests.append(asked)
        end = f"{datetime.now(UTC) + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"
        return _ANSWER.format(arn=asked["RoleArn"], key=ROLE_KEY, secret=ROLE_SECRET, token=ROLE_TOKEN, end=end)


@contextmanager
def sts_server() -> Iterator[StsServer]:
    """The running server."""
    server = StsServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = server.answer(self.rfile.read(int(self.headers["Content-Length"])).decode()).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """No log."""

    listening = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    server.url = f"http://{LOOPBACK}:{listening.server_address[1]}"
    try:
        yield server
    finally:
        listening.shutdown()
        listening.server_close()
