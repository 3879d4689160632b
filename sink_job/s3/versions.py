"""Versions of objects, which a bucket with versioning keeps when an object is replaced or deleted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sink_job.s3.bucket import millis
from sink_job.s3.transport import Transport

__all__ = ["Version", "VersionCalls"]


@dataclass(frozen=True, slots=True)
class Version:
    """A version of an object. `size` is in bytes, `last_modified_ms` in ms since the epoch. `is_latest`: it is the
    object itself, not an older version."""

    key: str
    version_id: str
    size: int
    etag: str
    last_modified_ms: int
    is_latest: bool


class VersionCalls:
    """The requests about versions. Each raises ConfigurationError and TransientError."""

    _transport: Transport

    def versions(self, key: str, *, page: int = 1000) -> Sequence[Version]:
        """All versions of an object, the newest first, without delete markers. A bucket without versioning has one
        version of an object at most. Fetches pages of `page` versions.

        Raises AccessDenied without s3:ListBucketVersions, UnsupportedStore for a store without versions.
        """
        found: list[Version] = []
        params: dict[str, Any] = {"Prefix": key, "MaxKeys": page}
        while True:
            answer = self._transport.call("list_object_versions", **params)
            found += [_version(each) for each in answer.get("Versions", ()) if each["Key"] == key]
            # The key itself is listed before all longer keys with this prefix.
            if not answer.get("IsTruncated") or answer.get("NextKeyMarker") != key:
                return found
            params["KeyMarker"] = answer["NextKeyMarker"]
            params["VersionIdMarker"] = answer["NextVersionIdMarker"]


def _version(listed: Mapping[str, Any]) -> Version:
    return Version(
        key=listed["Key"],
        version_id=listed["VersionId"],
        size=listed["Size"],
        etag=listed.get("ETag", ""),
        last_modified_ms=millis(listed["LastModified"]),
        is_latest=listed.get("IsLatest", False),
    )
