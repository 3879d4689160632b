"""Avro schemas as Connect's, against io.confluent.connect.avro.AvroData.toConnectSchema."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sink_job.avro import to_connect as avro_to_connect
from sink_job.avro.schema import parse_avro
from sink_job.avro.to_connect import connect_schema, parse_registered
from sink_job.connect import logical_types
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.json_decoder import default_value
from sink_job.connect.json_encoder import json_text
from sink_job.connect.limits import Limits
from sink_job.connect.schema import Field, RegisteredSchema, Schema, SchemaReference, SchemaType, schema_id

AVRO = "io.confluent.connect.avro"


def translated(avro_type: object, version: int | None = None) -> Schema:
    return connect_schema(parse_avro(json.dumps(avro_type)), version)


def record(*fields: dict[str, Any], name: Any = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field_schema(avro_type: object, **more: object) -> Schema:
    """The schema of a record's field of type `avro_type`."""
    return translated(record({"name": "f", "type": avro_type, **more})).fields[0].schema


@pytest.mark.parametrize(
    ("avro_type", "kind"),
    [
        ("boolean", SchemaType.BOOLEAN),
        ("int", SchemaType.INT32),
        ("long", SchemaType.INT64),
        ("float", SchemaType.FLOAT32),
        ("double", SchemaType.FLOAT64),
        ("bytes", SchemaType.BYTES),
        ("string", SchemaType.STRING),
    ],
)
def test_a_primitive_is_connects_type(avro_type: str, kind: SchemaType) -> None:
    assert translated(avro_type) == Schema(kind)


@pytest.mark.parametrize(("annotated", "kind"), [("int8", SchemaType.INT8), ("int16", SchemaType.INT16)])
def test_an_int_with_connect_type_is_smaller(annotated: str, kind: SchemaType) -> None:
    assert translated({"type": "int", "connect.type": annotated}) == Schema(kind)


def test_an_unknown_connect_type_is_invalid() -> None:
    with pytest.raises(InvalidSchema, match="'int4'"):
        translated({"type": "int", "connect.type": "int4"})


@pytest.mark.parametrize(
    ("avro_type", "logical_type", "kind", "name"),
    [
        ("int", "date", SchemaType.INT32, logical_types.DATE),
        ("int", "time-millis", SchemaType.INT32, logical_types.TIME),
        ("long", "timestamp-millis", SchemaType.INT64, logical_types.TIMESTAMP),
    ],
)
def test_a_date_or_time_is_connects_logical_type(
    avro_type: str, logical_type: str, kind: SchemaType, name: str
) -> None:
    assert translated({"type": avro_type, "logicalType": logical_type}) == Schema(kind, name=name, version=1)


@pytest.mark.parametrize(
    ("avro_type", "logical_type", "kind"),
    [
        ("long", "time-micros", SchemaType.INT64),
        ("long", "timestamp-micros", SchemaType.INT64),
        ("long", "local-timestamp-millis", SchemaType.INT64),
        ("string", "uuid", SchemaType.STRING),
        ("long", "date", SchemaType.INT64),
    ],
)
def test_any_other_logical_type_is_ignored(avro_type: str, logical_type: str, kind: SchemaType) -> None:
    assert translated({"type": avro_type, "logicalType": logical_type}) == Schema(kind)


def test_a_decimal_has_its_scale_and_precision_as_parameters() -> None:
    assert translated({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}) == Schema(
        SchemaType.BYTES,
        name=logical_types.DECIMAL,
        version=1,
        parameters=(("connect.decimal.precision", "9"), ("scale", "2")),
    )


def test_a_decimal_of_the_default_precision_has_only_a_scale() -> None:
    assert translated({"type": "bytes", "logicalType": "decimal", "precision": 64}).parameters == (("scale", "0"),)


def test_a_fixed_has_its_name_and_size() -> None:
    assert translated({"type": "fixed", "name": "n.F", "size": 4}) == Schema(
        SchemaType.BYTES, name="n.F", parameters=(("connect.fixed.size", "4"),)
    )


def test_a_decimal_on_a_fixed_is_a_decimal() -> None:
    found = translated({"type": "fixed", "name": "F", "size": 4, "logicalType": "decimal", "precision": 3, "scale": 1})
    assert found.name == logical_types.DECIMAL
    assert found.parameter == {"scale": "1", "connect.decimal.precision": "3", "connect.fixed.size": "4"}


