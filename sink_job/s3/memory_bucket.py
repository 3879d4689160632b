"""A bucket in memory behind the ordinary client, for `s3sink plan`: it counts requests and keeps no data of objects.

It answers the requests that a driver sends, with the conditions that the protocol depends on. Of a completed upload it
keeps size, checksum and time; what was put (ledger, ownership, staging) it keeps whole.
"""

import hashlib
import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from botocore.exceptions import ClientError

from sink_job.s3 import checksums
from sink_job.s3.client import S3Client
from sink_job.s3.request_body import ChunkedBody
from sink_job.s3.request_metrics import RequestMetrics
from sink_job.s3.settings import S3Settings
from sink_job.s3.transport import Transport

__all__ = ["MemoryBucket"]

_STATUS: Final = {"PreconditionFailed": 412, "NoSuchKey": 404, "404": 404, "NoSuchUpload": 404, "InvalidPart": 400}


@dataclass
class _Stored:
    body: bytes | None
    size: int
    crc: int
    etag: str
    at: int


@dataclass
class _Upload:
    key: str
    at: int
    sizes: dict[int, int] = field(default_factory=dict)


class MemoryBucket(S3Client):
    """A client of its own bucket in memory. `clock` returns the time of changes in ms since the epoch."""

    def __init__(self, settings: S3Settings, clock: Callable[[], int]) -> None:
        self.settings = settings
        self._transport = _MemoryTransport(settings, clock)


