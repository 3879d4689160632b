"""Avro schemas of Connect's, and values as data of them. fastavro is the independent reader."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import structs

from sink_job.api.enums import OutputFormat
from sink_job.avro.connect_values import normaliser
from sink_job.avro.encoder import datum_encoder
from sink_job.avro.from_connect import avro_schema, avro_type
from sink_job.avro.row_decoder import DatumReader, can_be_empty
from sink_job.avro.schema import AvroType, parse_avro
from sink_job.avro.to_connect import connect_schema
from sink_job.connect.errors import InvalidFieldValue, InvalidSchema
from sink_job.connect.json_encoder import json_text, with_default
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import Extension, Field, Schema, SchemaType
from tests.unit.avro.avro_data import samples
from tests.unit.connect.strategies import schemas, values

AVRO = DatumSettings()
NAMES = DatumSettings(connect_names=True)
STRING, INT32 = Schema(SchemaType.STRING), Schema(SchemaType.INT32)


def struct(*fields: tuple[str, Schema], **more: Any) -> Schema:
    return Schema(SchemaType.STRUCT, fields=tuple(Field(name, schema) for name, schema in fields), **more)


def optional(schema: Schema) -> Schema:
    return structs.replace(schema, optional=True)


def decimal(scale: int, **more: str) -> Schema:
    parameters = {"scale": str(scale), **more}
    name = "org.apache.kafka.connect.data.Decimal"
    return Schema(SchemaType.BYTES, name, version=1, parameters=tuple(sorted(parameters.items())))


def avro(schema: Schema, settings: DatumSettings = AVRO) -> Any:
    return json.loads(avro_schema(schema, settings))


def fields(schema: Schema, settings: DatumSettings = AVRO) -> list[Any]:
    return [each["type"] for each in avro(schema, settings)["fields"]]


def read_by_fastavro(schema: Schema, data: bytes) -> Any:
    file = io.BytesIO(data)
    found = fastavro.schemaless_reader(file, fastavro.parse_schema(avro(schema)))
    assert file.tell() == len(data)
    return found


def written(schema: Schema, value: object) -> Any:
    """The value, as fastavro reads it."""
    return read_by_fastavro(schema, datum_encoder(schema, AVRO)(value))


def has_empty_items(found: AvroType) -> bool:
    """Whether the type has an array whose items have no bytes, which the converter Avro rejects."""
    inner = [*(field.type for field in found.fields), *found.members, *([found.items] if found.element else [])]
    return (found.kind == "array" and can_be_empty(found.items)) or any(map(has_empty_items, inner))


def without_defaults(schema: Schema) -> Schema:
    return structs.replace(
        schema,
        default=None,
        fields=tuple(Field(each.name, without_defaults(each.schema)) for each in schema.fields),
        keys=schema.keys and without_defaults(schema.keys),
        values=schema.values and without_defaults(schema.values),
    )


# -- random schemas ----------------------------------------------------------------------------------------------------


@given(schemas(3), st.data())
def test_a_value_is_read_as_it_was_encoded(schema: Schema, data: st.DataObject) -> None:
    value = data.draw(values(schema, full=False))
    try:
        datum = datum_encoder(schema, AVRO)(value)
    except (InvalidFieldValue, InvalidSchema) as error:
        assume("enum" not in str(error))  # random texts are no symbols
        raise
    found = avro_type(schema, AVRO)
    assume(not has_empty_items(found))
    read = normaliser(found)(DatumReader(found).read(datum))
    plain = without_defaults(schema)
    assert json_text(plain, read) == json_text(plain, value)
    read_by_fastavro(schema, datum)


@given(schemas(3), st.sampled_from([AVRO, NAMES]))
def test_an_avro_schema_is_valid_and_always_the_same(schema: Schema, settings: DatumSettings) -> None:
    text = avro_schema(schema, settings)
    fastavro.parse_schema(json.loads(text))
    assert avro_schema(structs.replace(schema), settings) == text


@given(schemas(3))
def test_a_schema_of_connect_can_be_read_back_with_the_names_of_connect(schema: Schema) -> None:
    assume("Enum" not in repr(schema))  # the name of an Avro enum is that of its schema, too
    found = connect_schema(parse_avro(avro_schema(schema, NAMES)), schema.version)
    assert found == schema


@given(samples())
def test_a_schema_of_avro_can_be_read_back_with_the_names_of_connect(sample: tuple[Any, list[Any]]) -> None:
    schema = connect_schema(parse_avro(json.dumps(sample[0])), 3, Extension.LOGICAL_TYPES)
    found = connect_schema(parse_avro(avro_schema(schema, NAMES)), 3, Extension.LOGICAL_TYPES)
    assert without_flags(found) == without_flags(schema)


def without_flags(schema: Schema) -> Schema:
    """The schema without AvroData's mark of fields with a default, which it adds to unions with null."""
    return structs.replace(
        schema,
        parameters=tuple(each for each in schema.parameters if each[0] != "io.confluent.connect.avro.field.default"),
        fields=tuple(Field(each.name, without_flags(each.schema)) for each in schema.fields),
        keys=schema.keys and without_flags(schema.keys),
        values=schema.values and without_flags(schema.values),
    )


