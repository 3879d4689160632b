"""Reads what a table needs of an object, by the format of the object: a sink may have had several outputs."""

from __future__ import annotations

from collections.abc import Mapping

from sink_job.api.errors import TableNotRegistered
from sink_job.ledger.state import ClosedObject
from sink_job.s3 import S3Client
from sink_job.tables.avro_objects.header_reader import AvroHeaderReader, is_avro
from sink_job.tables.files import Bounded, FooterReader, ObjectFooter, ObjectGone
from sink_job.verify.parquet_footers import is_parquet


class MetadataReader:
    """Reads Parquet and Avro objects for a table with these properties; `bounded` as of `FooterReader`. Thread-safe."""

    def __init__(self, s3: S3Client, properties: Mapping[str, str], bounded: Bounded) -> None:
        self._s3 = s3
        self._footers = FooterReader(s3, properties, bounded)
        self._headers = AvroHeaderReader(s3)

    def find(self, o: ClosedObject) -> ObjectFooter | None:
        """As `read`; None if the object does not exist."""
        try:
            return self.read(o)
        except ObjectGone:
            return None

    def read(self, o: ClosedObject) -> ObjectFooter:
        """Raises TableNotRegistered for an object of another format, and as `FooterReader.read`."""
        if is_parquet(o):
            return self._footers.read(o)
        if is_avro(o):
            return self._headers.read(o)
        raise TableNotRegistered(
            f"s3://{self._s3.bucket}/{o.key} is neither a Parquet nor an Avro object: the sink had another "
            "format.output when it wrote it. Such a sink cannot be registered from its beginning"
        )
