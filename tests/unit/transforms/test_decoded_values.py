"""Values with the schema of a registry under transforms."""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa

from sink_job.api.enums import ConverterType
from sink_job.api.sections.transforms_section import TransformSpec
from sink_job.connect.schema import RegisteredSchema
from sink_job.converters.base import BatchSource
from sink_job.converters.registered import SchemaSettings
from sink_job.converters.wire_format import Layout, WireFormat
from sink_job.json.transformed import TransformedConverter
from sink_job.transforms.decoded.avro_values import whole_value_converter
from sink_job.transforms.decoded_values import UNREADABLE, DecodedValues
from sink_job.transforms.transform_list import TransformedBatch, TransformList
from tests.unit.avro.avro_data import Table, datum, in_wire_format, record, registered, texts
from tests.unit.transforms.transformed import TP, batch

LINE = record(("a", "long"), ("b", ["null", "string"]))


def line(a: int, b: str | None = None, schema_id: int = 1) -> bytes:
    return in_wire_format(schema_id, datum(LINE, {"a": a, "b": b}))


def settings(*schemas: RegisteredSchema) -> SchemaSettings:
    table = Table({each.id: each for each in schemas or [registered(LINE)]}, unknown=("404",))
    return SchemaSettings(table, WireFormat(Layout.CONFLUENT))


def listed(*specs: dict[str, Any]) -> TransformList:
    decoded = whole_value_converter(settings())
    return TransformList([TransformSpec.model_validate(each) for each in specs], ConverterType.AVRO, decoded)


def transformed(given: list[bytes | None], *specs: dict[str, Any], **more: Any) -> TransformedBatch:
    return listed(*specs).apply(batch(*given, **more), TP)


def written(found: TransformedBatch) -> list[bytes | None]:
    return texts(TransformedConverter().convert(found.batch.column("value")))


def test_values_are_decoded_and_transformed_with_their_schemas() -> None:
    found = transformed(
        [line(1, "x"), None, line(-2)],
        {"type": "Cast", "casts": {"a": "Text"}},
        {"type": "Insert", "field": "o", "source": "Offset"},
    )
    assert written(found) == [b'{"a":"1","b":"x","o":0}', None, b'{"a":"-2","b":null,"o":2}']
    schemas = TransformedConverter().convert(found.batch.column("value")).schemas
    assert schemas is not None
    assert [(schemas.schemas[0].name, [each.name for each in schemas.schemas[0].fields])] == [("R", ["a", "b", "o"])]


def test_a_value_that_no_transform_changes_is_written_with_its_schema() -> None:
    found = transformed([line(1)], {"type": "Drop", "fields": ["a"], "when": {"field": "a", "values": ["2"]}})
    assert written(found) == [b'{"a":1,"b":null}']


def test_the_batch_is_undefined_from_the_first_unresolved_schema_on() -> None:
    specs = {"type": "Drop", "fields": ["b"]}
    found = transformed([line(1), line(2, schema_id=5), line(3), line(4, schema_id=6)], specs)
    assert (found.unresolved, found.rejected) == ([(1, "5"), (3, "6")], [])
    assert written(found)[:1] == [b'{"a":1}']


def test_a_value_that_cannot_be_decoded_is_rejected_unless_a_filter_without_value_leaves_it_out() -> None:
    given: list[bytes | None] = [b"x", line(1, schema_id=404), line(1)[:-1], line(2), line(1, schema_id=404)]
    found = transformed(
        given,
        {"type": "Insert", "field": "o", "source": "Offset"},
        {"type": "Filter", "when": {"header": "skip"}},
        headers=[[], [], [], [], ["skip"]],
    )
    assert [row for row, _ in found.rejected] == [0, 1, 2]
    assert dict(found.rejected)[1] == "the registry does not know schema 404"
    assert dict(found.rejected)[2].startswith("schema 1: the value ends within its Avro data")
    assert found.unknown == [1]
    assert found.filtered.tolist() == [False, False, False, False, True]
    assert written(found)[3] == b'{"a":2,"b":null,"o":3}'


def test_an_error_of_a_transform_names_it() -> None:
    found = transformed([line(1)], {"type": "Extract", "field": "z"})
    assert found.rejected == [(0, "transforms[0] (Extract): the struct has no field z")]


def test_a_null_of_avro_is_a_tombstone_of_its_schema() -> None:
    schema = registered(["null", LINE])
    read = DecodedValues(whole_value_converter(settings(schema)))
    found = read.read(pa.array([in_wire_format(1, b"\0"), None, b"?"], pa.binary()), BatchSource("t"))
    assert [each is UNREADABLE for each in found.values] == [False, False, True]
    assert found.values[1] is None
    (value,) = found.values[:1]
    assert isinstance(value, tuple)
    assert value[1] is None
    converted = TransformedConverter().convert(pa.array([found.write(value)], pa.binary()))
    assert converted.nulls is not None
    assert converted.schemas is not None
    assert (converted.nulls.tolist(), len(converted.schemas.schemas)) == ([True], 1)


def test_the_schemas_of_another_table_are_used_with_what_was_compiled() -> None:
    found = listed({"type": "Drop", "fields": ["b"]})
    other = found.with_table(Table({"7": registered(LINE, 7)}))
    assert other.apply(batch(line(1)), TP).unresolved == [(0, "1")]
    assert written(other.apply(batch(line(1, schema_id=7)), TP)) == [b'{"a":1}']
    assert found.apply(batch(line(1)), TP).unresolved == []
    assert found.reader is not None
    assert found.reader.unresolved(pa.array([line(1, schema_id=7)], pa.binary()), BatchSource("t")) == ("7",)
    without = TransformList([TransformSpec.model_validate({"type": "Drop", "fields": ["b"]})])
    assert without.reader is None
    assert without.with_table(Table({})) is without


def test_the_changed_schema_is_the_same_object_for_each_value() -> None:
    found = transformed([line(1), line(2)], {"type": "Drop", "fields": ["b"]})
    parts = [msgspec.json.decode(each)["schema"] for each in found.batch.column("value").to_pylist()]
    assert parts[0] == parts[1]
