"""The kind of an S3 request, derived from its method and its path-style address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote, urlsplit

from devtools.faults.http1 import Head

MUTATING = frozenset(
    {
        "CreateMultipartUpload",
        "UploadPart",
        "CompleteMultipartUpload",
        "AbortMultipartUpload",
        "PutObject",
        "PutObjectTagging",
        "CopyObject",
        "UploadPartCopy",
        "DeleteObject",
        "DeleteObjects",
    }
)
"""The kinds that change a bucket: the external effects of a round."""


@dataclass(frozen=True)
class S3Request:
    """A request: `number` counts all from 1, `size` is the length of its body in bytes on the wire."""

    number: int
    kind: str
    bucket: str
    key: str
    part: int | None
    upload_id: str | None
    size: int

    @property
    def mutating(self) -> bool:
        return self.kind in MUTATING


Predicate = Callable[[S3Request], bool]


def classify(number: int, head: Head) -> S3Request:
    """The request of `head`; requests that a sink does not make have the kind `<METHOD>Bucket` or `<METHOD>`."""
    method, target = head.first[0], urlsplit(head.first[1])
    query = {name: values[0] for name, values in parse_qs(target.query, keep_blank_values=True).items()}
    bucket, _, key = unquote(target.path.lstrip("/")).partition("/")
    part = query.get("partNumber")
    return S3Request(
        number=number,
        kind=_object_kind(method, query, head) if key else _bucket_kind(method, query),
        bucket=bucket,
        key=key,
        part=int(part) if part else None,
        upload_id=query.get("uploadId"),
        size=int(head.get("x-amz-decoded-content-length") or head.get("content-length") or 0),
    )


def _object_kind(method: str, query: dict[str, str], head: Head) -> str:
    copies = head.get("x-amz-copy-source") is not None
    if "uploadId" in query:
        kinds = {"POST": "CompleteMultipartUpload", "DELETE": "AbortMultipartUpload", "GET": "ListParts"}
        return kinds.get(method) or ("UploadPartCopy" if copies else "UploadPart")
    if "uploads" in query:
        return "CreateMultipartUpload"
    if "tagging" in query:
        return {"PUT": "PutObjectTagging", "GET": "GetObjectTagging"}.get(method, method)
    if method == "PUT":
        return "CopyObject" if copies else "PutObject"
    return {"GET": "GetObject", "HEAD": "HeadObject", "DELETE": "DeleteObject"}.get(method, method)


def _bucket_kind(method: str, query: dict[str, str]) -> str:
    by_query = {
        "delete": "DeleteObjects",
        "uploads": "ListMultipartUploads",
        "location": "GetBucketLocation",
        "lifecycle": "BucketLifecycle",
        "versioning": "BucketVersioning",
        "object-lock": "BucketObjectLock",
    }
    for name, kind in by_query.items():
        if name in query:
            return kind
    if method == "GET":
        return "ListObjectsV2" if "list-type" in query else "ListObjects"
    return {"PUT": "CreateBucket", "HEAD": "HeadBucket", "DELETE": "DeleteBucket"}.get(method, f"{method}Bucket")


def every(request: S3Request) -> bool:
    """A predicate for `FaultProxy.when`: all requests."""
    return True


def mutating(request: S3Request) -> bool:
    """A predicate for `FaultProxy.when`: requests that change a bucket."""
    return request.mutating


def kind(name: str, *, key: str | None = None, part: int | None = None) -> Predicate:
    """A predicate: requests of this kind; if given, `key` is contained in the object's key and `part` is the part
    number."""

    def matches(request: S3Request) -> bool:
        return request.kind == name and (key is None or key in request.key) and (part is None or request.part == part)

    return matches
