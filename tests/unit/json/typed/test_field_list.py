"""Field lists: the short form of a schema for JSON values."""

from __future__ import annotations

import pytest

from sink_job.connect import logical_types
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.json.typed.field_list import (
    TYPES,
    FieldType,
    field_list_lines,
    field_list_text,
    fields_schema,
    parse_fields,
)

FLIGHT = """
- {name: carrier, type: string, doc: two letters}
- {name: delay, type: int64, optional: true}
- {name: pos, fields: [{name: lat, type: float64}]}
- {name: legs, items: {type: string}}
- {name: tags, optional: true, values: {type: boolean, optional: true}}
- name: price
  type: decimal(10, 2)
"""


def of(text: str) -> Schema:
    return fields_schema(parse_fields(text))


def only(text: str) -> Schema:
    (field,) = of(f"[{{name: f, {text}}}]").fields
    return field.schema


def test_a_field_list_has_structs_arrays_maps_and_decimals() -> None:
    text, price = Schema(SchemaType.STRING), (("connect.decimal.precision", "10"), ("scale", "2"))
    assert of(FLIGHT) == Schema(
        SchemaType.STRUCT,
        fields=(
            Field("carrier", Schema(SchemaType.STRING, doc="two letters")),
            Field("delay", Schema(SchemaType.INT64, optional=True)),
            Field("pos", Schema(SchemaType.STRUCT, fields=(Field("lat", Schema(SchemaType.FLOAT64)),))),
            Field("legs", Schema(SchemaType.ARRAY, values=text)),
            Field(
                "tags",
                Schema(SchemaType.MAP, optional=True, keys=text, values=Schema(SchemaType.BOOLEAN, optional=True)),
            ),
            Field("price", Schema(SchemaType.BYTES, logical_types.DECIMAL, version=1, parameters=price)),
        ),
    )


@pytest.mark.parametrize("kind", TYPES)
def test_each_type_has_a_schema(kind: str) -> None:
    found = only(f"type: {kind}")
    assert not found.optional
    assert kind in (found.type.value, found.logical) or found.name


def test_json_is_yaml_and_the_list_can_be_in_an_object() -> None:
    assert of('{"fields": [{"name": "f", "type": "int8"}]}') == of("- {name: f, type: int8}")


def test_the_canonical_text_and_the_printed_lines_give_the_same_fields() -> None:
    fields = parse_fields(FLIGHT)
    assert parse_fields(field_list_text(fields)) == fields
    assert parse_fields("\n".join(field_list_lines(fields))) == fields
    assert next(field_list_lines([FieldType("f", type="int8")])) == '- {"name":"f","type":"int8"}'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("- {name: f, type: integer}", "the field f has the type 'integer', which is unknown: use boolean, int8"),
        ("- {name: f, type: integer}", "or fields, items or values; did you mean int32 or int64?"),
        ("- {name: f, type: double}", "; did you mean float64?"),
        ("- {name: f, type: timestamp}", "; did you mean timestamp-millis?"),
        ("- {name: f, type: decimal}", "; did you mean decimal(10, 2)?"),
        ("- {name: f, type: timestamp-milis}", "; did you mean timestamp-millis?"),
        ("- {name: f}", "the field f has no type: use "),
        ("- {name: f, type: int8}\n- {type: int8}", "a field of the value has no name: number 2 of its fields"),
        ("- {name: a, fields: [{type: int8}]}", "a field of a has no name: number 1 of its fields"),
        ("- {name: f, type: int8}\n- {name: f, type: int8}", "the field f is listed 2 times"),
        ("- {name: a, items: {fields: [{name: b, type: x}]}}", "the field a[].b has the type 'x'"),
        ("- {name: f, type: int8, fields: []}", "the field f has several types"),
        ("- {name: f, items: {type: int8}, values: {type: int8}}", "the field f has several types"),
        ("- {name: f, items: {name: g, type: int8}}", "the field f has a name for its items or values: remove 'g'"),
        (
            "- {name: f, type: 'decimal(39, 2)'}",
            "the field f has the type decimal(39, 2): the precision is from 1 to 38",
        ),
        ("- {name: f, type: 'decimal(2, 3)'}", "the scale at most the precision"),
        ("- {name: f, typ: int8}", "the field list is invalid: Object contains unknown field `typ`"),
        ("- {name: f, typ: int8}", "A field is {name: a, type: string}, or has fields: [{name: b, "),
        ("- {name: f, items: string}", "items: {type: string} or values: {type: string} instead of type"),
        ("- {name: f, type: decimal(4, 2)}", "A type with a comma needs quotes: 'decimal(10, 2)'"),
        ("- {name: f, name: g, type: int8}", "the text is invalid: line 1: name is a duplicate"),
        ("name: f", "the field list is not a list of fields"),
        ("- [", "the text is neither JSON nor YAML"),
        ('- {name: "\\ud800", type: int8}', "the field list has a surrogate that is not part of a pair"),
        ('- {name: f, type: int8, doc: "\\udc00"}', "the field list has a surrogate that is not part of a pair"),
    ],
)
def test_an_invalid_field_list_is_rejected_by_the_path(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchema) as raised:
        of(text)
    assert reason in str(raised.value)
