"""Connections to Hive's metastore, over Thrift: with TLS if there is a certificate authority, and without a login, as a
metastore has none by default. No secret is sent, and no request is repeated."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from hive_metastore.ThriftHiveMetastore import Client
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TException
from thrift.transport.TSocket import TSocket
from thrift.transport.TSSLSocket import TSSLSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from sink_job.api.errors import ConfigurationError, SinkError, TransientError
from sink_job.tables.catalog.access import SECTION, CatalogAccess

PORT: Final = 9083
MAX_REPLY: Final = 64 << 20
"""Maximum bytes of a reply."""
MAX_ELEMENTS: Final = 500_000
"""Maximum number of the elements of all lists, sets and maps of a reply: one of a byte may take 80 bytes of memory."""


class Metastore:
    """A metastore. Thread-safe: each use has a connection of its own."""

    def __init__(self, uri: str, access: CatalogAccess) -> None:
        """`uri`: `thrift://host:port`. `access`: certificate authorities and timeout. Sends no request."""
        self.uri = uri
        self._access = access

    @contextmanager
    def client(self) -> Iterator[Any]:
        """Thrift's client with a connection, which is closed at the end. Raises ConfigurationError for files of
        certificate authorities, and the errors of Thrift."""
        transport = TBufferedTransport(self._socket())
        transport.open()
        try:
            yield Client(_Protocol(transport))
        finally:
            transport.close()

    def _socket(self) -> TSocket:
        url = urlsplit(self.uri)
        port, authorities = url.port or PORT, self._access.authorities()
        if authorities is None:
            return _Socket(url.hostname, port).limited(self._access.timeout_s)
        try:
            context = ssl.create_default_context(cafile=str(authorities))
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"the certificates cannot be read ({type(error).__name__}): check {SECTION}.caSecret; they must be PEM"
            ) from None
        found = _TlsSocket(url.hostname, port, ssl_context=context, server_hostname=url.hostname)
        return found.limited(self._access.timeout_s)


class _Protocol(TBinaryProtocol):  # type: ignore[misc]
    """Thrift's protocol with a limit of the elements in a reply."""

    _left = MAX_ELEMENTS

    def readMessageBegin(self) -> Any:  # noqa: N802 - the name is that of Thrift
        self._left = MAX_ELEMENTS
        return super().readMessageBegin()

    def _check_container_length(self, length: int) -> None:
        super()._check_container_length(length)
        self._left -= length
        if self._left < 0:
            text = f"a reply has lists of more than {MAX_ELEMENTS:,} elements"
            raise TProtocolException(TProtocolException.SIZE_LIMIT, text)


class _Limited(TSocket):  # type: ignore[misc]
    """A socket with a limit of time, in s, and of bytes for the reply to a request."""

    _limit_s = 0.0
    _ends = 0.0
    _left = MAX_REPLY

    def limited(self, timeout_s: float) -> TSocket:
        self._limit_s = timeout_s
        self.setTimeout(timeout_s * 1000)
        return self

    def write(self, buff: bytes) -> None:
        self._ends, self._left = time.monotonic() + self._limit_s, MAX_REPLY
        super().write(buff)

    def read(self, sz: int) -> bytes:
        remaining = self._ends - time.monotonic()
        if remaining <= 0:
            raise TTransportException(TTransportException.TIMED_OUT, "read timeout")
        self.handle.settimeout(remaining)
        found: bytes = super().read(sz)
        self._left -= len(found)
        if self._left < 0:
            raise TTransportException(TTransportException.SIZE_LIMIT, f"a reply has more than {MAX_REPLY:,} bytes")
        return found


class _Socket(_Limited):
    pass


class _TlsSocket(_Limited, TSSLSocket):  # type: ignore[misc]
    pass


def metastore_error(error: BaseException) -> SinkError | None:
    """What an error of Thrift means; None for other errors. After a ConfigurationError the metastore has done
    nothing."""
    if not isinstance(error, TException):
        return None
    if isinstance(error, TApplicationException) and error.type == TApplicationException.UNKNOWN_METHOD:
        text = f"it lacks a request ({error.message}). Use Hive 2.3.10, or 4.0.1 or later"
        return ConfigurationError(text)
    cause: BaseException | None = getattr(error, "inner", None)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return ConfigurationError(
            f"the certificate is not trusted: set its certificate authority in {SECTION}.caSecret ({cause})"
        )
    return TransientError(f"{type(error).__name__}: {message_of(error)}")


def message_of(error: BaseException) -> str:
    """The message of an error of the metastore, which may be long."""
    return str(getattr(error, "message", None) or error)[:2000]
