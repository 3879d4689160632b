"""A VersityGW of a test's own with a bucket, and uploads to it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TypeVar

from devtools.s3 import VersityGW
from sink_job.s3 import (
    RetryPolicy,
    S3Client,
    UploadedPart,
)

MIN_PART = 5 << 20
QUICK = RetryPolicy(max_elapsed_s=1.0, first_s=0.01, cap_s=0.2)


Server = TypeVar("Server", bound=VersityGW)


@contextlib.contextmanager
def running(server: Server) -> Iterator[Server]:
    """A server with a bucket `archive`."""
    (server.directory / "data" / "archive").mkdir(parents=True)
    server.start()
    try:
        yield server
    finally:
        server.kill()


def upload_parts(s3: S3Client, key: str, *contents: bytes) -> tuple[str, list[UploadedPart]]:
    upload_id = s3.create_upload(key)
    return upload_id, [s3.upload_part(key, upload_id, n, body) for n, body in enumerate(contents, start=1)]


def uploads_of(s3: S3Client, key: str) -> list[str]:
    return [upload.upload_id for upload in s3.list_uploads(key)]
