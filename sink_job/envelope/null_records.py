"""Records without a value in an envelope: how they are written, and under which schema.

`errors.onNullValue: Write`. The schema is an envelope without a value, or NULL_RECORD where objects contain no schema.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from sink_job.arrow.arrays import Mask
from sink_job.connect.schema import Schema, SchemaType
from sink_job.converters.base import SchemaColumn
from sink_job.records.batch import NullRecords
from sink_job.records.fields import Rejections

NULL_RECORD: Final = Schema(SchemaType.STRUCT, name="s3sink.NullRecord")
"""The schema of a record without a value in objects that contain no schema."""


NAME: Final = "s3sink.Envelope"
VALUE_IS_NULL: Final = "valueIsNull"


def is_null_record(schema: Schema) -> bool:
    """Whether it is the schema of records without a value alone."""
    return schema == NULL_RECORD or (schema.name == NAME and schema.fields[-1].name == VALUE_IS_NULL)


class WrittenNulls(NamedTuple):
    """How records without a value are written (`errors.onNullValue: Write`), and those whose value is null for its
    converter. `apart`: on a path of their own. `separate`: a path has one open object for each schema."""

    apart: bool
    separate: bool

    @property
    def follow(self) -> bool:
        """Whether they are under the schema of the record before them. Otherwise their own schema, which is that of an
        envelope without a value, closes no object."""
        return not self.apart and not self.separate


class EnvelopeSchemas(NamedTuple):
    """The schemas of the records of a batch: the codes of records without a value may be ANY_SCHEMA, which `nulls`
    explains. `without_value`: a mask of these records; None if there are none, or they are not written."""

    schemas: SchemaColumn | None
    rejected: Rejections
    nulls: NullRecords | None = None
    without_value: Mask | None = None
