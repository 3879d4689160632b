"""Names of Avro types: each is defined once, and a valid name that its uses find."""

from __future__ import annotations

import json
import re
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.avro.names import MAP_ENTRY, UNNAMED, avro_full_name, avro_name, is_avro_name, with_names
from sink_job.avro.schema import parse_avro
from sink_job.connect.errors import InvalidSchema

VALID = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

NULL = {"type": "null"}


def struct(name: str | None, *types: Any) -> dict[str, Any]:
    fields = [{"name": f"f{number}", "type": each} for number, each in enumerate(types)]
    return {"type": "record", "name": name, "connect": name, "fields": fields}


def fixed(name: str, size: int = 2) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size}


def named(tree: Any) -> Any:
    """The schema with names, which two parsers accept."""
    found = with_names(tree)
    fastavro.parse_schema(json.loads(json.dumps(found)))
    parse_avro(json.dumps(found))
    return found


@given(st.text(max_size=8))
def test_every_text_has_a_valid_name(text: str) -> None:
    assert is_avro_name(avro_name(text))
    assert all(VALID.fullmatch(part) for part in avro_full_name(text).split("."))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a_B1", "a_B1"),
        ("a-b", "a_b"),
        ("a b", "a_b"),
        ("1a", "x1a"),
        ("", "_"),
        ("ä", "_C3_A4"),
        ("a~", "a_7E"),
        ("a*", "a_"),
        ("a\n", "a_0A"),
    ],
)
def test_a_name_that_avro_does_not_allow_is_encoded(text: str, name: str) -> None:
    assert avro_name(text) == name


@pytest.mark.parametrize(
    ("text", "name"), [("a.b.C", "a.b.C"), (".C", "C"), ("a..C", "a.C"), ("...", "___"), ("a.1b", "a.x1b")]
)
def test_each_part_of_a_full_name_is_encoded(text: str, name: str) -> None:
    assert avro_full_name(text) == name


def test_a_type_that_is_used_twice_is_defined_once() -> None:
    found = named(struct("a.R", fixed("a.F"), fixed("a.F")))
    assert [field["type"] for field in found["fields"]] == [
        {"type": "fixed", "name": "F", "namespace": "a", "size": 2},
        "a.F",
    ]


def test_another_type_of_the_same_name_has_a_number() -> None:
    found = named(struct("a.R", fixed("a.F", 2), fixed("a.F", 3), fixed("a.F", 3)))
    assert [each["type"]["name"] for each in found["fields"][:2]] == ["F", "F_2"]
    assert found["fields"][2]["type"] == "a.F_2"


def test_a_type_without_a_namespace_is_defined_again_where_a_type_with_one_uses_it() -> None:
    found = named(struct("R", fixed("F"), struct("a.I", fixed("F")), fixed("F")))
    inner = found["fields"][1]["type"]["fields"][0]["type"]
    assert (inner["name"], inner["namespace"]) == ("F_2", "")
    assert found["fields"][2]["type"] == "F"


def test_a_reference_is_the_name_of_the_enclosing_struct() -> None:
    found = named(struct("a.R", [NULL, {"ref": "a.R"}], {"type": "array", "items": {"ref": "a.R"}}))
    assert [field["type"] for field in found["fields"]] == [["null", "a.R"], {"type": "array", "items": "a.R"}]


@pytest.mark.parametrize("reference", ["a.Other", None])
def test_a_reference_that_nothing_encloses_is_invalid(reference: str | None) -> None:
    with pytest.raises(InvalidSchema, match=f"the schema refers to {reference}, which does not enclose the reference"):
        with_names(struct("a.R", {"ref": reference}))


def test_types_without_a_name_are_numbered() -> None:
    found = named(struct(None, struct(None, {"type": "int"})))
    inner = found["fields"][0]["type"]
    assert f"{found['namespace']}.{found['name']}" == UNNAMED
    assert f"{inner['namespace']}.{inner['name']}" == f"{UNNAMED}2"


def test_a_type_without_a_name_has_no_namespace_around_a_reference_without_one() -> None:
    found = named(struct("R", struct(None, [NULL, {"ref": "R"}])))
    assert found["fields"][0]["type"]["namespace"] == ""


def test_a_renamed_entry_of_a_map_is_marked() -> None:
    entries = [struct(MAP_ENTRY, {"type": kind}) for kind in ("int", "long")]
    found = named(struct("a.R", *entries))
    assert [each["type"].get("connect.internal.type") for each in found["fields"]] == [None, "MapEntry"]


def test_a_type_with_properties_keeps_them_and_one_without_is_its_name() -> None:
    tree = {"type": "map", "values": [{"type": "null"}, {"type": "int", "connect.type": "int8"}]}
    assert named(tree) == {"type": "map", "values": ["null", {"type": "int", "connect.type": "int8"}]}
