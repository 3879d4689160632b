"""The section spec.transforms: what is done to values before paths and rotation."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field, SerializerFunctionWrapHandler, StrictBool, model_serializer

from sink_job.api.base_model import SpecModel, description
from sink_job.api.enums import CastType, DeletedRows, InsertSource, TimestampType, TransformType, UnixTimeUnit
from sink_job.api.field_types import FieldName, FieldPath, TimestampFormatText, TopicsPattern

MAX_TRANSFORMS: Final = 50
MAX_FIELDS: Final = 100


class _SetFields(SpecModel):
    """A section of which only the fields that are set are written: the ledger compares texts of settings, and a field
    of a later version must not change them."""

    @model_serializer(mode="wrap")
    def _set_fields(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value is not None}


class Predicate(_SetFields):
    """The records that a transform applies to. All conditions that are set must hold."""

    topic: Annotated[TopicsPattern | None, description(example="flights-.*")] = None
    """Regular expression for the whole name of the topic."""
    header: Annotated[FieldName | None, description(example="debug")] = None
    """Name of a header that the record has, with any value."""
    tombstone: StrictBool | None = None
    """Whether the record has no value."""
    field: Annotated[FieldPath | None, description(example="op")] = None
    """A field of the value; use dots for a nested field."""
    values: Annotated[list[str] | None, description(example=["d", "t"], min_length=1, max_length=100)] = None
    """Values of field, as text. Default: any."""
    negated: Annotated[StrictBool, Field(alias="not")] = False
    """Apply the transform to all other records."""


class TransformSpec(_SetFields):
    """One transform of values. The fields of each type are in docs/semantics.md, section 18."""

    type: TransformType
    """What it does, named as in Kafka Connect. Filter leaves out records."""
    when: Predicate | None = None
    """The records that the transform applies to. Default: all. Filter needs it."""
    field: Annotated[FieldName | None, description(example="source_topic")] = None
    """The field of Insert, Extract, Hoist and Timestamp (default: the whole value)."""
    fields: Annotated[
        list[FieldName] | None, description(example=["id", "name"], min_length=1, max_length=MAX_FIELDS)
    ] = None
    """The fields of Keep, Drop and Mask."""
    source: InsertSource | None = None
    """The content of the field of Insert: Timestamp in milliseconds; Text is that of text."""
    text: Annotated[str | None, description(max_length=1024)] = None
    """The content of the field of Insert."""
    required: StrictBool | None = None
    """The field of Insert is not optional, in values with a schema."""
    renames: Annotated[dict[str, FieldName] | None, description(example={"old": "new"}, max_length=MAX_FIELDS)] = None
    """Present and new names of the fields of Rename."""
    replacement: Annotated[str | None, description(example="***", min_length=1, max_length=1024)] = None
    """What Mask writes for texts and numbers. Default: an empty value."""
    casts: Annotated[dict[str, CastType] | None, description(example={"age": "Int32"}, max_length=MAX_FIELDS)] = None
    """The types of the fields of Cast."""
    cast_to: CastType | None = None
    """The type of the whole value of Cast."""
    delimiter: Annotated[str | None, description(example="_", min_length=1, max_length=16)] = None
    """Text between the names of fields for Flatten. Default: a dot."""
    timestamp_type: TimestampType | None = None
    """The form that Timestamp makes. Date, Time and Timestamp need a converter with schemas."""
    timestamp_format: Annotated[TimestampFormatText | None, description(example="yyyy-MM-dd'T'HH:mm:ss.SSSXXX")] = None
    """Pattern of Java's SimpleDateFormat for Timestamp, in UTC."""
    deletes: DeletedRows | None = None
    """What Unwrap makes of deleted rows. Default: Tombstone."""
    add_fields: Annotated[
        list[FieldPath] | None, description(example=["op", "source.ts_ms"], max_length=MAX_FIELDS)
    ] = None
    """Fields of the change event that Unwrap adds to the row."""
    unit: UnixTimeUnit | None = None
    """The unit of numbers for Timestamp. Default: Milliseconds."""

    @property
    def reads_value(self) -> bool:
        """Whether it reads values: a Filter without a field does not, and can be used with each converter."""
        return self.type is not TransformType.FILTER or (self.when is not None and self.when.field is not None)