def test_an_enum_is_a_text_with_its_symbols_as_parameters() -> None:
    avro_type = {"type": "enum", "name": "E", "namespace": "n", "symbols": ["B", "A"], "doc": "d", "default": "A"}
    assert translated(avro_type) == Schema(
        SchemaType.STRING,
        name="n.E",
        parameters=(
            (f"{AVRO}.Enum", "n.E"),
            (f"{AVRO}.Enum.A", "A"),
            (f"{AVRO}.Enum.B", "B"),
            (f"{AVRO}.enum.default.E", "A"),
            (f"{AVRO}.enum.doc.E", "d"),
        ),
    )


def test_a_record_has_its_full_name_version_and_fields() -> None:
    avro_type = record({"name": "a", "type": "int"}, {"name": "b", "type": "string"}, namespace="n")
    assert translated(avro_type, 7) == Schema(
        SchemaType.STRUCT,
        name="n.R",
        version=7,
        fields=(Field("a", Schema(SchemaType.INT32)), Field("b", Schema(SchemaType.STRING))),
    )


def test_docs_of_a_record_and_its_fields_are_parameters() -> None:
    found = translated(record({"name": "a", "type": "int", "doc": "of a"}, doc="of R"))
    assert found.parameter == {f"{AVRO}.record.doc": "of R", f"{AVRO}.field.doc.a": "of a"}
    assert found.doc is None


def test_only_the_whole_schema_has_the_version_of_its_subject() -> None:
    inner = record({"name": "a", "type": "int"}, name="Inner")
    assert translated(record({"name": "f", "type": inner}), 3).fields[0].schema.version is None


def test_the_version_in_the_subject_replaces_connect_version() -> None:
    assert translated(record() | {"connect.version": 1}, 5).version == 5
    assert translated(record() | {"connect.version": 1}).version == 1


def test_the_connect_properties_of_a_type_are_taken() -> None:
    properties = {"connect.name": "c.N", "connect.doc": "d", "connect.parameters": {"p": "1"}}
    avro_type = record() | properties | {"avro.java.string": "String"}
    assert translated(avro_type) == Schema(
        SchemaType.STRUCT, name="c.N", doc="d", parameters=(("avro.java.string", "String"), ("p", "1"))
    )


def test_the_default_name_of_the_converter_is_dropped() -> None:
    assert translated(record(name="ConnectDefault", namespace=AVRO)).name is None


def test_parameters_that_are_not_texts_are_invalid() -> None:
    with pytest.raises(InvalidSchema, match="an object of texts"):
        translated({"type": "int", "connect.parameters": {"p": 1}})


def test_a_union_with_null_is_an_optional_type() -> None:
    assert translated(["null", "int"]) == Schema(SchemaType.INT32, optional=True)
    assert translated(["int", "null"]) == Schema(SchemaType.INT32, optional=True)


def test_the_default_of_an_optional_field_is_dropped() -> None:
    assert field_schema(["int", "null"], default=5) == Schema(SchemaType.INT32, optional=True)


def test_any_other_union_is_a_struct_of_optional_members() -> None:
    inner = record({"name": "a", "type": "int"}, name="n.Inner")
    found = translated(["null", "int", inner, "string"])
    assert (found.name, found.optional) == (f"{AVRO}.Union", True)
    assert [each.name for each in found.fields] == ["int", "Inner", "string"]
    assert all(each.schema.optional for each in found.fields)


def test_a_union_of_two_types_with_one_short_name_is_invalid() -> None:
    with pytest.raises(InvalidSchema, match="same name"):
        translated([record(name="a.R"), record(name="b.R")])


def test_an_array_and_a_map_have_the_schemas_of_their_values() -> None:
    assert translated({"type": "array", "items": "int"}) == Schema(SchemaType.ARRAY, values=Schema(SchemaType.INT32))
    assert translated({"type": "map", "values": "int"}) == Schema(
        SchemaType.MAP, keys=Schema(SchemaType.STRING), values=Schema(SchemaType.INT32)
    )


@pytest.mark.parametrize("entry", [{"name": f"{AVRO}.MapEntry"}, {"name": "E", "connect.internal.type": "MapEntry"}])
def test_an_array_of_map_entries_is_a_map(entry: dict[str, Any]) -> None:
    avro_type = record({"name": "key", "type": "int"}, {"name": "value", "type": "string"}, **entry)
    assert translated({"type": "array", "items": avro_type}) == Schema(
        SchemaType.MAP, keys=Schema(SchemaType.INT32), values=Schema(SchemaType.STRING)
    )


