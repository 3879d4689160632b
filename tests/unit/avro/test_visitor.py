"""The walk over an Avro type."""

from __future__ import annotations

import json
from typing import Any

from sink_job.avro.schema import parse_avro
from sink_job.avro.visitor import all_types, inner_types
from tests.unit.avro.avro_data import record


def kinds(schema: Any) -> list[str]:
    return [each.kind for each in all_types(parse_avro(json.dumps(schema)))]


def test_a_type_comes_before_those_in_it_in_their_order() -> None:
    inner = record(("x", "int"), ("y", "string"), name="I")
    schema = record(("a", {"type": "array", "items": inner}), ("m", {"type": "map", "values": ["null", "long"]}))
    assert kinds(schema) == ["record", "array", "record", "int", "string", "map", "union", "null", "long"]


def test_a_named_type_is_visited_once_wherever_it_is_used() -> None:
    fixed = {"type": "fixed", "name": "F", "size": 2}
    assert kinds(record(("a", fixed), ("b", "F"), ("c", ["null", "R"]))) == ["record", "fixed", "union", "null"]


def test_a_primitive_has_no_inner_types() -> None:
    assert inner_types(parse_avro('"int"')) == []
