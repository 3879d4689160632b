"""A store in memory that has all that a sink needs, until a test takes something away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sink_job.s3 import ChecksumMismatch, UploadedPart
from sink_job.s3.request_body import Body, ChunkedBody
from tests.support.memory_s3 import NOW, MemoryS3

NAMES = ["access", "clock", "object lock", "conditional writes", "multipart upload", "checksums", "lifecycle rules"]
"""The checks, in their order."""


class Store(MemoryS3):
    """Passes all checks."""

    def __init__(self) -> None:
        super().__init__()
        self.clock: int | None = NOW
        self.verifies_checksums = True
        self.rules: Sequence[Mapping[str, Any]] = (
            {"Status": "Enabled", "Filter": {}, "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}},
        )

    def clock_ms(self) -> int | None:
        return self.clock

    def lifecycle_rules(self) -> Sequence[Mapping[str, Any]]:
        self.fault("lifecycle_rules", "")
        return self.rules

    def keeps_versions(self) -> bool:
        return False

    def upload_part(self, key: str, upload_id: str, number: int, body: Body, crc: int | None = None) -> UploadedPart:
        if self.verifies_checksums and crc not in (None, ChunkedBody(body).crc64nvme()):
            raise ChecksumMismatch(key, key)
        return super().upload_part(key, upload_id, number, body)
