"""JSON values with a JSON Schema as Connect's, for transforms."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from sink_job.api.enums import UnknownFields
from sink_job.connect.schema import RegisteredSchema
from sink_job.converters.base import BatchSource, Converted
from sink_job.converters.registered import SchemaSettings
from sink_job.converters.wire_format import Layout, WireFormat
from sink_job.transforms.decoded.json_schema_values import whole_value_converter
from sink_job.transforms.decoded.whole_values import WHOLE
from tests.unit.avro.avro_data import Table, in_wire_format
from tests.unit.json.json_schema.test_converter import FLIGHT, registered


def whole(*payloads: bytes, schema: RegisteredSchema | None = None, **more: Any) -> Converted:
    table = Table({"1": schema or registered(FLIGHT)})
    values = pa.array([in_wire_format(1, each) for each in payloads], pa.binary())
    found = whole_value_converter(SchemaSettings(table, WireFormat(Layout.CONFLUENT), **more))
    return found.convert(values, BatchSource("t"))


def test_values_are_read_under_their_schema() -> None:
    found = whole(b'{"number":1,"carrier":"a"}', b' {"number":2} ')
    assert found.fields[WHOLE] == [{"number": 1, "carrier": "a"}, {"number": 2, "carrier": None}]
    assert found.schemas is not None
    (schema,) = found.schemas.schemas
    assert [(each.name, each.schema.optional) for each in schema.fields] == [("number", False), ("carrier", True)]


def test_a_null_is_no_value() -> None:
    found = whole(b"null", b'{"number":1}')
    assert found.nulls is not None
    assert (found.nulls.tolist(), found.rejected) == ([True, False], [])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"{", "schema 1 (subject "),
        (b'{"number":"x"}', "number: "),
        (b'{"number":1,"other":2}', "other: its schema does not have this property"),
        (b"[" * 5000 + b"]" * 5000, "nested"),
    ],
)
def test_a_value_that_does_not_conform_is_rejected_alone(text: bytes, reason: str) -> None:
    found = whole(text, b'{"number":1}')
    assert [row for row, _ in found.rejected] == [0]
    assert reason in found.rejected[0][1] or reason.startswith("schema 1")
    assert found.fields[WHOLE][1] == {"number": 1, "carrier": None}


def test_unknown_properties_are_dropped_and_counted() -> None:
    found = whole(b'{"number":1,"other":2}', unknown=UnknownFields.DROP)
    assert (found.fields[WHOLE], found.dropped_properties) == ([{"number": 1, "carrier": None}], 1)


def test_a_recursive_schema_cannot_be_transformed() -> None:
    schema = registered({"title": "N", "type": "object", "properties": {"next": {"$ref": "#"}}})
    ((_, reason),) = whole(b"{}", schema=schema).rejected
    assert reason == "schema 1 cannot be used: it is recursive, and spec.transforms cannot change such a schema"
