"""A proxy between an S3 client and its server: `devtools.faults.proxy` with the requests and errors of S3.

Addresses are path-style. The proxy does not change the client's Host header, so signatures stay valid.
"""

from __future__ import annotations

from dataclasses import dataclass

from devtools.faults.http1 import Head
from devtools.faults.proxy import Drop, Hold, Kill, Point, Relay, Reply
from devtools.faults.proxy import Rule as AnyRule
from devtools.faults.s3_requests import S3Request, classify

__all__ = ["Drop", "FaultProxy", "Hold", "Kill", "Point", "Rule", "S3ErrorReply"]

Rule = AnyRule[S3Request]


@dataclass(frozen=True)
class S3ErrorReply(Reply):
    """Reply with an S3 error instead of the server."""

    status: int
    code: str

    def encode(self) -> bytes:
        body = f"<?xml version='1.0'?><Error><Code>{self.code}</Code><Message>by the test</Message></Error>".encode()
        head = f"HTTP/1.1 {self.status} {self.code}\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}\r\n"
        return head.encode() + b"Connection: close\r\n\r\n" + body


class FaultProxy(Relay[S3Request]):
    """A proxy of S3 requests."""

    def _classify(self, number: int, head: Head) -> S3Request:
        return classify(number, head)