@pytest.mark.parametrize(
    ("avro_type", "default", "value"),
    [
        ("int", 5, 5),
        ("string", "x", "x"),
        ("double", 1, 1.0),
        ("boolean", False, False),
        ("bytes", "\x00ÿ", b"\x00\xff"),
        ({"type": "array", "items": "int"}, [1, 2], [1, 2]),
        ({"type": "map", "values": "int"}, {"b": 1, "a": 2}, {"a": 2, "b": 1}),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "A", "A"),
        (record({"name": "a", "type": "int"}, {"name": "b", "type": "int", "default": 2}), {"a": 1}, {"a": 1, "b": 2}),
        (["int", "string", "null"], 3, {"int": 3, "string": None}),
    ],
)
def test_a_default_of_a_field_is_the_default_of_its_schema(avro_type: object, default: object, value: object) -> None:
    avro_type = {**avro_type, "name": "Inner"} if isinstance(avro_type, dict) and "name" in avro_type else avro_type
    found = field_schema(avro_type, default=default)
    assert default_value(found) == value
    assert found.parameter[f"{AVRO}.field.default"] == "true"


def test_a_connect_default_is_the_default_of_its_schema() -> None:
    found = field_schema([{"type": "int", "connect.default": 42}, "null"], default=42)
    assert (default_value(found), found.optional, found.parameters) == (42, True, ())


@pytest.mark.parametrize(("avro_type", "default"), [("int", "x"), ("int", 2**31), ("bytes", "Ā"), ("boolean", 1)])
def test_an_invalid_default_is_dropped(avro_type: str, default: object) -> None:
    assert field_schema(avro_type, default=default).default is None


def test_a_recursive_record_refers_to_itself() -> None:
    found = translated(record({"name": "next", "type": ["null", "R"]}, name="R", namespace="n"))
    assert found.fields[0].schema == Schema(SchemaType.REFERENCE, name="n.R", optional=True)


def test_an_empty_default_of_a_recursive_type_is_taken() -> None:
    children = {"name": "children", "type": {"type": "array", "items": "R"}, "default": []}
    found = translated(record(children))
    assert default_value(found.fields[0].schema) == []
    assert json_text(found, {"children": None}) == b'{"children":[]}'


def test_a_default_that_needs_its_own_record_is_dropped() -> None:
    children = {"name": "children", "type": {"type": "array", "items": "R"}, "default": [{"children": []}]}
    assert translated(record(children)).fields[0].schema.default is None


SAME_NAMES = record(
    {
        "name": "b",
        "type": record({"name": "a", "type": ["null", "A"]}, name="B", **{"connect.name": "X"}),
    },
    name="A",
    **{"connect.name": "X"},
)
"""B's reference to A by the name X would be one to B."""


def test_a_record_that_is_used_twice_is_not_a_reference() -> None:
    inner = record({"name": "a", "type": "int"}, name="Inner")
    found = translated(record({"name": "one", "type": inner}, {"name": "two", "type": "Inner"}))
    assert found.fields[0].schema == found.fields[1].schema
    assert found.fields[1].schema.type is SchemaType.STRUCT


def test_a_recursive_record_without_a_connect_name_keeps_its_name() -> None:
    found = translated(
        record({"name": "next", "type": ["null", "R"]}, name="R", **{"connect.name": f"{AVRO}.ConnectDefault"})
    )
    assert found.name == found.fields[0].schema.name == "R"


def test_references_are_parsed_before_the_schema() -> None:
    registered = RegisteredSchema(
        "1",
        "AVRO",
        json.dumps(record({"name": "f", "type": "n.Inner"})),
        (SchemaReference("n.Inner", "s", 1, json.dumps(record({"name": "a", "type": "int"}, name="n.Inner"))),),
    )
    assert connect_schema(parse_registered(registered)).fields[0].schema.name == "n.Inner"


def test_a_name_is_looked_up_in_the_namespace_of_its_record() -> None:
    inner = record(name="Inner", namespace="")
    found = translated(record({"name": "a", "type": inner}, {"name": "b", "type": "Inner"}, name="n.R"))
    assert [each.schema.name for each in found.fields] == ["Inner", "Inner"]


@pytest.mark.parametrize(
    ("avro_type", "reason"),
    [
        ("unknown", "'unknown' is not defined"),
        ("null", "a null that is not in a union"),
        (5, "a text, an array or an object"),
        ({"type": "record", "name": "R"}, "R has no fields"),
        ({"type": "record", "fields": []}, "has no name"),
        (record({"name": "a", "type": "int"}, {"name": "a", "type": "int"}), "two fields"),
        (record({"name": "a", "type": {"type": "fixed", "name": "R", "size": 1}}), "defined twice"),
        (record({"name": "a", "type": "int"}, {"type": "int"}), "a field has no name"),
        ({"type": "enum", "name": "E", "symbols": ["A", "A"]}, "different texts"),
        ({"type": "fixed", "name": "F", "size": -1}, "size"),
        (["int", "int"], "a type twice"),
        (["int", ["string"]], "contain a union"),
        ({"type": "array"}, "a text, an array or an object"),
        ({"type": "int", "logicalType": "date", "connect.name": "x"}, "connect.name x"),
        ({"type": "int", "logicalType": "date", "connect.version": 2}, "connect.version 2"),
        (SAME_NAMES, "a recursive record that contains another record with its name X"),
    ],
)
def test_an_invalid_schema_is_rejected_with_the_reason(avro_type: object, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason):
        translated(avro_type)


