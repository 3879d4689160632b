"""Uploads the recorded bytes of an object from an older version of it, in a bucket with versioning."""

from __future__ import annotations

from collections.abc import Iterator

from sink_job.api.errors import AccessDenied, UnsupportedStore
from sink_job.ledger.state import ClosedObject, Part
from sink_job.ledger.stored_object import multipart_etag
from sink_job.maintenance.repair.replacement import RecordedBytes
from sink_job.s3 import NotFound, S3Client, S3Outcome, UploadedPart, Version
from sink_job.s3.checksums import crc64nvme


class VersionSource:
    """Finds versions with the recorded bytes. `note` is set if the versions of the bucket cannot be listed."""

    def __init__(self, s3: S3Client) -> None:
        self._s3 = s3
        self.note: str | None = None

    def candidates(self, o: ClosedObject) -> list[Version]:
        """The older versions that may have the recorded bytes, the likely ones first: they have the recorded size."""
        if self.note is not None:
            return []
        try:
            versions = self._s3.versions(o.key)
        except (AccessDenied, UnsupportedStore) as error:
            self.note = f"older versions of objects were not searched: {error}"
            return []
        etag = multipart_etag(o)
        sized = [version for version in versions if version.size == o.bytes and not version.is_latest]
        return sorted(sized, key=lambda version: version.etag.strip('"') != etag)

    def holds(self, o: ClosedObject) -> bool:
        """Whether an older version has the recorded bytes; reads it."""
        versions = self.candidates(o)
        return any(sum(1 for _ in self._recorded_parts(o, version)) == len(o.parts) for version in versions)

    def upload(self, o: ClosedObject) -> RecordedBytes | None:
        """Uploads the recorded parts from the first version that has them; None if none has. Raises S3Outcome if
        another process aborts the upload."""
        for version in self.candidates(o):
            if (content := self._upload(o, version)) is not None:
                return content
        return None

    def _recorded_parts(self, o: ClosedObject, version: Version) -> Iterator[tuple[Part, bytes]]:
        """The parts of the version up to the first one with another checksum than the ledger's."""
        position = 0
        for part in o.parts:
            try:
                content = self._s3.get_range(o.key, position, part.size, version=version.version_id)
            except NotFound:  # a lifecycle rule has removed the version
                return
            if len(content) != part.size or crc64nvme(content) != part.crc:
                return
            yield part, content
            position += part.size

    def _upload(self, o: ClosedObject, version: Version) -> RecordedBytes | None:
        upload: str | None = None
        parts: list[UploadedPart] = []
        try:
            for part, content in self._recorded_parts(o, version):
                if upload is None:
                    upload = self._s3.create_upload(o.key)
                parts.append(self._s3.upload_part(o.key, upload, part.number, content, part.crc))
        except S3Outcome:
            if upload is not None:
                self._s3.abort(o.key, upload)
            raise
        if upload is None or len(parts) == len(o.parts):
            return None if upload is None else RecordedBytes(upload, parts)
        self._s3.abort(o.key, upload)
        return None
