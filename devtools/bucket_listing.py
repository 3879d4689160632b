"""The content of a bucket: objects, their lines, and unfinished uploads."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from sink_job.formats.compression import zstd

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_LEDGER = "_s3sink/"


def objects(client: S3Client, bucket: str, prefix: str = "", *, ledger: bool = False) -> dict[str, int]:
    """Maps keys to sizes in bytes, ordered by key; includes the sink's own files under _s3sink/ only with `ledger`."""
    found = {}
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        found.update({each["Key"]: each["Size"] for each in page.get("Contents", [])})
    return {key: size for key, size in found.items() if ledger or _LEDGER not in key}


def body(client: S3Client, bucket: str, key: str) -> bytes:
    """The stored bytes of an object."""
    return client.get_object(Bucket=bucket, Key=key)["Body"].read()


def lines(client: S3Client, bucket: str, key: str) -> list[bytes]:
    """The lines of an object, decompressed if its key ends with .gz or .zst."""
    return decompressed(body(client, bucket, key), key).splitlines()


def decompressed(content: bytes, key: str) -> bytes:
    """`content`, decompressed if the key ends with .gz or .zst (one or several gzip members or zstd frames)."""
    if key.endswith(".gz"):
        return _gunzip(content)
    return zstd.decompress(content) if key.endswith(".zst") else content


def uploads(client: S3Client, bucket: str) -> dict[str, str]:
    """Maps the ids of unfinished multipart uploads to their keys."""
    found = {}
    for page in client.get_paginator("list_multipart_uploads").paginate(Bucket=bucket):
        found.update({each["UploadId"]: each["Key"] for each in page.get("Uploads", [])})
    return found


def clear(client: S3Client, bucket: str) -> None:
    """Deletes all objects and aborts all uploads."""
    for key in objects(client, bucket, ledger=True):
        client.delete_object(Bucket=bucket, Key=key)
    for upload_id, key in uploads(client, bucket).items():
        client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload_id)


def _gunzip(content: bytes) -> bytes:
    chunks = []
    while content:
        member = zlib.decompressobj(wbits=31)
        chunks.append(member.decompress(content))
        content = member.unused_data
    return b"".join(chunks)
