"""Stands between an S3 client and its server: `devtools.faults.proxy` with S3's requests and errors.

Addresses are path-style; the client's Host header goes on unchanged, so signatures hold.
"""

from __future__ import annotations

from dataclasses import dataclass

from devtools.faults.http1 import Head
from devtools.faults.proxy import Drop, Hold, Kill, Point, Relay, Reply
from devtools.faults.proxy import Rule as AnyRule
from devtools.faults.s3_requests import Request, classify

__all__ = ["Answer", "Drop", "FaultProxy", "Hold", "Kill", "Point", "Rule"]

Rule = AnyRule[Request]


@dataclass(frozen=True)
class Answer(Reply):
    """Answer in the server's place with an S3 error."""

    status: int
    code: str

    def encode(self) -> bytes:
        body = f"<?xml version='1.0'?><Error><Code>{self.code}</Code><Message>by the test</Message></Error>".encode()
        head = f"HTTP/1.1 {self.status} {self.code}\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}\r\n"
        return head.encode() + b"Connection: close\r\n\r\n" + body


class FaultProxy(Relay[Request]):
    """A proxy of S3 requests."""

    def _classify(self, number: int, head: Head) -> Request:
        return classify(number, head)
