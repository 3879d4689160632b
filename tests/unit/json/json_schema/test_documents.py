"""The keywords of a JSON Schema, and its references."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.connect.errors import InvalidSchema
from sink_job.connect.schema import RegisteredSchema, SchemaReference
from sink_job.json.json_schema.documents import (
    MAX_SHOWN,
    alternatives,
    describes_object,
    is_null,
    looked_up,
    only_other_than_null,
    read_document,
    required,
    symbols,
    target,
    text,
)

NULL, INT = {"type": "null"}, {"type": "integer"}
REF = {"$ref": "#/definitions/A"}


def document(schema: str, **references: str) -> RegisteredSchema:
    others = tuple(SchemaReference(name, name, 1, of) for name, of in references.items())
    return RegisteredSchema("1", "JSON", schema, others)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("{", "the JSON Schema is not JSON"),
        ("5", "the JSON Schema is neither an object nor a boolean"),
        ("[]", "the JSON Schema is neither an object nor a boolean"),
        ("[" * 100_000, "the JSON Schema "),
        ('{"$id": 5}', "a malformed keyword"),
    ],
)
def test_another_text_is_no_schema(schema: str, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason):
        read_document(document(schema))


def test_a_boolean_is_a_schema() -> None:
    assert read_document(document("true"))[1] is True


def test_a_reference_is_found_in_the_schema_and_in_the_others() -> None:
    schema = '{"definitions": {"A": {"type": "integer"}}}'
    resolver, contents = read_document(document(schema, **{"other.json": '{"definitions": {"B": {"type": "string"}}}'}))
    assert contents == {"definitions": {"A": INT}}
    assert looked_up("#/definitions/A", resolver)[0] == INT
    found, inner = looked_up("other.json", resolver)
    assert found == {"definitions": {"B": {"type": "string"}}}
    assert looked_up("#/definitions/B", inner)[0] == {"type": "string"}


def test_a_reference_to_nothing_is_named_shortened() -> None:
    resolver, _ = read_document(document("{}"))
    with pytest.raises(InvalidSchema, match=r"the JSON Schema refers to 'gone.json', which cannot be found"):
        looked_up("gone.json", resolver)
    with pytest.raises(InvalidSchema) as caught:
        looked_up("x" * (MAX_SHOWN + 1), resolver)
    assert f"'{'x' * MAX_SHOWN}…'" in str(caught.value)


@pytest.mark.parametrize(
    ("node", "members"),
    [
        ({"oneOf": [INT, NULL]}, [INT, NULL]),
        ({"anyOf": [INT]}, [INT]),
        ({"oneOf": [INT], "anyOf": [NULL]}, [INT]),
        ({"oneOf": {}}, None),
        (INT, None),
        (
            {"type": ["null", "string"], "title": "t", "description": "d", "default": None, "maxLength": 5},
            [{"type": "null", "maxLength": 5}, {"type": "string", "maxLength": 5}],
        ),
    ],
)
def test_alternatives_are_members_or_a_schema_for_each_type(node: dict[str, Any], members: list[object] | None) -> None:
    assert alternatives(node) == members


@pytest.mark.parametrize(
    ("members", "other"),
    [([NULL, INT], INT), ([INT, NULL], INT), ([NULL, NULL], None), ([INT], None), ([NULL, INT, INT], None), ([], None)],
)
def test_the_other_type_than_null_is_found_in_either_order(members: list[object], other: object) -> None:
    assert only_other_than_null(members) == other
    assert not is_null(True)


@pytest.mark.parametrize(
    ("node", "reference"),
    [
        (REF, "#/definitions/A"),
        ({"$ref": "#/a", "properties": {}}, "#/a"),
        ({"allOf": [REF], "title": "t"}, "#/definitions/A"),
        ({"allOf": [REF], "type": "object"}, "#/definitions/A"),
        ({"allOf": [REF], "type": "string"}, None),
        ({"allOf": [REF], "properties": {}}, None),
        ({"allOf": [REF], "oneOf": []}, None),
        ({"allOf": [REF, REF]}, None),
        ({"allOf": [INT]}, None),
        ({"allOf": [True]}, None),
        ({"allOf": {}}, None),
        ({"$ref": 5}, None),
    ],
)
def test_a_reference_is_that_of_a_node_or_of_its_only_allof(node: dict[str, Any], reference: str | None) -> None:
    assert target(node) == reference


@pytest.mark.parametrize(
    ("node", "is_object"),
    [
        ({"properties": {}}, True),
        ({"required": []}, True),
        ({"allOf": [INT]}, True),
        ({"allOf": []}, False),
        ({"type": ["object", "null"], "properties": {}}, False),
        (INT, False),
    ],
)
def test_an_object_is_described_by_its_keywords(node: dict[str, Any], is_object: bool) -> None:
    assert describes_object(node) is is_object


def test_keywords_of_a_wrong_type_do_not_count() -> None:
    assert (text({"title": "t"}, "title"), text({"title": 5}, "title"), text({}, "title")) == ("t", None, None)
    assert (required({"required": ["a", 5]}), required({"required": "a"}), required({})) == (["a"], [], [])
    assert (symbols({"enum": ["a"]}), symbols({"enum": "a"}), symbols({})) == (["a"], None, None)
