"""Values that are written under another schema than their own, by each converter that can."""

from __future__ import annotations

import json
from bisect import bisect_left
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import structs

from sink_job.api.enums import DecimalFormat, TimestampFormat
from sink_job.arrow import columnar
from sink_job.avro.converter import AvroDecoder
from sink_job.avro.to_connect import UNION, connect_schema, parse_registered
from sink_job.connect.json_encoder import JsonOptions, json_text, with_default
from sink_job.connect.limits import MAX_TEXT_DEPTH, MAX_VALUE_DEPTH, deeper
from sink_job.connect.projection import can_project
from sink_job.connect.schema import Field, RegisteredSchema, Schema, SchemaType
from sink_job.converters.base import BatchSource
from sink_job.converters.projection import ProjectingConverter
from sink_job.converters.registered import SchemaSettings
from sink_job.converters.wire_format import Layout, WireFormat
from sink_job.json.connect_envelope import envelope_schema
from sink_job.json.connect_json import ConnectJsonConverter
from sink_job.json.json_schema.converter import JsonSchemaConverter
from sink_job.json.json_schema.to_connect import json_connect_schema
from tests.unit.avro.avro_data import Table, converter, datum, encode, in_wire_format, record, registered, samples
from tests.unit.connect import oracle

OPTIONS = st.builds(JsonOptions, st.sampled_from(DecimalFormat), st.sampled_from(TimestampFormat))
SOURCE = BatchSource("t")
NULLABLE = ["null", "long"]


def connect(schema: Any) -> Schema:
    return connect_schema(parse_registered(registered(schema)), 1)


def project(found: ProjectingConverter, target: Schema, *values: bytes) -> list[bytes]:
    texts: list[bytes] = found.project(pa.array(values, pa.binary()), SOURCE, target).to_pylist()
    return texts


# -- Avro --------------------------------------------------------------------------------------------------------------


def decoded(schema: Any, data: list[bytes], target: Schema, options: JsonOptions, *, min_rows: int) -> list[bytes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columnar, "MIN_ROWS", min_rows)
        texts: list[bytes] = AvroDecoder(registered(schema), (), options).project(pa.array(data), target).to_pylist()
        return texts


ADDED = [
    Field("new0", Schema(SchemaType.INT64, optional=True)),
    Field("new1", with_default(Schema(SchemaType.STRING), "ä")),
    Field("new2", with_default(Schema(SchemaType.BYTES, optional=True), b"x")),
]


@st.composite
def evolved(draw: Any, schema: Schema) -> Schema:
    """A schema that `schema` can be projected to."""
    optional = schema.optional or draw(st.booleans())
    if schema.type is SchemaType.INT32 and schema.name is None:
        return structs.replace(schema, type=SchemaType(draw(st.sampled_from(["int32", "int64", "float64"]))))
    if schema.type is SchemaType.FLOAT32:
        return structs.replace(schema, type=draw(st.sampled_from([SchemaType.FLOAT32, SchemaType.FLOAT64])))
    if schema.values is not None:
        return structs.replace(schema, optional=optional, values=draw(evolved(schema.values)))
    is_union = schema.name == UNION  # can be projected only to one with all of its members
    lists = st.permutations(schema.fields) if is_union else st.lists(st.sampled_from(schema.fields), unique_by=id)
    chosen = draw(lists) if schema.fields else []
    fields = [Field(each.name, draw(evolved(each.schema))) for each in chosen]
    if schema.type is SchemaType.STRUCT:
        fields += draw(st.lists(st.sampled_from(ADDED), unique_by=lambda each: each.name))
    return structs.replace(schema, optional=optional, fields=tuple(fields))


@given(samples(depth=2), OPTIONS, st.data())
def test_avro_is_projected_as_by_connect_by_column_and_row_by_row(
    sample: tuple[Any, list[Any]], options: JsonOptions, data: st.DataObject
) -> None:
    schema, values = sample
    assume(values)
    source = connect(schema)
    target = data.draw(evolved(source))
    assert can_project(source, target) is None
    payload = encode(schema, values)
    rows = AvroDecoder(registered(schema), (), options)._rows.values(pa.array(payload))
    expected = [json_text(target, oracle.project(source, value, target), options) for value in rows]
    assert decoded(schema, payload, target, options, min_rows=0) == expected
    assert decoded(schema, payload, target, options, min_rows=1 << 60) == expected


