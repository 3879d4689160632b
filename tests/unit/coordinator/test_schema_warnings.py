"""What the driver logs about a registry's schema when it resolves its id, and what rejections say of it."""

from __future__ import annotations

import io
import json
import logging
from dataclasses import dataclass, field
from typing import Any, cast

import fastavro
import pyarrow as pa
import pytest

from sink_job.api.sections.job_sections import ErrorsSpec
from sink_job.api.sections.schema_section import BareValueSettings
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.connect.schema import RegisteredSchema
from sink_job.coordinator.schemas.round_schemas import SchemaUse
from sink_job.coordinator.schemas.schema_resolver import SchemaResolver
from sink_job.ledger.files import MIN_LISTED
from sink_job.ledger.schemas.schema_store import SchemaStore
from sink_job.s3 import S3Client
from sink_job.writer.record_pipeline import RecordPipeline
from sink_job.writer.schema_stores import SchemaStores
from tests.support.memory_s3 import MemoryS3

TP = TopicPartition("flights", 0)
AVRO = {
    "type": "record",
    "name": "Flight",
    "fields": [{"name": "Seats", "type": "long"}, {"name": "seats", "type": "string"}],
}
JSON_SCHEMA = {"type": "object", "properties": {"Seats": {"type": "integer"}, "seats": {"type": "string"}}}
PROTOBUF = 'syntax = "proto3"; message Flight { int64 Seats = 1; string seats = 2 [json_name = "other"]; }'
TEXTS = {"Avro": json.dumps(AVRO), "JsonSchema": json.dumps(JSON_SCHEMA), "Protobuf": PROTOBUF}
LANGUAGES = {"Avro": "AVRO", "JsonSchema": "JSON", "Protobuf": "PROTOBUF"}
WARNING = "Seats and seats differ by case only, which Athena, Hive and Spark do not distinguish"


def object_settings(converter: str, output: str) -> ObjectSettings:
    return ObjectSettings.model_validate(
        {
            "format": {"converter": converter, "output": output},
            "framing": {"type": "Confluent", "subjects": "TopicName", "idIn": "Value"},
            "rotation": {"flushSize": 10},
        }
    )


@dataclass
class Registry:
    """Every id has the same schema."""

    schema: RegisteredSchema
    url: str = "https://registry.example.com"
    calls: list[str] = field(default_factory=list)

    def fetch(self, topic: str, schema_id: str, *, is_key: bool = False) -> RegisteredSchema:
        self.calls.append(schema_id)
        return RegisteredSchema(schema_id, self.schema.language, self.schema.text, (), "flights-value", int(schema_id))

    def close(self) -> None:
        pass


def resolver(
    converter: str, output: str, text: str | None = None, s3: MemoryS3 | None = None
) -> tuple[SchemaResolver, MemoryS3]:
    values, s3 = SchemaUse.of(object_settings(converter, output)), s3 or MemoryS3()
    found = SchemaResolver(
        Registry(RegisteredSchema("0", LANGUAGES[converter], text or TEXTS[converter])),
        SchemaStore(cast("S3Client", s3), "topics/_s3sink/flights/"),
        needs_version=False,
        reason_against=values.reason_against,
        warnings=values.warnings,
        wait=lambda seconds: False,
        clock=lambda: 0.0,
    )
    return found, s3


@pytest.mark.parametrize("output", ["Json", "Avro", "Parquet"])
@pytest.mark.parametrize("converter", TEXTS)
def test_fields_that_differ_by_case_only_are_warned_of_once_for_a_topic(
    converter: str, output: str, caplog: pytest.LogCaptureFixture
) -> None:
    one, _ = resolver(converter, output)
    with caplog.at_level(logging.WARNING):
        one.resolve({TP: ["1", "2"]})
        one.resolve({TP: ["3"], TopicPartition("flights", 1): ["1", "4"]})
    (warning,) = caplog.messages
    assert warning.startswith("topic flights: in the schema ")
    assert "(subject flights-value version " in warning
    assert warning.endswith(WARNING)
    one.resolve({TopicPartition("other", 0): ["1"]})
    assert [each.split(":")[0] for each in caplog.messages] == ["topic flights", "topic other"]


def test_a_schema_without_such_fields_is_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    fields = [{"name": "Seats", "type": "long"}, {"name": "gate", "type": "string"}]
    one, _ = resolver("Avro", "Parquet", json.dumps({**AVRO, "fields": fields}))
    one.resolve({TP: ["1"]})
    assert one.resolved == {"flights": frozenset({"1"})}
    assert caplog.messages == []


