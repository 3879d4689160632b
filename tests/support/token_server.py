"""An OAuth token endpoint with TLS, and the keys of its tokens (JWKS) without it, on loopback."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from devtools.certificates import Certificate
from devtools.processes import LOOPBACK

CLIENT, CLIENT_SECRET, AUDIENCE, SCOPE = "flights", 'hush"hush\\21', "kafka", "copy"


@dataclass
class TokenServer:
    """`url`: token endpoint; `keys_url`: keys for the broker. `lifetime_s`: of the tokens from now on. `requests`: the
    accepted requests, with the fields of each. `tokens`: those that were issued; `last_issued`: when."""

    url: str = ""
    keys_url: str = ""
    lifetime_s: float = 300
    requests: list[dict[str, str]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    last_issued: float = 0
    _key: rsa.RSAPrivateKey = field(default_factory=lambda: rsa.generate_private_key(65537, 2048))

    def answer(self, authorization: str, body: str) -> tuple[int, Mapping[str, Any]]:
        """The answer of the token endpoint to a request."""
        expected = base64.b64encode(f"{CLIENT}:{CLIENT_SECRET}".encode()).decode()
        if authorization != f"Basic {expected}":
            return 401, {"error": "invalid_client", "error_description": f"unknown: {authorization}"}
        self.requests.append({name: values[0] for name, values in parse_qs(body).items()})
        self.tokens.append(self._token())
        self.last_issued = time.time()
        return 200, {"access_token": self.tokens[-1], "token_type": "Bearer", "expires_in": self.lifetime_s}

    def renewed_since(self, seconds: float) -> bool:
        """Whether a token was issued after that time."""
        return self.last_issued > seconds

    def keys(self) -> Mapping[str, Any]:
        """The public key as JWKS."""
        numbers = self._key.public_key().public_numbers()
        modulus, exponent = (_base64(n.to_bytes((n.bit_length() + 7) // 8, "big")) for n in (numbers.n, numbers.e))
        return {"keys": [{"kty": "RSA", "kid": "1", "alg": "RS256", "use": "sig", "n": modulus, "e": exponent}]}

    def _token(self) -> str:
        now = time.time()
        claims = {"sub": CLIENT, "aud": AUDIENCE, "scope": SCOPE, "iat": now, "exp": now + self.lifetime_s}
        parts = ({"alg": "RS256", "kid": "1", "typ": "JWT"}, claims)
        signed = ".".join(_base64(json.dumps(part).encode()) for part in parts)
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_base64(signature)}"


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@contextmanager
def token_server(certificate: Certificate) -> Iterator[TokenServer]:
    """The running servers."""
    server = TokenServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._send(*server.answer(self.headers.get("Authorization", ""), body))

        def do_GET(self) -> None:
            self._send(200, server.keys())

        def _send(self, status: int, document: Mapping[str, Any]) -> None:
            text = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """No log."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.certificate, certificate.key)
    with ExitStack() as stack:
        tokens, keys = (stack.enter_context(_listening(Handler, tls)) for tls in (context, None))
        server.url = f"https://{LOOPBACK}:{tokens}/token"
        server.keys_url = f"http://{LOOPBACK}:{keys}/keys"
        yield server


@contextmanager
def _listening(handler: type[BaseHTTPRequestHandler], context: ssl.SSLContext | None) -> Iterator[int]:
    server = ThreadingHTTPServer((LOOPBACK, 0), handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