def test_rows_of_several_schemas_keep_their_order() -> None:
    one, two = record(("a", "int")), record(("a", "long"), ("b", "string"))
    found = converter(registered(one, 1), registered(two, 2))
    values = [in_wire_format(2, datum(two, {"a": 1, "b": "x"})), in_wire_format(1, datum(one, {"a": 2})), b"", b"", b""]
    values[2:] = [values[0], values[1], values[0]]
    texts = [json.loads(text)["a"] for text in project(found, connect(record(("a", "long"))), *values)]
    assert texts == [1, 2, 1, 2, 1]


def test_a_value_that_is_nested_as_deeply_as_the_converter_accepts_is_projected() -> None:
    node = record(("next", ["null", "R"]), ("n", "int"))
    later = record(("next", ["null", "R"]), ("n", "long"))
    found = converter(registered(node))

    def nested(levels: int) -> bytes:
        return in_wire_format(1, b"\2" * levels + b"\0" + b"\2" * (levels + 1))

    def is_rejected(levels: int) -> bool:
        return bool(found.convert(pa.array([nested(levels)]), SOURCE).rejected)

    accepted = bisect_left(range(1000), True, key=is_rejected) - 1
    assert accepted == MAX_VALUE_DEPTH - 1
    with deeper():
        (text,) = project(found, connect(later), nested(accepted))
    assert text.count(b'"n":1') == accepted + 1


# -- JSON with a schema of a registry ----------------------------------------------------------------------------------


def json_schema(**properties: Any) -> RegisteredSchema:
    text = {"title": "R", "type": "object", "properties": properties}
    return RegisteredSchema("1", "JSON", json.dumps(text), version=1)


def of_json(source: RegisteredSchema, target: RegisteredSchema, *texts: str) -> list[str]:
    settings = SchemaSettings(Table({"1": source}), WireFormat(Layout.CONFLUENT))
    values = [in_wire_format(1, text.encode()) for text in texts]
    found = project(JsonSchemaConverter((), settings), json_connect_schema(target), *values)
    return [text.decode() for text in found]


INTEGER = {"type": "integer"}
OPTIONAL = {"oneOf": [{"type": "null"}, INTEGER]}


def test_json_loses_the_properties_that_the_target_lacks_and_gets_its_defaults() -> None:
    source = json_schema(a=INTEGER, b=INTEGER)
    target = json_schema(c={"type": "string", "default": "x"}, d=OPTIONAL, a={"type": "number"})
    assert of_json(source, target, '{"b": 1, "a": 1.50, "z": 1}') == ['{"c":"x","d":null,"a":1.50}']


def test_json_without_an_optional_property_gets_null_and_without_a_required_one_stays_without_it() -> None:
    source, target = json_schema(a=INTEGER, b=OPTIONAL, c=INTEGER), json_schema(a=INTEGER, b=OPTIONAL)
    assert of_json(source, target, "{}", '{"b":null,"a":1}') == ['{"b":null}', '{"a":1,"b":null}']


def test_json_that_lacks_a_property_gets_the_default_of_its_own_schema() -> None:
    source, target = json_schema(a=INTEGER | {"default": 1}, b=INTEGER), json_schema(a=INTEGER | {"default": 2})
    assert of_json(source, target, "{}") == ['{"a":1}']


def test_json_null_becomes_the_default_of_a_property_that_is_required_in_the_target() -> None:
    source, target = json_schema(a=OPTIONAL), json_schema(a=INTEGER | {"default": 5})
    assert of_json(source, target, '{"a":null}', "{}", '{"a":1}') == ['{"a":5}', '{"a":5}', '{"a":1}']


def test_json_is_projected_in_arrays_and_objects_within_objects() -> None:
    def nested(**properties: Any) -> RegisteredSchema:
        item = {"type": "object", "properties": properties}
        of_map = {"type": "object", "connect.type": "map", "additionalProperties": item}
        return json_schema(a={"type": "array", "items": item}, m=of_map)

    (found,) = of_json(nested(x=INTEGER, y=INTEGER), nested(x=INTEGER), '{"a":[{"x":1,"y":2}],"m":{"k":{"y":1,"x":2}}}')
    assert found == '{"a":[{"x":1}],"m":{"k":{"x":2}}}'


def test_json_of_an_alternative_is_projected_to_the_same_alternative() -> None:
    def either(**properties: Any) -> RegisteredSchema:
        return json_schema(u={"oneOf": [INTEGER, {"type": "object", "properties": properties}]})

    found = of_json(either(x=INTEGER, y=INTEGER), either(x=INTEGER), '{"u":1}', '{"u":{"x":1,"y":2}}', '{"u":"?"}')
    assert found == ['{"u":1}', '{"u":{"x":1}}', '{"u":"?"}']