# -- the rules of AvroData ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (Schema(SchemaType.INT8), "int"),
        (Schema(SchemaType.INT64), "long"),
        (Schema(SchemaType.FLOAT32), "float"),
        (Schema(SchemaType.BYTES), "bytes"),
        (optional(STRING), ["null", "string"]),
        (with_default(optional(STRING), "x"), ["string", "null"]),
        (Schema(SchemaType.ARRAY, values=optional(INT32)), {"type": "array", "items": ["null", "int"]}),
        (Schema(SchemaType.MAP, keys=STRING, values=INT32), {"type": "map", "values": "int"}),
        (decimal(2), {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 2}),
        (
            decimal(2, **{"connect.decimal.precision": "9"}),
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        ),
        (decimal(-2), "bytes"),
        (
            Schema(SchemaType.INT32, "org.apache.kafka.connect.data.Date", version=1),
            {"type": "int", "logicalType": "date"},
        ),
        (
            Schema(SchemaType.INT64, "org.apache.kafka.connect.data.Timestamp", version=1),
            {"type": "long", "logicalType": "timestamp-millis"},
        ),
        (
            Schema(SchemaType.MAP, keys=INT32, values=STRING),
            {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "MapEntry",
                    "namespace": "io.confluent.connect.avro",
                    "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "string"}],
                },
            },
        ),
        (
            Schema(SchemaType.BYTES, "a.F", parameters=(("connect.fixed.size", "4"),)),
            {"type": "fixed", "name": "F", "namespace": "a", "size": 4},
        ),
    ],
)
def test_a_type_of_connect_is_that_of_avrodata(schema: Schema, expected: Any) -> None:
    assert fields(struct(("f", schema))) == [expected]


def test_structs_without_names_are_numbered() -> None:
    found = avro(struct(("a", struct(("x", INT32))), ("b", struct(("y", INT32)))))
    names = [found["name"], *(each["type"]["name"] for each in found["fields"])]
    assert names == ["ConnectDefault", "ConnectDefault2", "ConnectDefault3"]


def test_the_second_use_of_a_type_is_its_name() -> None:
    point = struct(("x", INT32), name="geo.Point")
    assert fields(struct(("a", point), ("b", optional(point))))[1] == ["null", "geo.Point"]


def test_a_second_type_of_a_name_gets_a_number() -> None:
    one, other = struct(("x", INT32), name="geo.Point"), struct(("y", INT32), name="geo.Point")
    assert [each["name"] for each in fields(struct(("a", one), ("b", other)))] == ["Point", "Point_2"]


def test_the_same_message_with_another_tag_is_the_same_type() -> None:
    one, other = (struct(("x", INT32), name="P", parameters=(("tag", tag),)) for tag in "12")
    assert fields(struct(("a", one), ("b", other), name="M"))[1] == "P"


def test_a_recursive_schema_refers_to_itself() -> None:
    node = struct(("next", Schema(SchemaType.REFERENCE, "a.Node", True)), name="a.Node")
    assert fields(node) == [["null", "a.Node"]]
    assert written(node, {"next": {"next": None}}) == {"next": {"next": None}}


def test_a_type_without_a_namespace_is_found_within_a_type_that_has_one() -> None:
    symbols = Schema(
        SchemaType.STRING,
        parameters=(("io.confluent.connect.avro.Enum", "E"), ("io.confluent.connect.avro.Enum.A", "A")),
    )
    assert written(struct(("a", symbols), ("b", symbols)), {"a": "A", "b": "A"}) == {"a": "A", "b": "A"}


def test_a_struct_without_a_namespace_is_found_within_a_map_and_a_struct_without_a_name() -> None:
    node = Schema(SchemaType.REFERENCE, "Node", True)
    children = Schema(SchemaType.MAP, keys=INT32, values=node)
    schema = struct(("children", children), ("other", struct(("node", node))), name="Node")
    value = {"children": [(1, None)], "other": {"node": None}}
    expected = {"children": [{"key": 1, "value": None}], "other": {"node": None}}
    assert written(schema, value) == expected


