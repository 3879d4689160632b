"""A server in front of a metastore that can lose replies, hold commits back and deliver them later, remove their
condition as a metastore without HIVE-26882 does, and kill the client."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from hive_metastore import ThriftHiveMetastore as Service
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TMessageType, TType
from thrift.transport.TTransport import TMemoryBuffer, TTransportBase, TTransportException

from devtools.certificates import Certificate
from devtools.faults.s3_proxy import Kill, Point
from devtools.processes import LOOPBACK
from sink_job.tables.catalog.hive_condition import PROBE

CREATE: Final = "create_table"
ALTER: Final = "alter_table_with_environment_context"
COMMITS: Final = (CREATE, ALTER)


@dataclass(frozen=True)
class Request:
    """A request: its method, and the table of a commit; empty for other methods."""

    method: str
    table: str
    content: bytes

    @property
    def is_commit(self) -> bool:
        return self.method in COMMITS and not self.is_probe

    @property
    def is_probe(self) -> bool:
        return self.table.startswith(PROBE)


Matches = Callable[[Request], bool]


@dataclass
class MetastoreFront:
    """`target`: URI of the metastore. `loses`: the number of commits whose reply is lost from now on. `holds`: commits
    are kept in `held`, and their replies are lost; calling one delivers it, and returns the name of the metastore's
    error. `strips`: the condition is removed. `loses_replies_of`: a method. `requests`: all of them."""

    target: str
    uri: str = ""
    loses: int = 0
    holds: bool = False
    strips: bool = False
    loses_replies_of: str = ""
    held: list[Callable[[], str]] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    _rule: tuple[Matches, Kill, Point] | None = None

    @property
    def commits(self) -> list[str]:
        """The methods of the commits."""
        return [each.method for each in self.requests if each.is_commit]

    def when(self, matches: Matches, fault: Kill, *, point: Point, nth: int) -> None:
        """Kills a process at the first request that matches."""
        assert nth == 1
        self._rule = (matches, fault, point)

    def resume(self) -> None:
        self._rule = None

    def answer(self, given: bytes, server: socket.socket) -> bytes | None:
        """None: the reply is lost."""
        request = _parsed(given)
        self.requests.append(request)
        rule = self._rule if self._rule is not None and self._rule[0](request) else None
        if rule is not None:
            self._rule = None
        if rule is not None and rule[2] == "before":
            rule[1]()
            return None
        content = _without_condition(request) if self.strips and request.method == ALTER else given
        if request.is_commit and self.holds:
            self.held.append(lambda: self._landed(request.method, content))
            return None
        found = _exchanged(server, content)
        if rule is not None:
            rule[1]()
            return None
        if request.is_commit and self.loses:
            self.loses -= 1
            return None
        return None if request.method == self.loses_replies_of else found

    def connected(self) -> socket.socket:
        url = urlsplit(self.target)
        return socket.create_connection((url.hostname or "", url.port or 0))

    def _landed(self, method: str, content: bytes) -> str:
        with self.connected() as server:
            protocol = TBinaryProtocol(TMemoryBuffer(_exchanged(server, content)))
        _, kind, _ = protocol.readMessageBegin()
        if kind == TMessageType.EXCEPTION:
            return "TApplicationException"
        result: Any = getattr(Service, f"{method}_result")()
        result.read(protocol)
        errors = (getattr(result, f"o{number}", None) for number in range(1, 5))
        return next((type(each).__name__ for each in errors if each is not None), "")


class _Recorder(TTransportBase):  # type: ignore[misc]
    """Reads from a socket, and keeps what it has read."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.content = bytearray()

    def read(self, size: int) -> bytes:
        found = self._connection.recv(size)
        if not found:
            raise TTransportException(TTransportException.END_OF_FILE)
        self.content += found
        return found


def _message(connection: socket.socket) -> bytes:
    """The next message of a connection. Raises TTransportException at its end."""
    recorder = _Recorder(connection)
    protocol = TBinaryProtocol(recorder)
    protocol.readMessageBegin()
    protocol.skip(TType.STRUCT)
    protocol.readMessageEnd()
    return bytes(recorder.content)


def _exchanged(server: socket.socket, content: bytes) -> bytes:
    server.sendall(content)
    return _message(server)


def _arguments(method: str, content: bytes) -> tuple[Any, int]:
    """The arguments of a commit, and the number of the message."""
    protocol = TBinaryProtocol(TMemoryBuffer(content))
    _, _, number = protocol.readMessageBegin()
    arguments: Any = getattr(Service, f"{method}_args")()
    arguments.read(protocol)
    return arguments, number


def _parsed(content: bytes) -> Request:
    method, _, _ = TBinaryProtocol(TMemoryBuffer(content)).readMessageBegin()
    if method not in COMMITS:
        return Request(method, "", content)
    arguments, _ = _arguments(method, content)
    return Request(method, arguments.tbl.tableName if method == CREATE else arguments.tbl_name, content)


def _without_condition(request: Request) -> bytes:
    arguments, number = _arguments(request.method, request.content)
    given = arguments.environment_context.properties
    kept = {name: value for name, value in given.items() if not name.startswith("expected_")}
    arguments.environment_context.properties = kept
    buffer = TMemoryBuffer()
    protocol = TBinaryProtocol(buffer)
    protocol.writeMessageBegin(request.method, TMessageType.CALL, number)
    arguments.write(protocol)
    protocol.writeMessageEnd()
    found: bytes = buffer.getvalue()
    return found


def _serve(front: MetastoreFront, connection: socket.socket, context: ssl.SSLContext | None) -> None:
    with suppress(OSError, TTransportException):
        if context is not None:
            connection = context.wrap_socket(connection, server_side=True)
        with connection, front.connected() as server:
            while True:
                found = front.answer(_message(connection), server)
                if found is None:
                    return
                connection.sendall(found)


def _accept(front: MetastoreFront, listener: socket.socket, context: ssl.SSLContext | None) -> None:
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_serve, args=(front, connection, context), daemon=True).start()


@contextmanager
def metastore_front(target: str, certificate: Certificate | None = None) -> Iterator[MetastoreFront]:
    """A running server, with TLS if there is a certificate."""
    context = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.certificate, certificate.key)
    front = MetastoreFront(target)
    with socket.create_server((LOOPBACK, 0)) as listener:
        front.uri = f"thrift://{LOOPBACK}:{listener.getsockname()[1]}"
        threading.Thread(target=_accept, args=(front, listener, context), daemon=True).start()
        try:
            yield front
        finally:
            listener.shutdown(socket.SHUT_RDWR)