def test_json_that_does_not_conform_to_its_schema_is_projected_where_it_does() -> None:
    item = {"type": "object", "properties": {"x": INTEGER}}
    source = json_schema(a={"type": "array", "items": item}, o=item, b=INTEGER)
    target = json_schema(a={"type": "array", "items": item}, o=item)
    assert of_json(source, target, '{"a":{"k":1},"o":[7],"b":1}', "[1]") == ['{"a":{"k":1},"o":[7]}', "[1]"]


def test_recursive_json_is_projected_at_each_level() -> None:
    def tree(**properties: Any) -> RegisteredSchema:
        items = {"type": "array", "items": {"$ref": "#"}}
        return json_schema(children=items, **properties)

    (found,) = of_json(tree(x=INTEGER), tree(), '{"children":[{"children":[{"children":[],"x":3}],"x":2}],"x":1}')
    assert found == '{"children":[{"children":[{"children":[]}]}]}'


def test_json_that_is_not_described_keeps_its_text() -> None:
    numbers = "1e99999999999999999999", "9" * 5000, "-0", "1E5", '"\\u00e4"', "[1,  2]", '{"x": 1.0}'
    for number in numbers:
        assert of_json(json_schema(a=INTEGER, b=INTEGER), json_schema(a=INTEGER), f'{{"a":{number}}}') == [
            f'{{"a":{number}}}'
        ]


def test_json_with_line_breaks_becomes_one_line() -> None:
    source = json_schema(a=INTEGER, b=INTEGER)
    assert of_json(source, json_schema(a=INTEGER), ' {"a":\n{"x": \r\n1}} ') == ['{"a":{"x":1}}']


ALTERNATIVES: dict[str, tuple[dict[str, Any], str]] = {
    "integer": (INTEGER, "-12"),
    "number": ({"type": "number"}, "1.5"),
    "string": ({"type": "string"}, '"1"'),
    "boolean": ({"type": "boolean"}, "true"),
    "array": ({"type": "array", "items": INTEGER}, "[1]"),
    "object": ({"type": "object", "properties": {"x": INTEGER, "z": INTEGER}}, '{"x":1,"z":2}'),
    "another object": ({"type": "object", "properties": {"x": INTEGER, "y": INTEGER}}, '{"y":1,"x":2}'),
}


@pytest.mark.parametrize("added", ALTERNATIVES)
def test_json_of_each_alternative_is_kept(added: str) -> None:
    """Members are compared by position: the added one is the last."""
    kept = [each for name, (each, _) in ALTERNATIVES.items() if name != added]
    source, target = (json_schema(u={"oneOf": each}) for each in (kept, [*kept, ALTERNATIVES[added][0]]))
    for name, (_, text) in ALTERNATIVES.items():
        (found,) = of_json(source, target, f'{{"u":{text}}}')
        if name != added:
            assert json.loads(found)["u"] == json.loads(text)


def test_json_that_is_nested_as_deeply_as_the_converter_accepts_is_projected() -> None:
    def tree(**properties: Any) -> RegisteredSchema:
        child = {"oneOf": [{"type": "null"}, {"type": "integer"}, {"$ref": "#"}]}
        return json_schema(c=child, **properties)

    settings = SchemaSettings(Table({"1": tree(x=INTEGER)}), WireFormat(Layout.CONFLUENT))
    found = JsonSchemaConverter((), settings)

    def nested(levels: int) -> bytes:
        return in_wire_format(1, b'{"x":1,"c":' * levels + b"5" + b"}" * levels)

    def is_rejected(levels: int) -> bool:
        return bool(found.convert(pa.array([nested(levels)]), SOURCE).rejected)

    accepted = bisect_left(range(2000), True, key=is_rejected) - 1
    assert accepted == MAX_TEXT_DEPTH
    with deeper():
        (text,) = project(found, json_connect_schema(tree()), nested(accepted))
    assert text == b'{"c":' * accepted + b"5" + b"}" * accepted


# -- the envelope ------------------------------------------------------------------------------------------------------


def test_envelopes_of_several_schemas_are_projected() -> None:
    def schema(*fields: dict[str, Any]) -> dict[str, Any]:
        return {"type": "struct", "name": "R", "version": 1, "fields": fields}

    a, b = {"field": "a", "type": "int32"}, {"field": "b", "type": "string", "optional": True}
    target = envelope_schema(msgspec.json.encode(schema(a | {"type": "int64"}, b)))
    assert target is not None
    values = [
        json.dumps({"schema": schema(a), "payload": {"a": 1}}).encode(),
        json.dumps({"schema": schema(b, a), "payload": {"b": "x", "a": 2}}).encode(),
    ]
    assert project(ConnectJsonConverter(), target, *values) == [b'{"a":1,"b":null}', b'{"a":2,"b":"x"}']
