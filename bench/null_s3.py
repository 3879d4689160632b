"""An S3 server that discards the content of parts, to measure the sink without the work of a store.

It keeps ledger files and staging objects (small objects), handles conditional puts and completions correctly, and
acknowledges parts without reading them; of a completed object it keeps only size and checksum. One process, one
thread, loopback; `python -m bench.null_s3 PORT [DELAY]`. Each answer is sent DELAY ms after its request, as by a store
that is far away.
"""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import hashlib
import itertools
import sys
import time
import urllib.parse
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple
from xml.sax.saxutils import escape, unescape

BUFFER = 1 << 20
CHECKSUM = "x-amz-checksum-crc64nvme"
PAGE = 1000


@dataclass
class Stored:
    """An object; `body` is None if it was uploaded in parts. `modified` in seconds since the epoch."""

    body: bytes | None
    size: int
    crc: str | None
    etag: str
    modified: int = field(default_factory=lambda: int(time.time()))


@dataclass
class Upload:
    """An unfinished upload and the sizes of its parts by number."""

    path: str
    started: int = field(default_factory=lambda: int(time.time()))
    parts: dict[int, int] = field(default_factory=dict)


@dataclass
class Store:
    """All buckets' objects by `/bucket/key`."""

    objects: dict[str, Stored] = field(default_factory=dict)
    uploads: dict[str, Upload] = field(default_factory=dict)
    ids: itertools.count[int] = field(default_factory=itertools.count)


class Request(NamedTuple):
    """The head of a request and the length of its body in bytes."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    size: int

    @property
    def is_part(self) -> bool:
        return self.method == "PUT" and "partNumber" in self.query

    @property
    def is_of_bucket(self) -> bool:
        return not self.path.strip("/").partition("/")[2]


class Answer(NamedTuple):
    status: str
    headers: dict[str, str]
    body: bytes = b""


class Connection(asyncio.BufferedProtocol):
    """A client connection: reads a request's head, stores or discards its body, replies after `delay_s`."""

    def __init__(self, store: Store, delay_s: float = 0) -> None:
        self._store = store
        self._delay_s = delay_s
        self._buffer = memoryview(bytearray(BUFFER))
        self._head = bytearray()
        self._kept = bytearray()
        self._left = 0
        self._request: Request | None = None
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        data = self._buffer[:nbytes]
        while data:
            data = self._take_head(data) if self._request is None else self._take_body(self._request, data)

    def _take_head(self, data: memoryview) -> memoryview:
        self._head += data
        end = self._head.find(b"\r\n\r\n")
        if end < 0:
            return data[:0]
        rest = memoryview(bytes(self._head[end + 4 :]))
        request = self._request = _request(bytes(self._head[:end]).decode("latin-1"))
        self._head.clear()
        self._left = request.size
        if request.headers.get("expect", "").lower() == "100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if not self._left:
            self._answer(request)
        return rest

    def _take_body(self, request: Request, data: memoryview) -> memoryview:
        body, rest = data[: self._left], data[self._left :]
        self._left -= len(body)
        if not request.is_part:
            self._kept += body
        if not self._left:
            self._answer(request)
        return rest

    def _answer(self, request: Request) -> None:
        answer = respond(self._store, request, bytes(self._kept))
        self._request = None
        self._kept.clear()
        headers = {"Content-Length": str(len(answer.body)), "Date": _http_date(time.time()), **answer.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        body = b"" if request.method == "HEAD" else answer.body
        content = f"HTTP/1.1 {answer.status}\r\n{head}\r\n".encode("latin-1") + body
        if not self._delay_s:
            self._transport.write(content)
            return
        asyncio.get_running_loop().call_later(self._delay_s, self._transport.write, content)


def respond(store: Store, request: Request, body: bytes) -> Answer:
    """The reply of S3; `body` is empty for parts."""
    method, query = request.method, request.query
    if request.is_of_bucket:
        if method == "GET":
            return _of_bucket(store, request)
        return _delete_many(store, request, body) if method == "POST" else Answer("200 OK", {})
    if method == "PUT":
        return _part(store, request) if request.is_part else _put(store, request, body)
    if method == "POST":
        return _begin(store, request) if "uploads" in query else _complete(store, request)
    if method == "DELETE":
        return _delete(store, request)
    return _get(store, request)


def _request(head: str) -> Request:
    lines = head.split("\r\n")
    method, target, _ = lines[0].split(" ")
    headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines[1:])}
    url = urllib.parse.urlsplit(target)
    query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
    return Request(method, urllib.parse.unquote(url.path), query, headers, int(headers.get("content-length", "0")))


