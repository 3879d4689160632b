"""Connections to a metastore: limits of time and size, and what errors mean."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hive_metastore.ttypes import MetaException
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TTransportException

from devtools.certificates import self_signed
from sink_job.api.errors import ConfigurationError, SecretNotFound, TransientError
from sink_job.tables.catalog import metastore
from sink_job.tables.catalog.access import CatalogAccess
from sink_job.tables.catalog.metastore import Metastore, metastore_error

NAMES_BEFORE = b"\x80\x01\x00\x02\x00\x00\x00\x11get_all_databases\x00\x00\x00\x00\x0f\x00\x00\x0b\x00\x06\x1a\x80"
"""The beginning of the reply of get_all_databases: 400,000 names."""


@contextmanager
def server(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """The URI of a server that answers one request with this."""

    def run() -> None:
        with suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                answer(connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=run)
        thread.start()
        yield f"thrift://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def databases(uri: str, timeout_s: float = 20, ca_file: Path | None = None) -> None:
    with Metastore(uri, CatalogAccess(timeout_s=timeout_s, ca_file=ca_file)).client() as client:
        client.get_all_databases()


def test_a_reply_that_comes_byte_by_byte_ends_with_the_timeout() -> None:
    def drip(connection: socket.socket) -> None:
        connection.sendall(NAMES_BEFORE)
        ended = threading.Event()
        while not ended.wait(0.02):
            connection.sendall(b"\0\0\0\0")

    with server(drip) as uri, pytest.raises(TTransportException, match="read timeout"):
        databases(uri, timeout_s=0.3)


def test_a_reply_that_is_too_large_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metastore, "MAX_REPLY", 100_000)

    def flood(connection: socket.socket) -> None:
        connection.sendall(NAMES_BEFORE)
        while True:
            connection.sendall(b"\0\0\0\0" * 10_000)

    with server(flood) as uri, pytest.raises(TTransportException, match="more than 100,000 bytes"):
        databases(uri)


def test_a_reply_with_too_many_elements_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """An element of a few bytes is an object in memory."""
    monkeypatch.setattr(metastore, "MAX_ELEMENTS", 399_999)
    with (
        server(lambda connection: connection.sendall(NAMES_BEFORE)) as uri,
        pytest.raises(TProtocolException, match="more than 399,999 elements") as caught,
    ):
        databases(uri)
    assert isinstance(metastore_error(caught.value), TransientError)


def test_a_name_with_an_unlikely_length_is_not_read() -> None:
    with (
        server(lambda connection: connection.sendall(NAMES_BEFORE + b"\x7f\xff\xff\xff")) as uri,
        pytest.raises(TTransportException, match="Length exceeded"),
    ):
        databases(uri)


def test_certificate_authorities_that_cannot_be_read_are_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(SecretNotFound, match=r"check spec\.tables\.catalog\.caSecret"):
        databases("thrift://127.0.0.1:9", ca_file=tmp_path / "ca.crt")
    (tmp_path / "ca.crt").write_text("none")
    with pytest.raises(ConfigurationError, match=r"check spec\.tables\.catalog\.caSecret; they must be PEM"):
        databases("thrift://127.0.0.1:9", ca_file=tmp_path / "ca.crt")


def test_a_server_without_tls_gets_no_request_in_plain_text(tmp_path: Path) -> None:
    received = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            connection, _ = listener.accept()
            with connection:
                received.append(connection.recv(1 << 16))

        thread = threading.Thread(target=run)
        thread.start()
        with pytest.raises(TTransportException):
            databases(f"thrift://127.0.0.1:{listener.getsockname()[1]}", ca_file=self_signed(tmp_path).certificate)
        thread.join()
    assert b"get_all_databases" not in received[0]


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (TTransportException(message="read timeout"), TransientError, "TTransportException: read timeout"),
        (MetaException("x" * 9_999), TransientError, "MetaException: xxx"),
        (TApplicationException(1, "Invalid method name: 'a'"), ConfigurationError, "Invalid method name: 'a'"),
        (TApplicationException(6, "Internal error"), TransientError, "Internal error"),
        (
            TTransportException(message="failed", inner=ssl.SSLCertVerificationError("self-signed")),
            ConfigurationError,
            r"set its certificate authority in spec\.tables\.catalog\.caSecret",
        ),
    ],
)
def test_errors_of_thrift_have_their_meaning(error: Exception, kind: type[Exception], text: str) -> None:
    found = metastore_error(error)
    assert type(found) is kind
    with pytest.raises(kind, match=text):
        raise found
    assert len(str(found)) < 2_500


def test_other_errors_are_not_those_of_thrift() -> None:
    assert metastore_error(FileNotFoundError("x")) is None
