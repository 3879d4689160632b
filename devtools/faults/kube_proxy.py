"""A proxy between the operator and the API server: `devtools.faults.proxy` with the calls of the Kubernetes API, its
rejections, and faults of lists and watches.

The operator speaks plain http to it (`Cluster.kubeconfig(server=faults.endpoint)`), with a token. Watches are read
event by event, so they can be frozen, robbed of events, or broken.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from devtools.faults.http1 import Head
from devtools.faults.proxy import Delay, Drop, Hold, Kill, Point, Relay, Reply, Rule

__all__ = ["Call", "Delay", "Drop", "Hold", "Kill", "KubeFaults", "Point", "Reject", "Rule", "call", "writes"]

Json = dict[str, Any]
_POLL_SECONDS = 0.02
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get", "HEAD": "get"}
_MUTATING = frozenset({"create", "update", "patch", "apply", "delete", "deletecollection"})
_ASKING = frozenset({"selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews", "tokenreviews"})
_ASIDE = frozenset({"leases", "events"})
_REASONS = {
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


@dataclass(frozen=True)
class Call:
    """One request to the API server: a verb as RBAC has them (a patch by server-side apply is `apply`), and on what.

    `name` is None for lists and creates; `resource` is empty for what is no object (`/version`, `/readyz`).
    """

    number: int
    verb: str
    group: str
    resource: str
    subresource: str
    namespace: str | None
    name: str | None
    path: str

    @property
    def kind(self) -> str:
        """Such as `create pods`, `patch pods/resize`, `apply configmaps`."""
        return f"{self.verb} {self.resource}{'/' if self.subresource else ''}{self.subresource}"

    @property
    def mutating(self) -> bool:
        """Whether it changes an object; dry runs and questions that are asked by creating an object do not."""
        return (
            self.verb in _MUTATING
            and self.resource not in _ASKING
            and "dryRun" not in parse_qs(urlsplit(self.path).query)
        )


def classify(number: int, head: Head) -> Call:
    """The call that begins with `head`."""
    target = urlsplit(head.first[1])
    query = parse_qs(target.query, keep_blank_values=True)
    words = [unquote(word) for word in target.path.strip("/").split("/")]
    group = ""
    if words[0] == "api" and len(words) > 2:
        words = words[2:]
    elif words[0] == "apis" and len(words) > 3:
        group, words = words[1], words[3:]
    else:
        words = []
    namespace = None
    if len(words) > 2 and words[0] == "namespaces" and words[2] not in ("status", "finalize"):
        namespace, words = words[1], words[2:]
    resource, name, subresource = (*words, "", "", "")[:3]
    verb = _verb(head, query, named=bool(name))
    return Call(number, verb, group, resource, subresource, namespace, name or None, head.first[1])


def _verb(head: Head, query: Mapping[str, list[str]], *, named: bool) -> str:
    verb = _VERBS.get(head.first[0], head.first[0].lower())
    if verb == "get" and query.get("watch", ["0"])[0] in ("1", "true", "True"):
        return "watch"
    if not named:
        return {"get": "list", "delete": "deletecollection"}.get(verb, verb)
    if verb == "patch" and (head.get("content-type") or "").startswith("application/apply-patch"):
        return "apply"
    return verb


def writes(call: Call) -> bool:
    """A predicate for `when`: what changes an object, but for events and the Lease, which come when they come."""
    return call.mutating and call.resource not in _ASIDE


def call(kind: str, *, name: str | None = None) -> Callable[[Call], bool]:
    """A predicate for `when`: this kind (`create pods`, `watch s3sinks`), of this object where one is named."""

    def matches(call: Call) -> bool:
        return call.kind == kind and (name is None or call.name == name)

    return matches


@dataclass(frozen=True)
class Reject(Reply):
    """Answer in the server's place with a Status: `Reject(409)`, `Reject(429, retry_after_s=1)`, `Reject(500)`."""

    status: int
    message: str = "by the test"
    reason: str | None = None
    retry_after_s: int | None = None

    def encode(self) -> bytes:
        body = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason or _REASONS.get(self.status, ""),
            "code": self.status,
        }
        more = "" if self.retry_after_s is None else f"Retry-After: {self.retry_after_s}\r\n"
        return _message(self.status, json.dumps(body).encode(), more)


@dataclass(frozen=True)
class Replay(Reply):
    """Answer in the server's place with what it answered earlier; from `KubeFaults.recorded`."""

    body: bytes

    def encode(self) -> bytes:
        return _message(200, self.body, "")


