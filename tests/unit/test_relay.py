"""The fault proxy between a client that dies and a server that waits."""

from __future__ import annotations

import gc
import socket
import time
from collections.abc import Iterator

import pytest

from devtools.faults.s3_proxy import FaultProxy

_HEAD = b"PUT /bucket/key HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"
_SECONDS = 10.0
_NOTICED_S = 0.2  # until the proxy has read the end of the client's connection


@pytest.fixture
def upstream() -> Iterator[socket.socket]:
    """A server that the test plays."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(_SECONDS)
        yield listening


def received(connection: socket.socket) -> bytes:
    """All bytes up to the end of the connection."""
    connection.settimeout(_SECONDS)
    found = b""
    while chunk := connection.recv(1 << 16):
        found += chunk
    return found


def test_a_client_that_dies_within_a_body_ends_its_request_at_the_server(
    upstream: socket.socket, caplog: pytest.LogCaptureFixture
) -> None:
    host, port = upstream.getsockname()
    with FaultProxy(f"http://{host}:{port}") as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port)) as client:
            client.sendall(_HEAD + b"some")
            server, _ = upstream.accept()
        with server:
            assert received(server).endswith(b"\r\n\r\nsome")
    gc.collect()
    assert [record.message for record in caplog.records] == []


def test_an_exchange_whose_client_has_closed_survives_a_garbage_collection(
    upstream: socket.socket, caplog: pytest.LogCaptureFixture
) -> None:
    host, port = upstream.getsockname()
    with FaultProxy(f"http://{host}:{port}") as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port)) as client:
            client.sendall(_HEAD + bytes(1000))
            server, _ = upstream.accept()
        with server:
            server.settimeout(_SECONDS)
            while not server.recv(1 << 16).endswith(bytes(10)):
                pass
            time.sleep(_NOTICED_S)
            gc.collect()
            server.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            proxy.wait_for(lambda: len(proxy.answered) == 1, "the answer", _SECONDS)
    gc.collect()
    assert [record.message for record in caplog.records] == []
