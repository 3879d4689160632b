"""Paths and times from keys, headers, topic and partition: which columns are read, and which records are rejected."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from sink_job.api.enums import ConverterType, OnNullValue
from sink_job.api.sections.job_sections import ErrorsSpec
from sink_job.api.topic_partition import TopicPartition
from sink_job.codecs.required_columns import required_columns
from sink_job.connect.errors import UnknownSchema
from sink_job.connect.schema import RegisteredSchema
from sink_job.records.batch import REJECTED, REJECTED_PATH
from sink_job.writer.record_pipeline import PreparedBatch, RecordPipeline
from sink_job.writer.schema_stores import SchemaStores
from tests.unit.plain.encoders import ENCODERS, Pairs, encoded
from tests.unit.rotation.settings import object_settings

TP = TopicPartition("t", 3)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
AVRO_KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
ID_OF_KEY = 5
WIRE_FORMAT = {"type": "Confluent", "subjects": "TopicName", "idIn": "Either"}
Headers = Sequence[tuple[str, bytes | None]]


class Table:
    """The schemas of a registry. Ids of keys have the prefix `key-`."""

    def __init__(self, schemas: Mapping[str, RegisteredSchema | None]) -> None:
        self._schemas = schemas

    def find(self, topic: str, schema_id: str) -> RegisteredSchema | None:
        if schema_id not in self._schemas:
            raise UnknownSchema(f"the registry does not know {schema_id}")
        return self._schemas[schema_id]


KEYS = Table({f"key-{ID_OF_KEY}": RegisteredSchema("key-5", "AVRO", json.dumps(AVRO_KEY))})


def by_field(*names: str, **sections: Any) -> dict[str, Any]:
    return {"partitioner": {"type": "Field", "fields": list(names)}, **sections}


def pipeline(on_null: OnNullValue = OnNullValue.FAIL, table: Table | None = None, **sections: Any) -> RecordPipeline:
    return RecordPipeline.of(object_settings(**sections), ErrorsSpec(on_null_value=on_null), SchemaStores(table))


def prepare(
    found: RecordPipeline,
    n: int = 1,
    *,
    values: Sequence[bytes | None] | None = None,
    keys: Sequence[bytes | None] | None = None,
    headers: Sequence[Headers] | None = None,
) -> PreparedBatch:
    """Prepares records with the columns that the pipeline asks for."""
    n = len(values or keys or headers or [None] * n)
    columns = {"offset": pa.array(range(10, 10 + n), pa.int64()), "value": pa.array(values or [b"{}"] * n, pa.binary())}
    required = required_columns(found.object_settings)
    if required.key:
        columns["key"] = pa.array(keys or [None] * n, pa.binary())
    if required.headers:
        given = [[{"key": name, "value": value} for name, value in each] or None for each in headers or [()] * n]
        columns["headers"] = pa.array(given, HEADERS)
    return found.prepare(pa.record_batch(columns), 0, TP)


def paths(prepared: PreparedBatch) -> list[str | None]:
    rows = prepared.rows
    return [rows.paths[code] if code >= 0 else None for code in rows.codes.tolist()]


def messages(prepared: PreparedBatch) -> list[tuple[int, str]]:
    return [(error.row, error.message) for error in prepared.errors]


# -- columns -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sections", "key", "headers"),
    [
        ({}, False, False),
        (by_field("a.b", "$value.$x", "$topic", "$partition"), False, False),
        (by_field("$header.tenant"), False, True),
        (by_field("$key", format={"keyConverter": "Text"}), True, False),
        (by_field("$key.id", format={"keyConverter": "Avro"}, wire_format=WIRE_FORMAT), True, True),
        (
            by_field("$key.id", format={"keyConverter": "Avro"}, wire_format=WIRE_FORMAT | {"idIn": "Value"}),
            True,
            False,
        ),
    ],
    ids=["none", "value", "header", "key", "registered key", "registered key without headers"],
)
def test_key_and_headers_are_read_only_if_paths_need_them(sections: Any, key: bool, headers: bool) -> None:
    columns = required_columns(object_settings(**sections))
    assert (columns.key, columns.headers, columns.timestamp) == (key, headers, False)


# -- headers, topic and partition --------------------------------------------------------------------------------------


def test_a_header_is_a_path_element_without_the_dollar_sign() -> None:
    found = pipeline(**by_field("$header.tenant"))
    assert paths(prepare(found, headers=[[("tenant", b"acme")], [("other", b"x"), ("tenant", "zoë".encode())]])) == [
        "header.tenant=acme",
        "header.tenant=zoë",
    ]


def test_the_last_header_of_a_name_counts() -> None:
    found = pipeline(**by_field("$header.tenant"))
    assert paths(prepare(found, headers=[[("tenant", b"a"), ("tenant", b"b"), ("x", b"c")]])) == ["header.tenant=b"]


def test_the_name_of_a_header_can_have_dots() -> None:
    found = pipeline(**by_field("$header.x.tenant"))
    assert paths(prepare(found, headers=[[("x.tenant", b"a")]])) == ["header.x.tenant=a"]


def test_a_header_with_null_is_null_in_the_path() -> None:
    assert paths(prepare(pipeline(**by_field("$header.a")), headers=[[("a", None)]])) == ["header.a=null"]


def test_a_record_without_the_header_is_a_data_error() -> None:
    prepared = prepare(pipeline(**by_field("$header.a")), headers=[[("a", b"1")], [("b", b"1")], []])
    assert messages(prepared) == [(row, 'field "$header.a" is missing') for row in (1, 2)]
    assert prepared.rows.codes.tolist() == [0, REJECTED_PATH, REJECTED_PATH]


def test_a_header_that_is_not_utf8_is_a_data_error() -> None:
    prepared = prepare(pipeline(**by_field("$header.a")), headers=[[("a", b"\xff")]])
    assert messages(prepared) == [(0, 'field "$header.a" holds bytes, not text, an integer or a boolean')]


def test_a_header_cannot_leave_its_directory() -> None:
    prepared = prepare(pipeline(**by_field("$header.a")), headers=[[("a", b"../x")], [("a", b"..")]])
    assert paths(prepared) == ["header.a=..%2Fx", "header.a=%2E%2E"]


def test_topic_and_partition_are_path_elements() -> None:
    assert paths(prepare(pipeline(**by_field("$partition", "$topic")), 2)) == ["partition=3/topic=t"] * 2


def test_fields_of_all_places_are_in_the_order_of_the_spec() -> None:
    found = pipeline(**by_field("$header.a", "key", "$key", "$value.$x", format={"keyConverter": "Text"}))
    prepared = prepare(found, values=[b'{"key":1,"$x":true}'], keys=[b"k"], headers=[[("a", b"h")]])
    assert paths(prepared) == ["header.a=h/key=1/key=k/$x=true"]


HOURLY = {"type": "Hourly", "timezone": "UTC", "timestampExtractor": "RecordField"}


@pytest.mark.parametrize("time", [b"1700000000000", b"2023-11-14T22:13:20Z"])
def test_a_header_has_the_time_as_milliseconds_or_iso_8601(time: bytes) -> None:
    prepared = prepare(pipeline(partitioner=HOURLY | {"timestampField": "$header.at"}), headers=[[("at", time)]])
    assert paths(prepared) == ["year=2023/month=11/day=14/hour=22"]
    assert prepared.rows.times is not None
    assert prepared.rows.times.tolist() == [1_700_000_000_000]


def test_a_record_without_the_time_in_a_header_has_no_effect() -> None:
    found = pipeline(partitioner=HOURLY | {"timestampField": "$header.at"})
    prepared = prepare(found, headers=[[("at", b"0")], [("at", b"\xff")], []])
    assert prepared.rows.codes.tolist() == [0, REJECTED, REJECTED]
    assert messages(prepared) == [
        (1, 'field "$header.at" holds bytes, not milliseconds or ISO 8601'),
        (2, 'field "$header.at" is missing'),
    ]


# -- keys --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("converter", ["Text", "Json"])
def test_a_key_without_fields_is_a_path_element(converter: str) -> None:
    found = pipeline(**by_field("$key", format={"keyConverter": converter}))
    assert paths(prepare(found, keys=[b"17", b"18"])) == ["key=17", "key=18"]


@pytest.mark.parametrize("choice", [ConverterType.JSON, *ENCODERS])
def test_a_field_of_the_key_is_a_path_element(choice: ConverterType) -> None:
    found = pipeline(**by_field("$key.of.id", format={"keyConverter": str(choice)}))
    is_json = choice is ConverterType.JSON
    key = b'{"of":{"id":7}}' if is_json else encoded(choice, Pairs([("of", Pairs([("id", 7)]))]))
    assert paths(prepare(found, keys=[key])) == ["key.of.id=7"]


def test_a_key_can_have_an_envelope() -> None:
    found = pipeline(**by_field("$key", format={"keyConverter": "ConnectJson"}))
    key = b'{"schema":{"type":"int64","optional":false},"payload":17}'
    assert paths(prepare(found, keys=[key])) == ["key=17"]


def test_a_record_without_a_key_has_null_in_its_path() -> None:
    found = pipeline(**by_field("$key", "$key.id", format={"keyConverter": "Json"}))
    assert paths(prepare(found, keys=[None, b"null"])) == ["key=null/key.id=null"] * 2


def test_a_key_that_cannot_be_decoded_is_a_data_error_without_effect() -> None:
    found = pipeline(**by_field("$key", format={"keyConverter": "Json"}))
    prepared = prepare(found, keys=[b"1", b"nope", b""])
    assert prepared.rows.codes.tolist() == [0, REJECTED, REJECTED]
    assert messages(prepared) == [
        (1, "the key is not JSON: invalid character (byte 1)"),
        (2, "the key is empty"),
    ]


def test_a_key_that_lacks_the_field_has_no_path() -> None:
    prepared = prepare(pipeline(**by_field("$key.id", format={"keyConverter": "Json"})), keys=[b'{"x":1}'])
    assert messages(prepared) == [(0, 'field "$key.id" is missing')]
    assert prepared.rows.codes.tolist() == [REJECTED_PATH]


def test_the_key_of_a_record_that_is_dropped_or_rejected_is_not_decoded() -> None:
    found = pipeline(OnNullValue.IGNORE, **by_field("$key", format={"keyConverter": "Json"}))
    prepared = prepare(found, values=[b"1", None, b"nope"], keys=[b"1", b"nope", b"nope"])
    assert messages(prepared) == [(2, "the value is not JSON: invalid character (byte 1)")]
    assert (prepared.ignored, paths(prepared)) == (1, ["key=1", None, None])


# -- keys with schemas of a registry -----------------------------------------------------------------------------------

REGISTERED: dict[str, Any] = {"format": {"keyConverter": "Avro"}, "wire_format": WIRE_FORMAT}


def avro_key(number: int, schema_id: int = ID_OF_KEY) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, AVRO_KEY, {"id": number})
    return b"\0" + schema_id.to_bytes(4) + out.getvalue()


def test_the_schema_of_a_key_is_found_under_the_id_of_keys() -> None:
    found = pipeline(**by_field("$key.id", **REGISTERED)).with_stores(SchemaStores(KEYS))
    assert paths(prepare(found, keys=[avro_key(7), None, avro_key(8)])) == ["key.id=7", "key.id=null", "key.id=8"]


def test_the_schema_id_of_a_key_can_be_in_its_header() -> None:
    guid = "00000000-0000-0000-0000-000000000005"
    table = Table({f"key-{guid}": RegisteredSchema(guid, "AVRO", json.dumps(AVRO_KEY))})
    found = pipeline(table=table, **by_field("$key.id", **REGISTERED))
    headers = [[("__value_schema_id", b"x"), ("__key_schema_id", b"\x01" + 15 * b"\0" + b"\x05")]]
    assert paths(prepare(found, keys=[avro_key(7)[5:]], headers=headers)) == ["key.id=7"]


def test_a_batch_ends_before_a_key_with_an_unresolved_schema_id() -> None:
    found = pipeline(
        table=Table({"key-5": KEYS.find("t", "key-5"), "key-6": None}), **by_field("$key.id", **REGISTERED)
    )
    prepared = prepare(found, keys=[avro_key(1), avro_key(2, 6), avro_key(3)])
    assert (paths(prepared), prepared.unresolved) == (["key.id=1"], ("key-6",))


def test_unresolved_ids_of_values_and_keys_end_a_batch_at_the_first_of_them() -> None:
    table = Table({"5": None, "key-5": KEYS.find("t", "key-5"), "key-6": None, "1": KEYS.find("t", "key-5")})
    sections = by_field("$key.id", **REGISTERED | {"format": {"keyConverter": "Avro", "converter": "Avro"}})
    found = pipeline(table=table, **sections)
    values, keys = [avro_key(0, 1), avro_key(0, 1), avro_key(0)], [avro_key(1), avro_key(2, 6), avro_key(3)]
    prepared = prepare(found, values=values, keys=keys)
    assert (paths(prepared), prepared.unresolved) == (["key.id=1"], ("key-6", "5"))


def test_the_rest_of_a_range_is_scanned_for_unresolved_ids_of_values_and_keys() -> None:
    sections = by_field("$key.id", **REGISTERED | {"format": {"keyConverter": "Avro", "converter": "Avro"}})
    found = pipeline(table=Table({"5": None, "key-6": None}), **sections)
    columns = {
        "value": pa.array([avro_key(0), None], pa.binary()),
        "key": pa.array([avro_key(0, 6), avro_key(0, 7)], pa.binary()),
        "headers": pa.nulls(2, HEADERS),
    }
    assert found.unresolved(pa.record_batch(columns), TP) == ("5", "key-6")


def test_a_key_with_an_unknown_schema_id_is_a_data_error_whose_offset_is_reported() -> None:
    found = pipeline(table=KEYS, **by_field("$key.id", **REGISTERED))
    prepared = prepare(found, keys=[avro_key(1), avro_key(2, 9)])
    assert messages(prepared) == [(1, "key: the registry does not know key-9")]
    assert prepared.unknown == (11,)
    assert paths(prepared) == ["key.id=1", None]


# -- the name of the schema --------------------------------------------------------------------------------------------


def envelope(name: str | None) -> bytes:
    schema = {"type": "struct", "optional": False, "fields": [{"field": "a", "type": "int32", "optional": False}]}
    return json.dumps({"schema": schema | ({"name": name} if name else {}), "payload": {"a": 1}}).encode()


@pytest.mark.parametrize(
    ("position", "path"),
    [("Prefix", "schema_name=example.Flight/partition=3"), ("Suffix", "partition=3/schema_name=example.Flight")],
)
def test_the_name_of_the_schema_is_before_or_after_the_path(position: str, path: str) -> None:
    found = pipeline(partitioner={"schemaName": position}, format={"converter": "ConnectJson"})
    assert paths(prepare(found, values=[envelope("example.Flight")])) == [path]


def test_a_schema_without_a_name_and_a_record_without_a_schema_have_null() -> None:
    found = pipeline(
        partitioner={"type": "Field", "fields": ["a"], "schemaName": "Suffix"}, format={"converter": "ConnectJson"}
    )
    prepared = prepare(found, values=[envelope("F"), envelope(None), b'{"schema":null,"payload":{"a":1}}'])
    assert paths(prepared) == ["a=1/schema_name=F", "a=1/schema_name=null", "a=1/schema_name=null"]


def test_values_without_schemas_have_null() -> None:
    assert paths(prepare(pipeline(partitioner={"schemaName": "Prefix"}))) == ["schema_name=null/partition=3"]


def test_the_name_of_a_schema_cannot_leave_its_directory() -> None:
    found = pipeline(partitioner={"schemaName": "Prefix"}, format={"converter": "ConnectJson"})
    assert paths(prepare(found, values=[envelope("../x")])) == ["schema_name=..%2Fx/partition=3"]


def test_rejected_records_have_no_path_with_the_name_of_a_schema() -> None:
    found = pipeline(partitioner={"schemaName": "Prefix"}, format={"converter": "ConnectJson"})
    assert paths(prepare(found, values=[b"nope", envelope("F")])) == [None, "schema_name=F/partition=3"]


# -- Protobuf keys -----------------------------------------------------------------------------------------------------

GUID_OF_KEY = "00000000-0000-0000-0000-000000000005"
PROTOBUF_KEY = 'syntax = "proto3"; message Other {} message Key { int64 id = 1; }'
PROTOBUF_KEYS = Table(
    {f"key-{each}": RegisteredSchema(f"key-{each}", "PROTOBUF", PROTOBUF_KEY) for each in (ID_OF_KEY, GUID_OF_KEY)}
)


def protobuf_paths(keys: list[bytes | None], headers: Sequence[Headers] | None = None) -> PreparedBatch:
    sections = {"format": {"keyConverter": "Protobuf"}, "wire_format": WIRE_FORMAT}
    found = pipeline(table=PROTOBUF_KEYS, **by_field("$key.id", **sections))
    return prepare(found, len(keys), keys=keys, headers=headers)


def test_a_field_of_a_protobuf_key_is_that_of_the_message_with_its_indexes() -> None:
    start = b"\0" + ID_OF_KEY.to_bytes(4)
    assert paths(protobuf_paths([start + b"\2\2\x08\7", start + b"\2\2"])) == ["key.id=7", "key.id=0"]


def test_the_schema_id_and_the_indexes_of_a_protobuf_key_can_be_in_a_header() -> None:
    header = ("__key_schema_id", b"\1" + bytes(15) + b"\5" + b"\2\2")
    assert paths(protobuf_paths([b"\x08\7"], [[header]])) == ["key.id=7"]
