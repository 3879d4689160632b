"""Transformed values with the schema of a registry: their paths, schemas and rejections, as the rotator gets them."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from sink_job.api.enums import OnNullValue, SchemaCompatibility
from sink_job.api.sections.job_sections import ErrorsSpec
from sink_job.api.sections.schema_section import BareValueSettings
from sink_job.api.sections.transforms_section import TransformSpec
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.codecs.required_columns import required_columns, task_columns
from sink_job.connect.schema import Field, RegisteredSchema, Schema, SchemaType
from sink_job.writer.record_pipeline import PreparedBatch, RecordPipeline, RejectionReason
from sink_job.writer.schema_stores import SchemaStores
from tests.support import glue_values
from tests.unit.avro.avro_data import Table, datum, in_wire_format, record, registered
from tests.unit.rotation.settings import object_settings

TP = TopicPartition("t", 3)
LINE = record(("a", "long"), ("b", ["null", "string"]))
CAST = {"type": "Cast", "casts": {"a": "Text"}}


def line(a: int, b: str | None = None, schema_id: int = 1) -> bytes:
    return in_wire_format(schema_id, datum(LINE, {"a": a, "b": b}))


CONFLUENT = {"type": "Confluent", "subjects": "TopicName", "idIn": "Value"}


def settings(*transforms: dict[str, Any], **more: Any) -> ObjectSettings:
    specs = tuple(TransformSpec.model_validate(each) for each in transforms or (CAST,))
    changed: dict[str, Any] = {name: more.pop(name) for name in ("schema_compatibility", "bare_values") if name in more}
    found = object_settings(**{"format": {"converter": "Avro"}, "wire_format": CONFLUENT, **more})
    return found.model_copy(update={"transforms": specs, **changed})


def pipeline(*transforms: dict[str, Any], errors: ErrorsSpec | None = None, **more: Any) -> RecordPipeline:
    table = Table({"1": registered(LINE, subject="t-value", version=2)}, unknown=("404",))
    return RecordPipeline.of(settings(*transforms, **more), errors or ErrorsSpec()).with_stores(SchemaStores(table))


def batch(*values: bytes | None, **more: Any) -> pa.RecordBatch:
    columns = {
        "offset": pa.array(range(10, 10 + len(values)), pa.int64()),
        "value": pa.array(values, pa.binary()),
        "timestamp": pa.array([0] * len(values), pa.int64()),
    }
    return pa.record_batch(columns | more)


def prepare(found: RecordPipeline, *values: bytes | None, **more: Any) -> PreparedBatch:
    return found.prepare(batch(*values, **more), 0, TP)


def test_rows_have_the_transformed_values_and_schemas() -> None:
    found = prepare(pipeline(), line(1, "x"), line(-2))
    assert found.encoded.to_pylist() == [b'{"a":"1","b":"x"}\n', b'{"a":"-2","b":null}\n']
    (schema,) = found.schemas.values()
    text = Schema(SchemaType.STRING)
    fields = (Field("a", text), Field("b", Schema(SchemaType.STRING, optional=True)))
    assert (schema.fields, schema.name, schema.version, schema.subject) == (fields, "R", 2, "t-value")


def test_paths_have_transformed_fields() -> None:
    insert = {"type": "Insert", "field": "topic", "source": "Topic"}
    found = pipeline(CAST, insert, partitioner={"type": "Field", "fields": ["a", "topic"]})
    assert prepare(found, line(5)).rows.paths == ["a=5/topic=t"]


def test_a_batch_ends_before_the_first_record_with_an_unresolved_schema() -> None:
    found = prepare(pipeline(), line(1), line(2, schema_id=7), line(3), line(4, schema_id=8))
    assert (len(found.rows), found.unresolved) == (1, ("7", "8"))
    assert pipeline().unresolved(batch(line(1), line(2, schema_id=7)), TP) == ("7",)


def test_an_unknown_schema_rejects_its_records() -> None:
    found = prepare(pipeline(), line(1), line(2, schema_id=404), b"x")
    assert [(each.offset, each.reason) for each in found.errors] == [
        (11, RejectionReason.UNKNOWN_SCHEMA),
        (12, RejectionReason.INVALID_RECORD),
    ]
    assert found.unknown == (11,)


def test_filtered_records_are_no_errors_and_counted() -> None:
    found = prepare(pipeline({"type": "Filter", "when": {"field": "b", "values": ["x"]}}), line(1, "x"), line(2))
    assert (found.filtered, found.errors, found.ignored) == (1, [], 0)
    assert found.encoded.to_pylist()[1] == b'{"a":2,"b":null}\n'


@pytest.mark.parametrize(("on_null", "counts"), [(OnNullValue.IGNORE, (0, 2)), (OnNullValue.FAIL, (2, 0))])
def test_the_null_policy_sees_transformed_values(on_null: OnNullValue, counts: tuple[int, int]) -> None:
    found = pipeline({"type": "Extract", "field": "b"}, errors=ErrorsSpec(on_null_value=on_null))
    prepared = prepare(found, line(1), None, line(1, "x"))
    assert (len(prepared.errors), prepared.ignored) == counts


def test_a_hoisted_tombstone_has_no_schema_so_outputs_with_schemas_reject_it() -> None:
    hoist = {"type": "Hoist", "field": "v"}
    assert prepare(pipeline(hoist), None, line(1)).encoded.to_pylist() == [
        b'{"v":null}\n',
        b'{"v":{"a":1,"b":null}}\n',
    ]
    found = prepare(pipeline(hoist, format={"converter": "Avro", "output": "Avro"}), None, line(1))
    assert [(each.row, each.message) for each in found.errors] == [
        (0, "the transformed value has no schema, which the output Avro requires")
    ]


def test_an_avro_object_has_the_transformed_schema() -> None:
    one = pipeline(format={"converter": "Avro", "output": "Avro"})
    found = prepare(one, line(1))
    (schema_id,) = found.schemas
    one.keep_schemas("t", [], found.schemas)
    one.stores.objects.put_all(found.schemas.values())
    assert one.object_encoder("key", "t", schema_id) is not None
    assert found.encoded.to_pylist() == [b"\x021\x00"]


def test_records_of_two_versions_are_projected_with_their_transformed_schemas() -> None:
    later = record(("a", "long"), ("b", ["null", "string"]), ("c", ["null", "long"]))
    table = Table(
        {
            "1": registered(LINE, 1, subject="t-value", version=1),
            "2": registered(later, 2, subject="t-value", version=2),
        }
    )
    one = RecordPipeline.of(settings(schema_compatibility=SchemaCompatibility.BACKWARD), ErrorsSpec()).with_stores(
        SchemaStores(table)
    )
    newer = in_wire_format(2, datum(later, {"a": 2, "b": None, "c": 3}))
    found = prepare(one, newer, line(1, "x"))
    assert found.projection is not None
    target = next(key for key, each in found.schemas.items() if each.version == 2)
    one.stores.objects.put_all(found.schemas.values())
    rows = found.projection.encoded(target, np.array([1]))
    assert rows.to_pylist() == [b'{"a":"1","b":"x","c":null}\n']


def test_the_columns_are_those_of_the_wire_format_and_the_transforms() -> None:
    assert required_columns(settings(wire_format={**CONFLUENT, "idIn": "Header"})).headers
    assert not required_columns(settings()).headers
    assert task_columns(settings()).separator == b""


def test_bare_values_have_the_schema_of_the_manifest_before_transforms() -> None:
    given = settings(wire_format=None, bare_values=BareValueSettings(id="bare"))
    table = Table({"bare": registered(LINE, "bare")})
    found = RecordPipeline.of(given, ErrorsSpec()).with_stores(SchemaStores(table))
    value = datum(LINE, {"a": 7, "b": None})
    assert prepare(found, value).encoded.to_pylist() == [b'{"a":"7","b":null}\n']


def test_a_filter_that_reads_no_field_decodes_nothing() -> None:
    filters = {"type": "Filter", "when": {"topic": "other"}}
    assert not settings(filters).transforms_registered
    assert settings(filters, CAST).transforms_registered
    assert prepare(pipeline(filters), line(1)).encoded.to_pylist() == [b'{"a":1,"b":null}\n']


def test_a_masked_symbol_is_a_plain_text() -> None:
    enum = {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]}
    uuid = {"type": "string", "logicalType": "uuid"}
    schema = record(("c", enum), ("u", uuid), ("kept", {"type": "enum", "name": "Kept", "symbols": ["X"]}))
    table = Table({"1": registered(schema)})
    given = settings({"type": "Mask", "fields": ["c", "u"]}, format={"converter": "Avro", "output": "Avro"})
    value = datum(schema, {"c": "BLUE", "u": UUID(int=7), "kept": "X"})
    found = prepare(RecordPipeline.of(given, ErrorsSpec()).with_stores(SchemaStores(table)), in_wire_format(1, value))
    assert (found.errors, found.encoded.to_pylist()) == ([], [b"\x00\x00\x00"])
    (masked,) = found.schemas.values()
    assert [each.schema.symbols for each in masked.fields] == [(), (), ("X",)]
    assert [each.schema.logical for each in masked.fields] == [None, None, None]


@pytest.mark.parametrize("run", glue_values.RUNS)
def test_values_of_glues_serializer_are_transformed(run: str) -> None:
    ids = glue_values.schema_ids()
    schemas = {
        each: RegisteredSchema(each, "AVRO", text) for each, text in zip(ids, glue_values.schema_texts(), strict=True)
    }
    given = settings(
        {"type": "Insert", "field": "topic", "source": "Topic"},
        wire_format={"type": "Glue", "subjects": "TopicName", "idIn": "Value"},
    )
    written = glue_values.written_values(run, ids)
    found = prepare(
        RecordPipeline.of(given, ErrorsSpec()).with_stores(SchemaStores(Table(schemas))),
        *(each.value for each in written),
    )
    assert found.errors == []
    assert [json.loads(each) for each in found.encoded.to_pylist()] == [
        {**each.flight, "topic": "t"} for each in written
    ]