def test_a_struct_without_a_namespace_is_found_within_structs_that_have_one() -> None:
    """As the struct of a `oneof`, whose name is `io.confluent.connect.protobuf.Union.<oneof>`."""
    inner = struct(("node", Schema(SchemaType.REFERENCE, "Node", True)), name="a.b.Kind")
    schema = struct(("kind", optional(struct(("inner", inner), name="a.Middle"))), ("other", inner), name="Node")
    value = {"kind": {"inner": {"node": {"kind": None, "other": {"node": None}}}}, "other": {"node": None}}
    assert written(schema, value) == value


def test_a_default_is_written_in_avros_form() -> None:
    schema = struct(
        ("b", with_default(Schema(SchemaType.BYTES), b"\xff")),
        ("d", with_default(decimal(2), Decimal("1.00"))),
        ("m", with_default(Schema(SchemaType.MAP, keys=INT32, values=STRING), [(1, "x")])),
        ("n", with_default(Schema(SchemaType.FLOAT64), float("nan"))),
        ("o", optional(INT32)),
    )
    found = {each["name"]: each.get("default", "none") for each in avro(schema)["fields"]}
    assert found == {"b": "\xff", "d": "d", "m": [{"key": 1, "value": "x"}], "n": "none", "o": None}


def test_names_that_avro_does_not_allow_are_changed_as_by_connect() -> None:
    schema = struct(*((name, INT32) for name in ("flight-no", "1st", "ä", "~", "")), name="air-line.Flight No")
    found = avro(schema)
    assert (found["namespace"], found["name"]) == ("air_line", "Flight_No")
    assert [each["name"] for each in found["fields"]] == ["flight_no", "x1st", "_C3_A4", "_7E", "_"]


def test_two_fields_that_become_one_are_rejected_by_name() -> None:
    with pytest.raises(InvalidSchema, match=r"the fields a-b and a\.b have the same name in Avro, a_b"):
        avro_schema(struct(("a-b", INT32), ("a.b", INT32)), AVRO)


@pytest.mark.parametrize("settings", [AVRO, DatumSettings(OutputFormat.PARQUET)])
def test_a_schema_that_the_output_cannot_express_has_no_encoder(settings: DatumSettings) -> None:
    """A record under it is rejected before an object opens for it."""
    with pytest.raises(InvalidSchema, match=r"the fields a-b and a\.b have the same name in Avro, a_b"):
        datum_encoder(struct(("a-b", INT32), ("a.b", INT32)), settings)


def test_names_of_connect_are_written_on_request() -> None:
    schema = struct(("f", Schema(SchemaType.INT8, "n", version=2, doc="d", parameters=(("p", "1"),))))
    assert fields(schema) == ["int"]
    assert fields(schema, NAMES) == [
        {
            "type": "int",
            "connect.doc": "d",
            "connect.version": 2,
            "connect.parameters": {"p": "1"},
            "connect.name": "n",
            "connect.type": "int8",
        }
    ]


# -- values ------------------------------------------------------------------------------------------------------------


def test_a_null_of_a_required_field_takes_its_default() -> None:
    assert written(struct(("f", with_default(INT32, 7))), {"f": None}) == {"f": 7}


def test_a_null_of_an_optional_field_stays_null() -> None:
    assert written(struct(("f", with_default(optional(INT32), 7))), {"f": None}) == {"f": None}


def test_a_float_that_is_too_large_is_infinite() -> None:
    assert written(struct(("f", Schema(SchemaType.FLOAT32))), {"f": -1e300}) == {"f": float("-inf")}


@pytest.mark.parametrize(
    ("schema", "value", "reason"),
    [
        (INT32, 2**31, "2147483648 is outside the range of int32"),
        (INT32, None, "a required value is null or missing"),
        (STRING, "\ud800", "a string has a surrogate that is not part of a pair"),
        (decimal(1), Decimal("0.01"), "a decimal does not have the scale 1"),
        (
            Schema(SchemaType.BYTES, "F", parameters=(("connect.fixed.size", "4"),)),
            b"x",
            "it has 1 bytes, but its type has 4",
        ),
    ],
)
def test_a_value_that_does_not_fit_is_an_error_of_its_field(schema: Schema, value: object, reason: str) -> None:
    outer = struct(("a", Schema(SchemaType.ARRAY, values=struct(("b", schema)))))
    with pytest.raises(InvalidFieldValue) as raised:
        datum_encoder(outer, AVRO)({"a": [{"b": value}]})
    assert str(raised.value) == f"the field a.b: {reason}"


def test_a_default_that_does_not_fit_makes_the_schema_invalid() -> None:
    schema = with_default(decimal(0, **{"connect.decimal.precision": "2"}), Decimal(100))
    with pytest.raises(InvalidSchema, match="a default that cannot be written: a decimal has more than 2 digits"):
        datum_encoder(struct(("f", schema)), AVRO)
