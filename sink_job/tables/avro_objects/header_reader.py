"""What a table needs of an Avro object: one HEAD, and one ranged GET of its header.

An Avro object has no statistics of columns and no number of records. The number is that of the ledger. The HEAD proves
the size, and the content where the store has its checksum; the header proves that the object was written for this key.
"""

from __future__ import annotations

from typing import Final

from pyiceberg.manifest import FileFormat

from sink_job.api.errors import TableNotRegistered
from sink_job.avro.container import sync_marker
from sink_job.ledger.state import ClosedObject
from sink_job.ledger.stored_object import compare_stored
from sink_job.s3 import NotFound, PreconditionFailed, S3Client
from sink_job.tables.avro_objects.avro_columns import avro_columns
from sink_job.tables.files import ObjectFooter, ObjectGone, gone, object_url
from sink_job.tables.parquet_schema import ObjectColumns
from sink_job.verify.avro_blocks import AvroBlockReader, AvroHeader
from sink_job.verify.object_reader import ObjectUnreadable

FIRST_READ: Final = 32 << 10
"""Bytes at the beginning of an object that are read first. Most headers fit."""
MAX_HEADER: Final = 64 << 20


def is_avro(o: ClosedObject) -> bool:
    return o.key.endswith(".avro")


class AvroHeaderReader:
    """Reads the headers of Avro objects. Objects with the same schema share their columns. Thread-safe."""

    def __init__(self, s3: S3Client) -> None:
        self._s3 = s3
        self._known: dict[bytes, ObjectColumns] = {}

    def read(self, o: ClosedObject) -> ObjectFooter:
        """What the table gets of `o`; its columns are known by name alone. Raises ObjectGone if the object does not
        exist, TableNotRegistered if it is not as the ledger says, TableIncompatible for columns that no table can have,
        and the errors of the store."""
        url = object_url(self._s3.bucket, o.key)
        header = self._header(o, url)
        text = header.schema or b""
        columns = self._known.get(text)
        if columns is None:
            found = ObjectColumns(avro_columns(text.decode(errors="replace"), url), (), by_name=True)
            columns = self._known.setdefault(text, found)
        fields = {
            "file_path": url,
            "file_format": FileFormat.AVRO,
            "record_count": o.offsets.count,
            "file_size_in_bytes": o.bytes,
            "column_sizes": {},
            "value_counts": {},
            "null_value_counts": {},
            "lower_bounds": {},
            "upper_bounds": {},
            "split_offsets": None,
        }
        return ObjectFooter(o, columns, fields)

    def _header(self, o: ClosedObject, url: str) -> AvroHeader:
        stored = self._s3.head(o.key)
        if stored is None:
            raise ObjectGone(gone(url))
        if (difference := compare_stored(o, stored, size_suffices=True)) is not None:
            raise _differs(url, difference)
        try:
            header = AvroBlockReader(_Beginning(self._s3, o, stored.etag)).header()
        except ObjectUnreadable as error:
            raise _differs(url, str(error)) from None
        except (NotFound, PreconditionFailed):
            raise TableNotRegistered(f"{url} was replaced or removed while it was read: register again") from None
        if header.sync != sync_marker(o.key):
            raise _differs(url, "its sync marker is that of another object")
        return header


class _Beginning:
    """The beginning of an object, which is fetched in steps that become longer."""

    def __init__(self, s3: S3Client, o: ClosedObject, etag: str) -> None:
        self._s3 = s3
        self._object = o
        self._etag = etag
        self._data = b""
        self._at = 0

    def read(self, size: int, /) -> bytes:
        end = self._at + size
        if end > MAX_HEADER:
            raise ObjectUnreadable("a length in its header is damaged")
        while len(self._data) < min(end, self._object.bytes):
            step = max(FIRST_READ, end - len(self._data))
            offset, left = len(self._data), self._object.bytes - len(self._data)
            found = self._s3.get_range(self._object.key, offset, min(step, left), etag=self._etag)
            if not found:
                break
            self._data += found
        found, self._at = self._data[self._at : end], end
        return found


def _differs(url: str, difference: str) -> TableNotRegistered:
    return TableNotRegistered(f"{url} is not as the ledger says: {difference}. s3sink verify says more")
