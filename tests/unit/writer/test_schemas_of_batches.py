"""Batches of a converter with schemas: columns, schemas, and the end before an id that is not resolved."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sink_job.api.enums import SchemaIdLocation
from sink_job.api.sections.job_sections import ErrorsSpec
from sink_job.api.topic_partition import TopicPartition
from sink_job.codecs.required_columns import required_columns
from sink_job.writer.record_pipeline import RecordPipeline
from sink_job.writer.schema_stores import SchemaStores
from tests.unit.avro.avro_data import Table, datum, in_wire_format, record, registered
from tests.unit.rotation.settings import object_settings

TP = TopicPartition("t", 3)
LINE = record(("a", "string"))


def pipeline(id_in: SchemaIdLocation = SchemaIdLocation.VALUE, **sections: Any) -> RecordPipeline:
    table = Table({"1": registered(LINE)}, unknown=("8",))
    wire_format = {"type": "Confluent", "subjects": "TopicName", "idIn": id_in}
    given_format = {"converter": "Avro", **sections.pop("format", {})}
    settings = object_settings(format=given_format, wire_format=wire_format, **sections)
    return RecordPipeline.of(settings, ErrorsSpec(), SchemaStores(table))


def line(a: str, schema_id: int = 1) -> bytes:
    return in_wire_format(schema_id, datum(LINE, {"a": a}))


def batch(values: list[bytes], first: int = 10, **columns: Any) -> pa.RecordBatch:
    offsets = pa.array(range(first, first + len(values)), pa.int64())
    return pa.record_batch({"offset": offsets, "value": pa.array(values, pa.binary()), **columns})


def test_rows_are_json_lines_with_paths_of_their_fields() -> None:
    found = pipeline(partitioner={"type": "Field", "fields": ["a"]}).prepare(batch([line("x"), line("y")]), 0, TP)
    assert found.encoded.to_pylist() == [b'{"a":"x"}\n', b'{"a":"y"}\n']
    assert found.rows.paths == ["a=x", "a=y"]
    assert found.rows.schemas is not None
    assert found.rows.schemas.tolist() == [0, 0]


def test_with_bytes_output_rows_are_the_values_as_they_came() -> None:
    found = pipeline(format={"output": "Bytes"}).prepare(batch([line("x"), b"bad", line("y")]), 0, TP)
    assert found.encoded.take([0, 2]).to_pylist() == [line("x") + b"\n", line("y") + b"\n"]
    assert [error.offset for error in found.errors] == [11]


def test_a_batch_ends_before_the_first_id_that_is_not_resolved() -> None:
    found = pipeline().prepare(batch([line("x"), b"bad", line("y", 5), line("z"), line("z", 6)]), 0, TP)
    assert found.rows.offsets.tolist() == [10, 11]
    assert [error.offset for error in found.errors] == [11]
    assert len(found.encoded) == 2
    assert found.unresolved == ("5", "6")


def test_a_batch_that_begins_with_an_id_that_is_not_resolved_is_empty() -> None:
    found = pipeline().prepare(batch([line("x", 5), line("y")]), 0, TP)
    assert len(found.rows) == 0
    assert found.unresolved == ("5",)


def test_the_rest_of_a_range_is_scanned_for_ids_that_are_not_resolved() -> None:
    values = [line("x"), in_wire_format(5, b"not decoded"), line("y", 8), in_wire_format(5, b"")]
    assert pipeline().unresolved(batch(values), TP) == ("5",)


def test_a_converter_without_schemas_has_no_ids_to_resolve() -> None:
    found = RecordPipeline.of(object_settings(), ErrorsSpec())
    assert found.unresolved(batch([b"1"]), TP) == ()
    assert found.prepare(batch([b"1"]), 0, TP).rows.schemas is None


def test_headers_are_read_only_if_ids_can_be_in_them() -> None:
    assert not required_columns(pipeline().object_settings).headers
    assert required_columns(pipeline(SchemaIdLocation.EITHER).object_settings).headers


def test_an_id_in_a_header_is_found() -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    headers = pa.array([[{"key": "__value_schema_id", "value": b"\1" + bytes(16)}], None], kind)
    found = pipeline(SchemaIdLocation.EITHER).prepare(batch([b"x", line("x")], headers=headers), 0, TP)
    assert found.unresolved == ("00000000-0000-0000-0000-000000000000",)