def test_the_fields_that_a_warning_names_are_limited(caplog: pytest.LogCaptureFixture) -> None:
    fields = [{"name": name, "type": "long"} for number in range(12) for name in (f"f{number}", f"F{number}")]
    one, _ = resolver("Avro", "Json", json.dumps({**AVRO, "fields": fields}))
    one.resolve({TP: ["1"]})
    assert caplog.text.count("differ by case only") == 10
    assert "; and 2 more" in caplog.text


@pytest.mark.parametrize(("count", "listings"), [(MIN_LISTED - 1, 0), (MIN_LISTED, 1)])
def test_a_driver_lists_the_schemas_of_a_topic_before_it_resolves_many_ids(count: int, listings: int) -> None:
    one, s3 = resolver("Avro", "Json")
    calls: list[str] = []
    s3.fault = lambda call, key: calls.append(call)
    one.resolve({TP: [str(number) for number in range(1, count + 1)]})
    assert calls.count("list") == listings
    assert calls.count("get") == (0 if listings else count)
    assert calls.count("put") == count


# -- rejections ------------------------------------------------------------------------------------------------------


@dataclass
class Table:
    schema: RegisteredSchema

    def find(self, topic: str, schema_id: str) -> RegisteredSchema:
        return self.schema


def reasons(converter: str, output: str, text: str, *values: bytes) -> list[str]:
    table = Table(RegisteredSchema("7", LANGUAGES[converter], text, (), "flights-value", 2))
    pipeline = RecordPipeline.of(object_settings(converter, output), ErrorsSpec(), SchemaStores(table))
    in_wire_format = [b"\0\0\0\0\7" + value for value in values]
    columns: dict[str, Any] = {
        "offset": pa.array(range(len(in_wire_format)), pa.int64()),
        "value": pa.array(in_wire_format),
    }
    return [each.message for each in pipeline.prepare(pa.RecordBatch.from_pydict(columns), 0, TP).errors]


def test_a_value_that_its_schema_cannot_read_is_rejected_with_the_schema() -> None:
    (reason,) = reasons("Avro", "Json", json.dumps(AVRO), b"\2")
    assert reason.startswith("schema 7 (subject flights-value version 2): the value ends within its Avro data")


def test_a_field_that_an_output_cannot_express_is_rejected_with_the_schema() -> None:
    of = {"type": "bytes", "logicalType": "decimal", "precision": 2}
    schema = {**AVRO, "fields": [{"name": "fare", "type": of}]}
    out = io.BytesIO()
    fastavro.schemaless_writer(out, {**AVRO, "fields": [{"name": "fare", "type": "bytes"}]}, {"fare": b"\x7f\xff"})
    (reason,) = reasons("Avro", "Parquet", json.dumps(schema), out.getvalue())
    assert reason == "schema 7 (subject flights-value version 2): the field fare: a decimal has more than 2 digits"


def test_a_property_of_another_type_is_rejected_with_the_schema() -> None:
    (reason,) = reasons("JsonSchema", "Avro", json.dumps(JSON_SCHEMA), b'{"Seats": "x"}')
    assert reason.startswith("schema 7 (subject flights-value version 2): ")
    assert "the field Seats" in reason


def test_a_message_that_a_schema_lacks_is_rejected_with_the_schema() -> None:
    (reason,) = reasons("Protobuf", "Json", PROTOBUF, b"\2\x06")
    assert reason == (
        "schema 7 (subject flights-value version 2): the schema has no message with the message indexes [3]"
    )


def test_the_schema_of_a_manifest_is_not_named_in_rejections() -> None:
    settings = ObjectSettings.model_validate({"format": {"converter": "Avro"}, "rotation": {"flushSize": 10}})
    settings = settings.model_copy(update={"bare_values": BareValueSettings(id="text-1")})
    table = Table(RegisteredSchema("text-1", "AVRO", json.dumps(AVRO)))
    columns: dict[str, Any] = {"offset": pa.array([0], pa.int64()), "value": pa.array([b"\2"])}
    pipeline = RecordPipeline.of(settings, ErrorsSpec(), SchemaStores(table))
    (error,) = pipeline.prepare(pa.RecordBatch.from_pydict(columns), 0, TP).errors
    assert error.message.startswith("the value ends within its Avro data")