def _begin(store: Store, request: Request) -> Answer:
    name = f"u{next(store.ids)}"
    store.uploads[name] = Upload(request.path)
    return _xml(f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId></InitiateMultipartUploadResult>")


def _part(store: Store, request: Request) -> Answer:
    upload = store.uploads.get(request.query["uploadId"])
    if upload is None:
        return _error("404 Not Found", "NoSuchUpload")
    number, crc = int(request.query["partNumber"]), request.headers.get(CHECKSUM, "")
    upload.parts[number] = request.size
    return Answer("200 OK", {"ETag": _etag(f"{number} {request.size} {crc}".encode()), CHECKSUM: crc})


def _complete(store: Store, request: Request) -> Answer:
    name = request.query["uploadId"]
    upload = store.uploads.get(name)
    if upload is None:
        return _error("404 Not Found", "NoSuchUpload")
    if request.headers.get("if-none-match") == "*" and request.path in store.objects:
        return _error("412 Precondition Failed", "PreconditionFailed")
    del store.uploads[name]
    etag = f'{_etag(name.encode())[:-1]}-{len(upload.parts)}"'
    stored = Stored(None, sum(upload.parts.values()), request.headers.get(CHECKSUM), etag)
    store.objects[request.path] = stored
    return _xml(f"<CompleteMultipartUploadResult><ETag>{escape(etag)}</ETag></CompleteMultipartUploadResult>")


def _put(store: Store, request: Request, body: bytes) -> Answer:
    if request.headers.get("if-none-match") == "*" and request.path in store.objects:
        return _error("412 Precondition Failed", "PreconditionFailed")
    stored = store.objects[request.path] = Stored(body, len(body), request.headers.get(CHECKSUM), _etag(body))
    return Answer("200 OK", {"ETag": stored.etag})


def _delete(store: Store, request: Request) -> Answer:
    if "uploadId" not in request.query:
        store.objects.pop(request.path, None)
    elif store.uploads.pop(request.query["uploadId"], None) is None:
        return _error("404 Not Found", "NoSuchUpload")
    return Answer("204 No Content", {})


def _delete_many(store: Store, request: Request, body: bytes) -> Answer:
    for entry in body.decode().split("<Key>")[1:]:
        store.objects.pop(f"/{request.path.strip('/')}/{unescape(entry.split('</Key>')[0])}", None)
    return _xml("<DeleteResult></DeleteResult>")


def _get(store: Store, request: Request) -> Answer:
    stored = store.objects.get(request.path)
    if stored is None:
        return _error("404 Not Found", "NoSuchKey")
    headers = {"ETag": stored.etag, "Last-Modified": _http_date(stored.modified)}
    requested = request.headers.get("range")
    if stored.crc and not requested:
        headers |= {CHECKSUM: stored.crc, "x-amz-checksum-type": "FULL_OBJECT"}
    if stored.body is None:
        return Answer("200 OK", {**headers, "Content-Length": str(stored.size)})
    if not requested:
        return Answer("200 OK", headers, stored.body)
    first, _, last = requested.removeprefix("bytes=").partition("-")
    return Answer("206 Partial Content", headers, stored.body[int(first) : int(last) + 1])


def _of_bucket(store: Store, request: Request) -> Answer:
    if "uploads" in request.query:
        return _list_uploads(store, request)
    if "list-type" in request.query:
        return _list(store, request)
    return _error("404 Not Found", "NoSuchLifecycleConfiguration")


def _list(store: Store, request: Request) -> Answer:
    query, bucket = request.query, f"/{request.path.strip('/')}/"
    after = max(query.get("start-after", ""), query.get("continuation-token", ""))
    keys = _sorted(_below(bucket, query.get("prefix", ""), store.objects))
    page = [key for key in keys if key.encode() > after.encode()]
    shown = page[: int(query.get("max-keys", PAGE))]
    rows = "".join(_row(key, store.objects[bucket + key]) for key in shown)
    more = len(shown) < len(page)
    token = f"<NextContinuationToken>{escape(shown[-1])}</NextContinuationToken>" if more else ""
    return _xml(f"<ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>{token}{rows}</ListBucketResult>")


def _row(key: str, stored: Stored) -> str:
    return (
        f"<Contents><Key>{escape(key)}</Key><Size>{stored.size}</Size><ETag>{escape(stored.etag)}</ETag>"
        f"<LastModified>{_iso(stored.modified)}</LastModified></Contents>"
    )


def _list_uploads(store: Store, request: Request) -> Answer:
    bucket, prefix = f"/{request.path.strip('/')}/", request.query.get("prefix", "")
    rows = "".join(
        f"<Upload><Key>{escape(upload.path.removeprefix(bucket))}</Key><UploadId>{name}</UploadId>"
        f"<Initiated>{_iso(upload.started)}</Initiated></Upload>"
        for name, upload in sorted(store.uploads.items(), key=lambda each: each[1].path.encode())
        if upload.path.startswith(bucket + prefix)
    )
    return _xml(f"<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>{rows}</ListMultipartUploadsResult>")


def _below(bucket: str, prefix: str, paths: Iterable[str]) -> list[str]:
    return [path.removeprefix(bucket) for path in paths if path.startswith(bucket + prefix)]


def _sorted(keys: list[str]) -> list[str]:
    return sorted(keys, key=str.encode)


def _etag(content: bytes) -> str:
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


def _http_date(seconds: float) -> str:
    return email.utils.formatdate(seconds, usegmt=True)


def _iso(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(seconds))


def _xml(text: str, status: str = "200 OK") -> Answer:
    body = f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode()
    return Answer(status, {"Content-Type": "application/xml"}, body)


def _error(status: str, code: str) -> Answer:
    return _xml(f"<Error><Code>{code}</Code><Message>{code}</Message></Error>", status)


async def serve(port: int, delay_s: float = 0) -> None:
    """Serves on loopback until the process ends."""
    store = Store()
    server = await asyncio.get_running_loop().create_server(lambda: Connection(store, delay_s), "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2]) / 1000 if len(sys.argv) > 2 else 0))
