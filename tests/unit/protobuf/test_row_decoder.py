"""Protobuf values that the Java serializers of Apicurio and AWS Glue have written, with the text they registered."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
import pytest

from sink_job.api.enums import ApicurioIdType
from sink_job.converters.base import BatchSource, Converted
from sink_job.converters.registered import SchemaSettings
from sink_job.converters.wire_format import Layout, WireFormat
from sink_job.protobuf.converter import ProtobufConverter
from tests.support.protobuf_values import WrittenMessage, glue_id, schema_text, written_messages
from tests.unit.avro.avro_data import Table, texts
from tests.unit.protobuf.protobuf_data import registered

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
IDS = ("1", "2", "global-1", "global-2", glue_id())


def converted(layout: Layout, values: Sequence[WrittenMessage], *, is_key: bool = False, **more: object) -> Converted:
    wire_format = WireFormat(layout, is_key=is_key, chooses_message=True, **more)  # type: ignore[arg-type]
    table = Table({schema_id: registered(schema_text(), schema_id) for schema_id in IDS})
    headers = pa.array([[{"key": k, "value": v} for k, v in each.headers] for each in values], HEADERS)
    found = ProtobufConverter(("number",), SchemaSettings(table, wire_format))
    return found.convert(pa.array([each.value for each in values], pa.binary()), BatchSource("flights", headers))


def contents(found: Converted) -> list[object]:
    assert found.rejected == []
    return [json.loads(text or b"") for text in texts(found)]


@pytest.mark.parametrize(
    ("run", "use_id"),
    [
        ("3.1.7 content id", ApicurioIdType.CONTENT_ID),
        ("3.1.7 content id in a header", ApicurioIdType.CONTENT_ID),
        ("3.1.7 content id in a header without the name", ApicurioIdType.CONTENT_ID),
        ("2.6.13 global id in a header", ApicurioIdType.CONTENT_ID),
        ("2.6.13 global id of 8 bytes", ApicurioIdType.GLOBAL_ID),
    ],
)
def test_values_of_apicurio_have_the_message_of_their_name(run: str, use_id: ApicurioIdType) -> None:
    values = written_messages(run)
    assert contents(converted(Layout.APICURIO, values, use_id=use_id)) == [each.message for each in values]


@pytest.mark.parametrize(
    "run", ["3.1.7 key", "3.1.7 key with the id in a header", "2.6.13 key with the id in a header"]
)
def test_keys_of_apicurio_have_the_message_of_their_name(run: str) -> None:
    values = written_messages(run)
    found = converted(Layout.APICURIO, values, is_key=True)
    assert contents(found) == [each.message for each in values]
    assert found.fields["number"] == [each.message["number"] for each in values]


def test_values_of_apicurio_with_message_indexes_are_rejected() -> None:
    found = converted(Layout.APICURIO, written_messages("3.1.7 message indexes"))
    assert [row for row, _ in found.rejected] == [0, 1, 2, 3]
    assert "does not start with the name of its message" in found.rejected[0][1]


def test_a_name_that_the_schema_lacks_is_rejected_alone() -> None:
    values = written_messages("2.6.13 global id in a header")
    other = [(name, b"Flihgt" if name == "apicurio.protobuf.type" else value) for name, value in values[0].headers]
    found = converted(Layout.APICURIO, [WrittenMessage({}, values[0].value, other), *values[1:]])
    assert found.rejected == [(0, "schema global-1: the schema has no message 'Flihgt' outside of other messages")]


@pytest.mark.parametrize("run", ["Glue uncompressed", "Glue zlib"])
def test_values_of_glue_have_the_message_with_their_position(run: str) -> None:
    values = written_messages(run)
    assert contents(converted(Layout.GLUE, values)) == [each.message for each in values]


def test_values_of_glue_can_be_messages_in_others() -> None:
    found = converted(Layout.GLUE, written_messages("Glue nested"))
    assert contents(found) == [{"text": "ä9"}]
    assert found.schemas is not None
    assert [schema.name for schema in found.schemas.schemas] == ["Reason"]
