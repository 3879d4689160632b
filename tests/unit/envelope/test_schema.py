"""The schema of an envelope: around that of the value, with the key as its producer wrote it."""

from __future__ import annotations

import msgspec
import pytest

from sink_job.api.enums import OutputFormat
from sink_job.avro.encoder import datum_encoder
from sink_job.avro.to_connect import UNION
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.json_encoder import with_default
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.envelope.schema import (
    KEY_BYTES,
    KEY_TEXT,
    check_envelope,
    envelope_schema,
    key_branches,
    key_field,
    value_schema,
)

VALUE = Schema(
    SchemaType.STRUCT,
    name="Flight",
    version=3,
    subject="flights-value",
    fields=(Field("n", Schema(SchemaType.INT64)),),
)
LONG = Schema(SchemaType.INT64)
MEMBERS = tuple(
    Field(name, Schema(kind, optional=True))
    for name, kind in (("long", SchemaType.INT64), ("string", SchemaType.STRING))
)
KEY_UNION = Schema(SchemaType.STRUCT, name=UNION, fields=MEMBERS)


def test_an_envelope_has_the_value_as_it_came_and_the_version_that_is_compared() -> None:
    found = envelope_schema(VALUE, KEY_BYTES)
    assert [field.name for field in found.fields] == [
        "key", "headers", "timestamp", "timestampType", "topic", "partition", "offset", "value",
    ]  # fmt: skip
    assert value_schema(found) == VALUE
    assert (found.version, found.subject) == (3, "flights-value")


def test_another_schema_of_the_key_makes_another_envelope() -> None:
    assert envelope_schema(VALUE, KEY_TEXT) != envelope_schema(VALUE, KEY_BYTES)


@pytest.mark.parametrize("key", [LONG, KEY_BYTES, msgspec.structs.replace(LONG, optional=True)])
def test_a_record_may_have_no_key(key: Schema) -> None:
    assert key_field(key).optional
    assert msgspec.structs.replace(key_field(key), optional=key.optional) == key


def test_a_union_as_key_is_not_put_into_another_union() -> None:
    assert key_field(KEY_UNION) == KEY_UNION


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (LONG, 7),
        (msgspec.structs.replace(LONG, optional=True), 7),
        (with_default(LONG, 5), 7),
        (with_default(msgspec.structs.replace(LONG, optional=True), 5), 7),
        (KEY_TEXT, "k"),
    ],
    ids=["required", "optional", "default", "optional with a default", "text"],
)
def test_the_data_of_a_key_follow_the_branch_of_the_field(key: Schema, value: object) -> None:
    settings = DatumSettings()
    prefix, null = key_branches(key)
    field = datum_encoder(key_field(key), settings)
    assert prefix + datum_encoder(key, settings)(value) == field(value)
    if key.default is None:
        assert null == field(None)


@pytest.mark.parametrize("output", [OutputFormat.AVRO, OutputFormat.PARQUET])
def test_a_value_that_the_output_can_express_is_accepted(output: OutputFormat) -> None:
    check_envelope(envelope_schema(VALUE, KEY_TEXT), DatumSettings(output))


@pytest.mark.parametrize("output", [OutputFormat.AVRO, OutputFormat.PARQUET])
def test_a_value_that_the_output_cannot_express_is_rejected(output: OutputFormat) -> None:
    deep = Schema(SchemaType.INT64)
    for _ in range(200):
        deep = Schema(SchemaType.STRUCT, name="s", fields=(Field("f", deep),))
    with pytest.raises(InvalidSchema):
        check_envelope(envelope_schema(deep, KEY_TEXT), DatumSettings(output))


def test_a_value_in_parquet_needs_a_column() -> None:
    empty = Schema(SchemaType.STRUCT, name="empty", fields=())
    with pytest.raises(InvalidSchema):
        check_envelope(envelope_schema(empty, KEY_TEXT), DatumSettings(OutputFormat.PARQUET))
