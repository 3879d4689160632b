"""Answers of a registry that are slow, large or compressed, through the clients of both APIs."""

from __future__ import annotations

import gzip
import json
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from sink_job.api.errors import TransientError
from sink_job.registry.clients import answer_limits
from tests.support.registry import apicurio_client, registry_client

SCHEMA = json.dumps({"schema": '"int"'}).encode()
Fetch = Callable[[], Any]


@contextmanager
def server(chunks: Iterable[bytes], encoding: str = "") -> Iterator[str]:
    """The URL of a server that answers each request with `chunks`, and then waits."""
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            if encoding:
                self.send_header("Content-Encoding", encoding)
            self.end_headers()
            try:
                for chunk in chunks:
                    self.wfile.write(chunk)
                    if not chunk:
                        ended.wait(0.01)
                        self.wfile.write(b" ")
            except OSError:  # the client has closed the connection
                pass

        def log_message(self, *_: object) -> None:
            pass

    found = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=found.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{found.server_port}"
    finally:
        ended.set()
        found.shutdown()
        thread.join()
        found.server_close()


@contextmanager
def confluent(url: str, timeout_s: float = 0.5) -> Iterator[Fetch]:
    with registry_client(urls=(url,), timeout_s=timeout_s, subjects="RecordName") as client:
        yield lambda: client.fetch("t", "1")


@contextmanager
def apicurio(url: str) -> Iterator[Fetch]:
    with apicurio_client(f"{url}/apis/registry/v3", timeout_s=0.5) as client:
        yield lambda: client.fetch("t", "1")


@pytest.mark.parametrize("api", [confluent, apicurio])
def test_an_answer_that_never_ends_is_a_transient_error(api: Any) -> None:
    with (
        server(b"" for _ in iter(int, 1)) as url,
        api(url) as fetch,
        pytest.raises(TransientError, match="the answer takes longer than 2 s"),
    ):
        fetch()


@pytest.mark.parametrize("api", [confluent, apicurio])
def test_a_compressed_answer_is_limited_by_its_decompressed_size(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_limits, "MAX_SIZE", 1_000_000)
    with (
        server([gzip.compress(b" " * 2_000_000)], "gzip") as url,
        api(url) as fetch,
        pytest.raises(TransientError, match="the answer is larger than 1,000,000 bytes"),
    ):
        fetch()


@pytest.mark.parametrize(
    ("data", "encoding"),
    [(gzip.compress(SCHEMA), "gzip"), (zlib.compress(SCHEMA), "deflate"), (SCHEMA, "identity")],
    ids=["gzip", "deflate", "identity"],
)
def test_a_compressed_answer_is_read(data: bytes, encoding: str) -> None:
    with server([data], encoding) as url, confluent(url, timeout_s=30) as fetch:
        assert fetch().text == '"int"'


@pytest.mark.parametrize(
    ("data", "encoding", "reason"),
    [
        (SCHEMA, "gzip", "the answer cannot be decompressed"),
        (gzip.compress(SCHEMA)[:-9], "gzip", "the compressed answer ends too early"),
        (SCHEMA, "br", "the answer has the encoding 'br', which was not requested"),
    ],
    ids=["no gzip", "truncated", "another encoding"],
)
def test_a_damaged_answer_is_a_transient_error(data: bytes, encoding: str, reason: str) -> None:
    with (
        server([data], encoding) as url,
        confluent(url, timeout_s=30) as fetch,
        pytest.raises(TransientError, match=reason),
    ):
        fetch()
