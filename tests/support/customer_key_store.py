"""A proxy that treats keys of customers (SSE-C) as S3 documents it, before a server that does not know them.

What an object was written with is needed for each part, the completion, HEAD and GET; other requests are rejected. The
server encrypts nothing.
"""

from __future__ import annotations

from devtools.faults.http1 import Head
from devtools.faults.s3_proxy import FaultProxy, S3ErrorReply
from devtools.faults.s3_requests import S3Request

_PREFIX = "x-amz-server-side-encryption-customer"
_NEED_A_KEY = ("PutObject", "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload", "HeadObject", "GetObject")


class CustomerKeyStore(FaultProxy):
    """`keys` and `uploads`: the MD5 of the key of each object and upload, by its key; empty for one without.
    `rejected`: the requests with another key. `demands`: writes without a key are rejected. It reports
    the encryption AES256 for each object without a key, as S3 does."""

    def __init__(self, upstream: str) -> None:
        super().__init__(upstream)
        self.keys: dict[str, str] = {}
        self.uploads: dict[str, str] = {}
        self.rejected: list[S3Request] = []
        self.demands = True
        self._sent: dict[int, tuple[str, bool]] = {}
        self.watch()

    def watch(self) -> None:
        """Adds the rule of the keys, again after `resume`."""
        self.when(self._is_rejected, S3ErrorReply(400, "InvalidRequest"), times=None)

    def _classify(self, number: int, head: Head) -> S3Request:
        self._sent[number] = head.get(f"{_PREFIX}-key-md5") or "", head.get("if-none-match") is not None
        return super()._classify(number, head)

    def _replied(self, request: S3Request, answer: Head) -> Head:
        if request.kind not in ("HeadObject", "GetObject"):
            return answer
        has_key = self.keys.get(request.key)
        return answer.adding(f"{_PREFIX}-algorithm" if has_key else "x-amz-server-side-encryption", "AES256")

    def _is_rejected(self, request: S3Request) -> bool:
        if request.kind not in _NEED_A_KEY:
            return False
        md5, is_conditional = self._sent[request.number]
        is_kept = is_conditional and request.key in self.keys
        if request.kind in ("PutObject", "CreateMultipartUpload"):
            if not is_kept:
                (self.keys if request.kind == "PutObject" else self.uploads)[request.key] = md5
            return not md5 and self.demands
        of_upload = request.kind in ("UploadPart", "CompleteMultipartUpload")
        known = (self.uploads if of_upload else self.keys).get(request.key)
        if known not in (None, md5):
            self.rejected.append(request)
            return True
        if request.kind == "CompleteMultipartUpload" and not is_kept:
            self.keys[request.key] = md5
        return False