class _MemoryTransport(Transport):
    """Answers each request at once. One request at a time."""

    def __init__(self, settings: S3Settings, clock: Callable[[], int]) -> None:
        self.settings = settings
        self.meter = RequestMetrics()
        self._credentials = None
        self._names = _OperationNames()
        self._jitter = random.Random()
        self._cancelled = threading.Event()
        self._date = None
        self._clock = clock
        self._objects: dict[str, _Stored] = {}
        self._uploads: dict[str, _Upload] = {}
        self._changes = 0
        self._lock = threading.Lock()

    def close(self) -> None:
        """There is no connection."""

    def once(
        self, operation: str, *, key: str | None, body: ChunkedBody | None = None, again: bool, **params: Any
    ) -> Mapping[str, Any]:
        """Answers as botocore does. Raises ClientError, and NotImplementedError for a request that no driver sends."""
        self.meter.request(self._names[operation], sent=0 if body is None else len(body), again=again)
        handler: Callable[..., Mapping[str, Any]] | None = getattr(self, f"_{operation}", None)
        if handler is None:
            raise NotImplementedError(f"a bucket in memory does not know {operation}")
        with self._lock:
            answer = handler(params) if key is None else handler(key, params, body)
        return {"ResponseMetadata": {"HTTPHeaders": {}}, **answer}

    # -- objects -----------------------------------------------------------------------------------------------------

    def _put_object(self, key: str, params: Mapping[str, Any], body: ChunkedBody) -> Mapping[str, Any]:
        self._check_condition("PutObject", key, params)
        body.seek(0)
        data = bytes(body.read())
        return {"ETag": self._store(key, _Stored(data, len(data), checksums.crc64nvme(data), "", 0))}

    def _store(self, key: str, stored: _Stored) -> str:
        """Stores an object; returns its ETag."""
        self._changes += 1
        stored.etag = f'"{hashlib.md5(str(self._changes).encode(), usedforsecurity=False).hexdigest()}"'
        stored.at = self._clock()
        self._objects[key] = stored
        return stored.etag

    def _check_condition(self, operation: str, key: str, params: Mapping[str, Any]) -> None:
        found, expected = self._objects.get(key), params.get("IfMatch")
        if ("IfNoneMatch" in params and found is not None) or (
            expected is not None and (found is None or found.etag != expected)
        ):
            raise _error("PreconditionFailed", operation)

    def _get_object(self, key: str, params: Mapping[str, Any], _: ChunkedBody | None) -> Mapping[str, Any]:
        stored = self._stored(key, "GetObject")
        self._check_condition("GetObject", key, params)
        data = stored.body or b""
        if "Range" in params:
            first, last = map(int, str(params["Range"]).removeprefix("bytes=").split("-"))
            data = data[first : last + 1]
        return {"Body": _Stream(data), "ETag": stored.etag}

    def _head_object(self, key: str, params: Mapping[str, Any], _: ChunkedBody | None) -> Mapping[str, Any]:
        stored = self._objects.get(key)
        if stored is None:
            raise _error("404", "HeadObject")
        return {
            "ContentLength": stored.size,
            "ETag": stored.etag,
            "ChecksumCRC64NVME": checksums.b64(stored.crc),
            "LastModified": _moment(stored.at),
        }

    def _stored(self, key: str, operation: str) -> _Stored:
        if key not in self._objects:
            raise _error("NoSuchKey", operation)
        return self._objects[key]

    def _list_objects_v2(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        prefix, after = (
            str(params.get("Prefix", "")),
            str(params.get("ContinuationToken", params.get("StartAfter", ""))),
        )
        keys = sorted(key for key in self._objects if key.startswith(prefix) and key > after)
        page = keys[: int(params["MaxKeys"])]
        contents = [
            {"Key": key, "Size": it.size, "ETag": it.etag, "LastModified": _moment(it.at)}
            for key in page
            for it in [self._objects[key]]
        ]
        more = {"IsTruncated": True, "NextContinuationToken": page[-1]} if page and len(keys) > len(page) else {}
        return {"Contents": contents, **more}

    def _delete_objects(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        for each in params["Delete"]["Objects"]:
            self._objects.pop(each["Key"], None)
        return {}

    def _put_object_tagging(self, key: str, params: Mapping[str, Any], _: ChunkedBody | None) -> Mapping[str, Any]:
        self._stored(key, "PutObjectTagging")
        return {}

    # -- uploads -----------------------------------------------------------------------------------------------------

    def _create_multipart_upload(self, key: str, params: Mapping[str, Any], _: ChunkedBody | None) -> Mapping[str, Any]:
        self._changes += 1
        upload_id = f"upload-{self._changes}"
        self._uploads[upload_id] = _Upload(key, self._clock())
        return {"UploadId": upload_id}

    def _upload_part(self, key: str, params: Mapping[str, Any], body: ChunkedBody) -> Mapping[str, Any]:
        upload = self._upload(params["UploadId"], "UploadPart")
        upload.sizes[params["PartNumber"]] = len(body)
        return {"ETag": f'"part-{params["ChecksumCRC64NVME"]}"'}

    def _complete_multipart_upload(
        self, key: str, params: Mapping[str, Any], _: ChunkedBody | None
    ) -> Mapping[str, Any]:
        upload = self._upload(params["UploadId"], "CompleteMultipartUpload")
        self._check_condition("CompleteMultipartUpload", key, params)
        numbers = [part["PartNumber"] for part in params["MultipartUpload"]["Parts"]]
        if any(number not in upload.sizes for number in numbers):
            raise _error("InvalidPart", "CompleteMultipartUpload")
        del self._uploads[params["UploadId"]]
        size = sum(upload.sizes[number] for number in numbers)
        return {"ETag": self._store(key, _Stored(None, size, checksums.from_b64(params["ChecksumCRC64NVME"]), "", 0))}

    def _abort_multipart_upload(self, key: str, params: Mapping[str, Any], _: ChunkedBody | None) -> Mapping[str, Any]:
        self._upload(params["UploadId"], "AbortMultipartUpload")
        del self._uploads[params["UploadId"]]
        return {}

    def _list_multipart_uploads(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        found = sorted((it.key, name, it.at) for name, it in self._uploads.items())
        return {
            "Uploads": [
                {"Key": key, "UploadId": name, "Initiated": _moment(at)}
                for key, name, at in found
                if key.startswith(params["Prefix"])
            ]
        }

    def _upload(self, upload_id: str, operation: str) -> _Upload:
        if upload_id not in self._uploads:
            raise _error("NoSuchUpload", operation)
        return self._uploads[upload_id]

    # -- the bucket --------------------------------------------------------------------------------------------------

    def _get_bucket_lifecycle_configuration(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        rule = {"Status": "Enabled", "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 30}, "Prefix": ""}
        return {"Rules": [rule]}

    def _get_bucket_versioning(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        return {}

    def _get_object_lock_configuration(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        return {}


class _OperationNames(dict[str, str]):
    """S3's operations by botocore's names of methods, such as PutObject by put_object."""

    def __missing__(self, method: str) -> str:
        return method.replace("_", " ").title().replace(" ", "")


class _Stream:
    """The body of an answer."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self) -> bytes:
        return self._data

    def close(self) -> None:
        """There is no connection."""


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms // 1000, UTC)


def _error(code: str, operation: str) -> ClientError:
    answer: Any = {"Error": {"Code": code, "Message": code}, "ResponseMetadata": {"HTTPStatusCode": _STATUS[code]}}
    return ClientError(answer, operation)
