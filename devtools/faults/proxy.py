"""A proxy between an HTTP client and its server that counts requests and injects faults.

A rule determines the request at which a fault occurs, and the point: before the server receives the request, or after
the server has executed it and before the client gets the reply. These two points of every request cover all external
states that a crash can leave. Subclasses interpret requests: `devtools.faults.s3_proxy` for S3,
`devtools.faults.kube_proxy` for a Kubernetes API server. Headers are not changed, and payloads are streamed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Generic, Literal, Protocol, Self, TypeVar
from urllib.parse import urlsplit

from devtools.certificates import Certificate
from devtools.faults.http1 import Head, body_of, read_head
from devtools.processes import Process, ServerFailedError, kill_session, signal_session

Point = Literal["before", "after"]
_BUFFER = 1 << 20
_HELD_POLL_SECONDS = 0.005


class Request(Protocol):
    """The attributes of a request: `number` counts all from 1; `mutating` requests change the server's state."""

    @property
    def number(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def mutating(self) -> bool: ...


R = TypeVar("R", bound=Request)


class Reply(ABC):
    """Reply instead of the server."""

    @abstractmethod
    def encode(self) -> bytes:
        """The whole message; it must end the connection."""


@dataclass(frozen=True)
class Drop:
    """Close the client's connection without a reply: the request is lost or, after its execution, the reply."""


@dataclass(frozen=True)
class Hold:
    """Hold the request or its reply until `release` is set."""

    release: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class Delay:
    """Forward it after a delay in seconds."""

    seconds: float


@dataclass(frozen=True)
class Kill:
    """Signal a process (its whole session for a `Process`), drop the connection, and refuse further connections.

    A callable is called instead, from the proxy's thread. Nothing passes until `Relay.resume`, so the server keeps the
    state of this point.
    """

    target: Process | int | Callable[[], object]
    signal_number: int = signal.SIGKILL
    session: bool = True

    def __call__(self) -> None:
        if not isinstance(self.target, Process | int):
            self.target()
            return
        pid = self.target if isinstance(self.target, int) else self.target.pid
        if not self.session:
            os.kill(pid, self.signal_number)
        elif self.signal_number == signal.SIGKILL:
            kill_session(pid)
        else:
            signal_session(pid, self.signal_number)


Fault = Reply | Drop | Hold | Delay | Kill | Callable[[R], None]


class Rule(Generic[R]):
    """A fault that waits for its request. As a context manager it is removed at the end of the block."""

    def __init__(
        self, proxy: Relay[R], matches: Callable[[R], bool], fault: Fault[R], point: Point, nth: int, times: int | None
    ) -> None:
        self.matches = matches
        self.fault = fault
        self.point = point
        self.seen = 0
        self.fired: list[R] = []
        self._nth = nth
        self._times = times
        self._proxy = proxy

    def takes(self, request: R) -> bool:
        """Whether the fault occurs at this request; counts the request."""
        if not self.matches(request):
            return False
        self.seen += 1
        if self.seen < self._nth or (self._times is not None and len(self.fired) >= self._times):
            return False
        self.fired.append(request)
        return True

    def wait(self, seconds: float = 60) -> R:
        """Waits for the first request at which the fault occurs. Raises `ServerFailedError` on timeout."""
        self._proxy.wait_for(lambda: bool(self.fired), "the rule's request", seconds)
        return self.fired[0]

    def remove(self) -> None:
        self._proxy.remove(self)

    def __enter__(self) -> Rule[R]:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class Relay(ABC, Generic[R]):
    """A proxy in its own thread that listens on a port of the loopback address; a context manager.

    `upstream` is the server's endpoint. With a `certificate` clients connect by TLS. `requests` are all received
    requests, in order; `answered` those that the server has answered, with its status.
    """

    def __init__(self, upstream: str, *, certificate: Certificate | None = None) -> None:
        address = urlsplit(upstream)
        self._upstream_host = address.hostname or "127.0.0.1"
        self._upstream_port = address.port or 80
        self._upstream_tls = _trusting_all() if address.scheme == "https" else None
        self._certificate = certificate
        self._changed = threading.Condition()
        self._rules: list[Rule[R]] = []
        self._refusing = False
        # The loop keeps weak references alone, and forgets a client that has closed its half of a connection.
        self._exchanges: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault-proxy", daemon=True)
        self.requests: list[R] = []
        self.answered: list[tuple[R, int]] = []
        self.port = 0

    @property
    def endpoint(self) -> str:
        return f"{'https' if self._certificate else 'http'}://127.0.0.1:{self.port}"

    def when(
        self,
        matches: Callable[[R], bool],
        fault: Fault[R],
        *,
        point: Point = "before",
        nth: int = 1,
        times: int | None = 1,
    ) -> Rule[R]:
        """From the `nth` matching request on, `times` times (None: until removed), `fault` occurs at `point`.

        A callable is called with the request, which then passes. Only the first matching rule applies to a request.
        """
        rule = Rule(self, matches, fault, point, nth, times)
        with self._changed:
            self._rules.append(rule)
        return rule

    def remove(self, rule: Rule[R]) -> None:
        with self._changed:
            if rule in self._rules:
                self._rules.remove(rule)

    def refuse(self) -> None:
        """Closes every connection without a reply, as if the network were down."""
        with self._changed:
            self._refusing = True
        self._loop.call_soon_threadsafe(self._interrupt)

    def resume(self) -> None:
        """Lets requests pass again after `refuse` or a `Kill`, and removes all rules."""
        with self._changed:
            self._refusing = False
            self._rules.clear()

    def forget(self) -> None:
        """Resets the counts."""
        with self._changed:
            self.requests.clear()
            self.answered.clear()

    def count(self, matches: Callable[[R], bool]) -> int:
        """The number of matching requests so far."""
        with self._changed:
            return sum(map(matches, self.requests))

    def kinds(self) -> Counter[str]:
        """The number of requests of each kind so far."""
        with self._changed:
            return Counter(request.kind for request in self.requests)

    def wait_for(self, is_so: Callable[[], bool], what: str, seconds: float = 60) -> None:
        """Waits until `is_so` holds, checked after each request and reply. Raises `ServerFailedError` on timeout."""
        with self._changed:
            if not self._changed.wait_for(is_so, seconds):
                raise ServerFailedError(f"{what}: timeout after {seconds:g} s; requests so far: {self.kinds()}")

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _listen(self) -> None:
        context = None
        if self._certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self._certificate.certificate, self._certificate.key)
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port, limit=_BUFFER, ssl=context)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        self._server.close()
        # A connection that was accepted just now makes its task while the others end.
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._serve(reader, writer))
        self._exchanges.add(task)
        task.add_done_callback(self._exchanges.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handles a client connection: forwards its requests one after another over one connection to the server."""
        link = _Link(self._upstream_host, self._upstream_port, self._upstream_tls)
        try:
            while (head := await read_head(reader)) and await self._exchange(head, reader, writer, link):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            link.close()
            writer.close()

    async def _exchange(
        self, head: Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, link: _Link
    ) -> bool:
        """Forwards a request and its reply; returns False if the client's connection must be closed."""
        request = self._arrived(head)
        if request is None:
            return False
        waits = (head.get("expect") or "").lower() == "100-continue"
        # A client that sends its body without waiting reads an error only afterwards.
        if not await self._fault(request, "before", writer, unread=None if waits else body_of(reader, head)):
            return False
        if waits:
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        server_reader, server_writer = await link.open()
        sending = asyncio.create_task(_send(self._forwarded(head), reader, server_writer))
        sending.add_done_callback(_ignore_error)
        try:
            answer = await read_head(server_reader)
            if answer is None:
                return False
            body = b""
            has_body = head.first[0] != "HEAD" and answer.first[1] not in ("204", "304")
            whole = has_body and self._is_read_whole(request)
            if whole:
                body = b"".join([chunk async for chunk in body_of(server_reader, answer)])
                self._was_read(request, answer, body)
            self._was_answered(request, int(answer.first[1]))
            if not await self._fault(request, "after", writer):
                return False
            writer.write(self._replied(request, answer).encode() + body)
            if has_body and not whole:
                async for chunk in self._streamed(request, answer, body_of(server_reader, answer, until_close=True)):
                    writer.write(chunk)
                    await writer.drain()
            await writer.drain()
            await sending
        finally:
            sending.cancel()
        # If the server closes its connection to end a body, the client's must be closed too.
        return "close" not in (answer.get("connection") or "").lower() and not server_reader.at_eof()

    @abstractmethod
    def _classify(self, number: int, head: Head) -> R:
        """The request with this `head`."""

    def _forwarded(self, head: Head) -> Head:
        """The head that is sent to the server."""
        return head.without("expect")

    def _replied(self, request: R, answer: Head) -> Head:
        """The head that is sent to the client."""
        return answer

    def _is_read_whole(self, request: R) -> bool:
        """Whether the reply is read completely before it is forwarded: a complete reply means that the request was
        executed.

        Replies to mutating requests are short.
        """
        return request.mutating

    def _was_read(self, request: R, answer: Head, body: bytes) -> None:
        """Called with a complete reply; `body` has the raw bytes."""

    def _streamed(self, request: R, answer: Head, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The chunks of a streamed body that are sent to the client."""
        return body

    def _interrupt(self) -> None:
        """Called in the proxy's thread when nothing passes any more: ends replies that wait for their server."""

    def _arrived(self, head: Head) -> R | None:
        with self._changed:
            if self._refusing:
                return None
            request = self._classify(len(self.requests) + 1, head)
            self.requests.append(request)
            self._changed.notify_all()
            return request

    def _was_answered(self, request: R, status: int) -> None:
        with self._changed:
            self.answered.append((request, status))
            self._changed.notify_all()

    async def _fault(
        self,
        request: R,
        point: Point,
        writer: asyncio.StreamWriter,
        *,
        unread: AsyncIterator[bytes] | None = None,
    ) -> bool:
        """Applies the rules; returns False if the request or its reply must not be forwarded."""
        with self._changed:
            if self._refusing:
                return False
            rule = next((each for each in self._rules if each.point == point and each.takes(request)), None)
            if rule and isinstance(rule.fault, Kill):
                rule.fault()
                self._refusing = True
                self._interrupt()
            self._changed.notify_all()
        match rule.fault if rule else None:
            case Reply() as answer:
                if unread:
                    async for _ in unread:
                        pass
                writer.write(answer.encode())
                await writer.drain()
                return False
            case Drop() | Kill():
                return False
            case Hold(release):
                while not release.is_set():
                    await asyncio.sleep(_HELD_POLL_SECONDS)
            case Delay(seconds):
                await asyncio.sleep(seconds)
            case None:
                pass
            case call:
                await asyncio.to_thread(call, request)
        return True


class _Link:
    """The connection to the server for one client connection; reopened if the server has closed it."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams and (self._streams[0].at_eof() or self._streams[1].is_closing()):
            self.close()
        if not self._streams:
            self._streams = await asyncio.open_connection(self._host, self._port, limit=_BUFFER, ssl=self._tls)
        return self._streams

    def close(self) -> None:
        if self._streams:
            self._streams[1].close()
            self._streams = None


async def _send(head: Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Passes a request on. A body that its client does not finish ends the connection to the server too."""
    writer.write(head.encode())
    chunks = body_of(reader, head)
    while True:
        try:
            chunk = await anext(chunks)
        except StopAsyncIteration:
            break
        except (ConnectionError, asyncio.IncompleteReadError):
            writer.close()
            return
        writer.write(chunk)
        await writer.drain()
    await writer.drain()


def _ignore_error(task: asyncio.Task[None]) -> None:
    """Marks an error as seen: the other half of the exchange fails of the same cause."""
    if not task.cancelled():
        task.exception()


def _trusting_all() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # without the system's authorities, which take long to load
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