class KubeFaults(Relay[Call]):
    """A proxy of an API server's calls. Rules (`when`) come from the relay; watches have switches of their own."""

    def __init__(self, server: str) -> None:
        super().__init__(server)
        self._frozen: set[str] = set()
        self._thieves: list[tuple[str, Callable[[Json], bool]]] = []
        self._open_watches: set[asyncio.Future[None]] = set()
        self._lists: dict[str, bytes] = {}

    # --- counting

    def done(self, *, aside: bool = False) -> Counter[str]:
        """How many changes of each kind the server has carried out; `aside`: with events and the Lease."""
        with self._changed:
            answered = list(self.answered)
        return Counter(
            call.kind for call, status in answered if status < 300 and call.mutating and (aside or writes(call))
        )

    # --- lists and watches

    def recorded(self, resource: str) -> Replay:
        """The last list of `resource` that passed, to be answered again later: a server that lags behind."""
        if resource not in self._lists:
            raise LookupError(f"no list of {resource} has passed")
        return Replay(self._lists[resource])

    def freeze(self, resource: str) -> None:
        """No event of `resource` passes any more, on watches that stay open; what comes meanwhile waits for `thaw`."""
        self._frozen.add(resource)

    def thaw(self, resource: str) -> None:
        self._frozen.discard(resource)

    @contextlib.contextmanager
    def without_events(self, resource: str, matches: Callable[[Json], bool] = lambda event: True) -> Iterator[None]:
        """Events (`type`, `object`) of `resource` that match are lost while the context lasts."""
        thief = (resource, matches)
        self._thieves.append(thief)
        try:
            yield
        finally:
            self._thieves.remove(thief)

    def break_watches(self) -> None:
        """Every open watch ends in the middle, as when a load balancer gives up; new ones pass."""
        self._loop.call_soon_threadsafe(self._interrupt)

    # --- the relay's parts

    def _classify(self, number: int, head: Head) -> Call:
        return classify(number, head)

    def _forwarded(self, head: Head) -> Head:
        return super()._forwarded(head).without("accept-encoding")

    def _is_read_whole(self, request: Call) -> bool:
        return request.mutating or request.verb == "list"

    def _was_read(self, request: Call, answer: Head, body: bytes) -> None:
        if request.verb == "list" and answer.first[1] == "200":
            chunked = (answer.get("transfer-encoding") or "").lower() == "chunked"
            self._lists[request.resource] = _unchunked(body) if chunked else body

    def _streamed(self, request: Call, answer: Head, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        is_watch = request.verb == "watch" and answer.first[1] == "200"
        return self._events(request.resource, body) if is_watch else body

    async def _events(self, resource: str, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The watch's events, each a chunk of its own, as far as they may pass."""
        left = b""
        async for data in _chunk_data(self._unless_broken(body)):
            *lines, left = (left + data).split(b"\n")
            for line in lines:
                while resource in self._frozen:
                    await asyncio.sleep(_POLL_SECONDS)
                if not self._is_stolen(resource, line):
                    yield b"%x\r\n%s\n\r\n" % (len(line) + 1, line)
        yield b"0\r\n\r\n"

    def _is_stolen(self, resource: str, line: bytes) -> bool:
        """Parses the event only if a thief waits for it: it may be nested deeper than this process can read."""
        thieves = [matches for each, matches in self._thieves if each == resource]
        if not thieves:
            return False
        event = json.loads(line)
        return any(matches(event) for matches in thieves)

    def _interrupt(self) -> None:
        for each in self._open_watches:
            if not each.done():
                each.set_result(None)

    async def _unless_broken(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The same chunks; `ConnectionResetError` once watches are broken or nothing passes any more."""
        broken = self._loop.create_future()
        self._open_watches.add(broken)
        try:
            while True:
                chunk = asyncio.ensure_future(anext(body, b""))
                try:
                    await asyncio.wait({chunk, broken}, return_when=asyncio.FIRST_COMPLETED)
                    if self._refusing or broken.done():
                        raise ConnectionResetError("the watch is broken by the test")
                finally:
                    chunk.cancel()
                if not chunk.result():
                    return
                yield chunk.result()
        finally:
            self._open_watches.discard(broken)


async def _chunk_data(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """What the chunks of a body on the wire hold; `body` gives sizes and chunks in turn, as `devtools.faults.http1`
    does."""
    async for size in body:
        if int(size.split(b";")[0], 16):
            yield (await anext(body))[:-2]
        else:
            async for _ in body:  # to its end, so that the connection is fit for another request
                pass


def _unchunked(body: bytes) -> bytes:
    """What a chunked body that was read whole holds."""
    data = b""
    while True:
        line, _, body = body.partition(b"\r\n")
        size = int(line.split(b";")[0], 16)
        if size == 0:
            return data
        data, body = data + body[:size], body[size + 2 :]


def _message(status: int, body: bytes, more: str) -> bytes:
    phrase = _REASONS.get(status, "OK")
    head = f"HTTP/1.1 {status} {phrase}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{more}"
    return head.encode() + b"Connection: close\r\n\r\n" + body
