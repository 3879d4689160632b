"""A proxy that rejects an object whose parts have different sizes, apart from the last, as Cloudflare R2 does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from devtools.faults.s3_proxy import FaultProxy, S3ErrorReply
from devtools.faults.s3_requests import S3Request


@contextmanager
def equal_parts_only(endpoint: str) -> Iterator[Any]:
    """A server before that of `endpoint`. It has the attribute `endpoint`, too, and `rejected`: the number of rejected
    completions."""
    sizes: dict[str | None, dict[int, int]] = defaultdict(dict)

    def is_rejected(request: S3Request) -> bool:
        if request.kind == "UploadPart" and request.part is not None:
            sizes[request.upload_id][request.part] = request.size
        if request.kind != "CompleteMultipartUpload":
            return False
        found = [size for _, size in sorted(sizes[request.upload_id].items())]
        return any(size != found[0] for size in found[:-1]) or found[-1] > found[0]

    with FaultProxy(endpoint) as proxy:
        rule = proxy.when(is_rejected, S3ErrorReply(400, "InvalidPart"), times=None)
        yield SimpleNamespace(endpoint=proxy.endpoint, rejected=lambda: len(rule.fired))