@pytest.mark.parametrize("text", ["", "{", "int", '{"type":"int"} x', "[" * 100_000])
def test_a_text_that_is_not_json_is_rejected(text: str) -> None:
    with pytest.raises(InvalidSchema, match=r"not JSON|is nested deeper than 400 levels"):
        parse_avro(text)


def test_an_error_names_its_place() -> None:
    with pytest.raises(InvalidSchema, match=r"at n\.R\.f\.array\[1\]: the type 'X'"):
        translated(record({"name": "f", "type": {"type": "array", "items": ["null", "X"]}}, namespace="n"))


def test_types_that_are_nested_too_deeply_are_rejected() -> None:
    avro_type: object = "int"
    for _ in range(150):
        avro_type = {"type": "array", "items": avro_type}
    with pytest.raises(InvalidSchema, match="deeper than 100"):
        translated(avro_type)


def test_records_nested_through_references_are_limited_in_depth() -> None:
    texts = [json.dumps(record({"name": "f", "type": f"R{n - 1}" if n else "int"}, name=f"R{n}")) for n in range(500)]
    with pytest.raises(InvalidSchema, match="deeper than 100"):
        connect_schema(parse_avro(texts[-1], texts[:-1]))


def test_a_schema_that_grows_exponentially_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_to_connect, "Limits", lambda: Limits(max_nodes=1_000))
    texts = [json.dumps(record({"name": "a", "type": "int"}, name="R0"))]
    for n in range(1, 40):
        fields = [{"name": name, "type": f"R{n - 1}"} for name in "ab"]
        texts.append(json.dumps(record(*fields, name=f"R{n}")))
    with pytest.raises(InvalidSchema, match="1,000 types"):
        connect_schema(parse_avro(texts[-1], texts[:-1]))


def test_equal_schemas_have_equal_ids() -> None:
    avro_type = record({"name": "a", "type": "int", "default": 1}, doc="d")
    assert schema_id(translated(avro_type, 1)) == schema_id(translated(json.loads(json.dumps(avro_type)), 1))
    assert schema_id(translated(avro_type, 1)) != schema_id(translated(avro_type, 2))


@pytest.mark.parametrize("scale", [2**62, -(2**63), 10_001])
def test_a_decimal_with_a_scale_that_is_too_large_is_rejected(scale: int) -> None:
    with pytest.raises(InvalidSchema, match="beyond ±10,000"):
        translated({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": scale, "connect.default": "a"})


@pytest.mark.parametrize("annotated", [{}, [], 1])
def test_an_int_whose_connect_type_is_no_text_is_rejected(annotated: object) -> None:
    with pytest.raises(InvalidSchema, match="an int with connect"):
        translated({"type": "int", "connect.type": annotated})


def test_a_default_that_is_nested_too_deeply_is_rejected() -> None:
    default: dict[str, Any] = {"next": None}
    for _ in range(300):
        default = {"next": default}
    recursive = record({"name": "next", "type": ["Q", "null"]}, name="Q")
    with pytest.raises(InvalidSchema, match="a default that is nested deeper than 100"):
        translated(record({"name": "q", "type": recursive, "default": default}))


def test_a_schema_with_too_long_parameters_is_rejected() -> None:
    enum = {"type": "enum", "name": "E", "symbols": [f"symbol{n}" for n in range(10_000)]}
    fields = [{"name": f"f{n}", "type": "E" if n else enum} for n in range(100)]
    with pytest.raises(InvalidSchema, match="more than 16,777,216 characters"):
        translated(record(*fields))


def test_a_schema_with_too_long_defaults_is_rejected() -> None:
    fields = [{"name": f"f{n}", "type": "string", "default": "x" * 1000} for n in range(10)]
    inner = record(*fields, name="I")
    uses = [{"name": f"u{n}", "type": "I" if n else inner} for n in range(2000)]
    with pytest.raises(InvalidSchema, match="more than 16,777,216 characters"):
        translated(record(*uses))
