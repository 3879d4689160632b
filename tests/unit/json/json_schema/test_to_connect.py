"""JSON Schemas as Connect's, against io.confluent.connect.json.JsonSchemaData.toConnectSchema."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sink_job.connect import logical_types
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.json_decoder import default_value
from sink_job.connect.schema import Field, RegisteredSchema, Schema, SchemaReference, SchemaType
from sink_job.json.json_schema.to_connect import json_connect_schema

JSON = "io.confluent.connect.json"
TEXT = Schema(SchemaType.STRING)
INT64 = Schema(SchemaType.INT64)
DOUBLE = Schema(SchemaType.FLOAT64)


def translated(node: object, version: int | None = None, references: dict[str, object] | None = None) -> Schema:
    referred = tuple(SchemaReference(name, name, 1, json.dumps(each)) for name, each in (references or {}).items())
    return json_connect_schema(RegisteredSchema("1", "JSON", json.dumps(node), referred, None, version))


def test_the_whole_schema_has_the_subject() -> None:
    found = json_connect_schema(RegisteredSchema("1", "JSON", '{"type": "string"}', subject="flights-value", version=3))
    assert (found.subject, found.version) == ("flights-value", 3)


def object_of(**properties: object) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def optional(kind: SchemaType) -> Schema:
    return Schema(kind, optional=True)


@pytest.mark.parametrize(
    ("node", "kind"),
    [
        ({"type": "boolean"}, SchemaType.BOOLEAN),
        ({"type": "integer"}, SchemaType.INT64),
        ({"type": "number"}, SchemaType.FLOAT64),
        ({"type": "string"}, SchemaType.STRING),
        ({"type": "integer", "connect.type": "int8"}, SchemaType.INT8),
        ({"type": "number", "connect.type": "float32"}, SchemaType.FLOAT32),
        ({"type": "string", "connect.type": "bytes"}, SchemaType.BYTES),
        ({"type": "integer", "format": "int64"}, SchemaType.INT64),
        ({"type": "string", "const": "x"}, SchemaType.STRING),
        ({"minLength": 1}, SchemaType.STRING),
        ({"minimum": 1}, SchemaType.FLOAT64),
    ],
)
def test_a_scalar_is_connects_type(node: object, kind: SchemaType) -> None:
    assert translated(node) == Schema(kind)


def test_an_object_is_a_struct_of_its_properties() -> None:
    node = object_of(b={"type": "integer"}, a={"type": "string"}) | {"title": "R", "description": "d"}
    assert translated(node, 4) == Schema(
        SchemaType.STRUCT, name="R", version=4, doc="d", fields=(Field("b", INT64), Field("a", TEXT))
    )


def test_a_property_that_is_not_required_is_not_optional() -> None:
    assert not translated(object_of(a={"type": "string"}) | {"required": []}).fields[0].schema.optional


def test_connect_index_orders_the_fields() -> None:
    node = object_of(b={"type": "string", "connect.index": 1}, a={"type": "string", "connect.index": 0})
    assert [field.name for field in translated(node).fields] == ["a", "b"]


@pytest.mark.parametrize("key", ["oneOf", "anyOf"])
def test_an_alternative_to_null_is_optional(key: str) -> None:
    assert translated({key: [{"type": "null"}, {"type": "integer"}]}) == optional(SchemaType.INT64)
    assert translated({key: [{"type": "string"}, {"type": "null"}]}) == optional(SchemaType.STRING)


def test_a_list_of_types_is_an_alternative() -> None:
    assert translated({"type": ["string", "null"], "title": "dropped"}) == optional(SchemaType.STRING)


@pytest.mark.parametrize(
    "node",
    [
        {"oneOf": [{"type": "null"}, {"type": "integer"}, {"type": "string"}]},
        {"type": ["null", "integer", "string"]},
    ],
)
def test_other_alternatives_are_a_struct_of_optional_members(node: object) -> None:
    assert translated(node) == Schema(
        SchemaType.STRUCT,
        name=f"{JSON}.OneOf",
        optional=True,
        fields=(
            Field(f"{JSON}.OneOf.field.0", optional(SchemaType.INT64)),
            Field(f"{JSON}.OneOf.field.1", optional(SchemaType.STRING)),
        ),
    )


def test_an_enumeration_has_its_symbols_as_parameters() -> None:
    assert translated({"type": "string", "enum": ["a", None]}) == Schema(
        SchemaType.STRING,
        parameters=((f"{JSON}.Enum", ""), (f"{JSON}.Enum.<NULL>", "<NULL>"), (f"{JSON}.Enum.a", "a")),
    )


def test_an_enumeration_of_numbers_is_a_number() -> None:
    assert translated({"type": "integer", "enum": [1, 2]}) == INT64


def test_an_array_has_the_schema_of_its_items() -> None:
    assert translated({"type": "array", "items": {"type": "integer"}}) == Schema(SchemaType.ARRAY, values=INT64)


def test_an_object_with_connect_type_map_is_a_map() -> None:
    node = {"type": "object", "connect.type": "map", "additionalProperties": {"type": "integer"}}
    assert translated(node) == Schema(SchemaType.MAP, keys=TEXT, values=INT64)


def test_an_array_with_connect_type_map_is_a_map() -> None:
    items = object_of(key={"type": "integer"}, value={"type": "string"})
    node = {"type": "array", "connect.type": "map", "items": items}
    assert translated(node) == Schema(SchemaType.MAP, keys=INT64, values=TEXT)


def test_a_decimal_is_connects() -> None:
    node = {"type": "number", "title": logical_types.DECIMAL, "connect.type": "bytes", "connect.version": 1}
    assert translated(node | {"connect.parameters": {"scale": "2"}}) == Schema(
        SchemaType.BYTES, name=logical_types.DECIMAL, version=1, parameters=(("scale", "2"),)
    )


def test_properties_of_allof_are_merged() -> None:
    node: dict[str, Any] = {"allOf": [object_of(a={"type": "string"}), {"$ref": "#/definitions/B"}], "title": "R"}
    node |= {"definitions": {"B": object_of(b={"type": "integer"})}}
    assert translated(node) == Schema(SchemaType.STRUCT, name="R", fields=(Field("a", TEXT), Field("b", INT64)))


def test_allof_without_properties_is_its_member_with_a_type() -> None:
    assert translated({"allOf": [{"description": "x"}, {"type": "integer"}]}) == INT64


def test_properties_beside_alternatives_are_taken() -> None:
    node = object_of(a={"type": "string"}) | {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    assert translated(node).fields == (Field("a", TEXT),)


def test_a_default_is_the_default_of_its_schema() -> None:
    assert default_value(translated({"type": "integer", "default": 5})) == 5


def test_an_invalid_default_is_dropped() -> None:
    assert translated({"type": "integer", "default": "x"}).default is None


def test_only_the_whole_schema_has_the_version_of_its_subject() -> None:
    found = translated(object_of(a={"type": "integer", "connect.version": 2}) | {"connect.version": 9}, 3)
    assert (found.version, found.fields[0].schema.version) == (3, 2)


@pytest.mark.parametrize("ref", ["#/definitions/A", "#a", "http://x/a.json"])
def test_a_reference_within_the_schema_is_replaced(ref: str) -> None:
    by_id = {"#/definitions/A": {}, "#a": {"$id": "#a"}, "http://x/a.json": {"$id": "http://x/a.json"}}
    node = object_of(f={"$ref": ref}) | {"definitions": {"A": {"type": "integer"} | by_id[ref]}}
    assert translated(node).fields == (Field("f", INT64),)


def test_a_reference_to_another_schema_is_replaced() -> None:
    node = object_of(f={"$ref": "other.json#/definitions/A"})
    other = {"definitions": {"A": object_of(g={"$ref": "#/definitions/B"}), "B": {"type": "string"}}}
    assert translated(node, references={"other.json": other}).fields[0].schema.fields == (Field("g", TEXT),)


def test_an_object_that_contains_itself_is_referred_to_by_its_title() -> None:
    found = translated(object_of(next={"oneOf": [{"type": "null"}, {"$ref": "#"}]}) | {"title": "List"})
    assert found.name == "List"
    assert found.fields[0].schema == Schema(SchemaType.REFERENCE, name="List", optional=True)


def test_an_object_without_title_that_contains_itself_is_named_by_its_reference() -> None:
    node = object_of(head={"$ref": "#/definitions/N"})
    node |= {"definitions": {"N": object_of(next={"type": "array", "items": {"$ref": "#/definitions/N"}})}}
    head = translated(node).fields[0].schema
    assert head.name == "#/definitions/N"
    assert head.fields[0].schema.values == Schema(SchemaType.REFERENCE, name="#/definitions/N")


def test_a_nullable_object_that_contains_itself_is_a_reference() -> None:
    found = translated({"type": ["object", "null"], "properties": {"next": {"$ref": "#"}}})
    assert (found.type, found.optional, found.name) == (SchemaType.STRUCT, True, "#")
    assert found.fields[0].schema.type is SchemaType.REFERENCE


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (True, "not an object"),
        ({}, "without a type"),
        ({"type": "null"}, "the type null"),
        ({"type": "array"}, "its items"),
        ({"type": "array", "items": [{"type": "string"}]}, "its items"),
        ({"type": "integer", "connect.type": "int4"}, "'int4'"),
        ({"type": "string", "connect.parameters": {"a": 1}}, "an object of texts"),
        ({"allOf": [{"title": "x"}]}, "allOf without a member"),
        (object_of(a={"$ref": "#/definitions/A"}), "cannot be found"),
        (object_of(a={"$ref": "http://127.0.0.1:1/a.json"}), "cannot be found"),
        ({"type": "array", "items": {"$ref": "#"}}, "contains itself"),
        ({"oneOf": [{"type": "string"}, {"$ref": "#"}]}, "contains itself"),
        ([], "neither an object nor a boolean"),
    ],
)
def test_an_unsupported_schema_is_rejected_with_the_reason(node: object, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason):
        translated(node)


@pytest.mark.parametrize(
    ("node", "place"),
    [
        (object_of(a={"type": "string"}, b={"type": "strin"}), "(in the property b)"),
        (object_of(a=object_of(b={"type": "array", "items": object_of(c={})})), "(in the property a.b.c)"),
        (object_of(a=object_of(b={"type": "string"}), c={"type": "null"}), "(in the property c)"),
        (object_of(**{"a" * 300: {}}), f"(in the property {'a' * 200}…)"),
    ],
)
def test_an_unsupported_schema_of_a_property_is_rejected_with_its_place(node: object, place: str) -> None:
    with pytest.raises(InvalidSchema) as raised:
        translated(node)
    assert str(raised.value).endswith(f" is not supported {place}")


@pytest.mark.parametrize("text", ["", "{", '{"a":' * 100_000])
def test_a_text_that_is_not_json_is_rejected(text: str) -> None:
    with pytest.raises(InvalidSchema, match=r"not JSON|is nested deeper than 400 levels"):
        json_connect_schema(RegisteredSchema("1", "JSON", text))


def test_references_in_a_circle_are_rejected() -> None:
    node = object_of(a={"$ref": "#/definitions/A"}) | {"definitions": {"A": {"$ref": "#/definitions/A"}}}
    with pytest.raises(InvalidSchema, match="deeper than 100"):
        translated(node)


NODE = "#/definitions/Node"


def described(ref: str = NODE, **more: object) -> dict[str, object]:
    """A reference with a description, which JSON Schema does not allow beside `$ref`."""
    return {"description": "d", "allOf": [{"$ref": ref}], **more}


def recursive(node: dict[str, Any], **properties: object) -> Schema:
    """The schema with the definition `node` of Node, under the property `root` or `properties`."""
    root = object_of(**(properties or {"root": {"$ref": NODE}})) | {"definitions": {"Node": node}}
    return translated(root)


def use(name: str, *, optional: bool = False) -> Schema:
    return Schema(SchemaType.REFERENCE, name=name, optional=optional)


def test_an_object_that_contains_itself_with_a_description_is_referred_to() -> None:
    root = recursive(object_of(left=described(), right=described())).fields[0].schema
    assert (root.name, [field.schema for field in root.fields]) == (NODE, [use(NODE), use(NODE)])


def test_an_object_that_is_only_used_with_a_description_is_referred_to() -> None:
    fields = {f"f{n}": described() for n in range(20)}
    root = recursive(object_of(**fields), root=described()).fields[0].schema
    assert (root.name, root.doc, {field.schema for field in root.fields}) == (NODE, "d", {use(NODE)})


def test_an_array_of_an_object_that_contains_itself_has_a_reference() -> None:
    node = object_of(children={"type": "array", "items": described(title="Child")}) | {"title": "Parent"}
    root = recursive(node).fields[0].schema
    assert root.fields[0].schema == Schema(SchemaType.ARRAY, values=use("Parent"))


def test_an_object_of_several_schemas_that_contains_itself_is_referred_to() -> None:
    both = {"allOf": [{"$ref": NODE}, object_of(extra={"type": "integer"})]}
    node = object_of(children={"type": "array", "items": both}, next=both)
    root = recursive(node).fields[0].schema
    children = root.fields[0].schema.values
    assert children is not None
    assert children.fields[0].schema == Schema(SchemaType.ARRAY, values=use(children.name or ""))
    following = children.fields[1].schema
    assert following.name != children.name
    assert following.fields[0].schema.values == use(children.name or "")
    assert following.fields[1].schema == use(following.name or "")


def test_an_array_that_contains_itself_through_an_object_is_used_again() -> None:
    node = {"type": "array", "items": object_of(children={"$ref": NODE})}
    items = recursive(node).fields[0].schema.values
    assert items is not None
    assert items.fields[0].schema.values == use(items.name or "")


@pytest.mark.parametrize(
    "node",
    [
        {"type": ["object", "null"], "properties": {"next": {"$ref": NODE}}},
        {"oneOf": [{"type": "null"}, object_of(next={"$ref": NODE})]},
    ],
)
def test_an_optional_object_that_contains_itself_has_an_optional_reference(node: dict[str, Any]) -> None:
    root = recursive(node).fields[0].schema
    assert (root.name, root.optional) == (NODE, True)
    assert root.fields[0].schema == use(NODE, optional=True)


def test_a_reference_is_not_hidden_by_an_object_with_the_same_title() -> None:
    inner = object_of(back={"$ref": NODE}) | {"title": "T"}
    root = recursive(object_of(inner=inner) | {"title": "T"}).fields[0].schema
    assert (root.name, root.fields[0].schema.name) == ("T", "T.2")
    assert root.fields[0].schema.fields[0].schema == use("T")


def test_objects_with_one_title_that_do_not_contain_themselves_keep_it() -> None:
    found = translated(object_of(a=object_of(b={"type": "string"}) | {"title": "T"}) | {"title": "T"})
    assert (found.name, found.fields[0].schema.name) == ("T", "T")


def chain(length: int) -> dict[str, Any]:
    """A chain of references below `allOf`."""
    links: dict[str, Any] = {f"a{n}": {"$ref": f"#/definitions/a{n + 1}"} for n in range(length)}
    return {"definitions": links | {f"a{length}": object_of(x={"type": "integer"})}}


def test_a_long_chain_of_references_in_allof_is_followed() -> None:
    found = translated(chain(5000) | {"allOf": [{"$ref": "#/definitions/a0"}]})
    assert found.fields == (Field("x", INT64),)


def test_objects_that_are_used_exponentially_often_are_rejected() -> None:
    names = [f"N{n}" for n in range(9)]
    refs: dict[str, object] = {name: {"allOf": [{"$ref": f"#/definitions/{name}"}, {"title": "x"}]} for name in names}
    definitions = {name: object_of(**refs) for name in names}
    with pytest.raises(InvalidSchema, match="more than 1"):
        translated(object_of(**refs) | {"definitions": definitions})


def test_a_schema_with_too_long_parameters_is_rejected() -> None:
    fields: dict[str, object] = {f"f{n}": {"$ref": "#/definitions/E"} for n in range(100)}
    symbols = [f"symbol {n}" for n in range(10_000)]
    with pytest.raises(InvalidSchema, match="more than 16,777,216 characters"):
        translated(object_of(**fields) | {"definitions": {"E": {"type": "string", "enum": symbols}}})


def test_a_default_whose_exponent_is_out_of_range_is_rejected() -> None:
    with pytest.raises(InvalidSchema, match="out of range"):
        json_connect_schema(RegisteredSchema("1", "JSON", '{"type":"number","default":1e99999999999999999999}'))


def test_the_reason_for_an_unknown_reference_does_not_contain_the_schema() -> None:
    with pytest.raises(InvalidSchema) as raised:
        translated({**object_of(a={"$ref": "#/definitions/" + "x" * 1000}), "description": "y" * 1000})
    assert len(str(raised.value)) < 400
