"""Objects that are nested more deeply than the fast JSON parser reads are cut, and are invalid specs."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from s3sink_operator.nesting import MAX_LEVELS, cut, deep_json, parse_json, too_deep
from s3sink_operator.observe.spec_cache import parse
from s3sink_operator.types import Json
from tests.operator.fake_cluster import SPEC

MAX_OF_API_SERVER = 9_990


def nested(levels: int) -> str:
    return '{"a":' * levels + "{}" + "}" * levels


def levels_of(node: Any) -> int:
    found = 0
    while isinstance(node, dict):
        node, found = node.get("a"), found + 1
    return found


def sink(levels: int, **metadata: Any) -> Json:
    template = {"spec": {"x": json.loads(nested(levels))}}
    meta = {"name": "flights", "namespace": "data", "uid": "1", **metadata}
    return {"metadata": meta, "spec": SPEC | {"driver": {"podTemplate": template}}}


@pytest.mark.parametrize("levels", [201, 900, MAX_OF_API_SERVER])
def test_an_object_of_any_depth_that_the_api_server_accepts_is_read(levels: int) -> None:
    with deep_json():
        found = parse_json(nested(levels).encode())
    assert MAX_LEVELS < levels_of(found) < 200


def test_the_limit_of_recursion_is_restored() -> None:
    limit = sys.getrecursionlimit()
    with deep_json():
        assert sys.getrecursionlimit() > limit
    assert sys.getrecursionlimit() == limit


def test_an_answer_that_is_nested_without_end_is_invalid_json() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json(b"[" * 200_000)


def test_a_cut_spec_is_still_too_deep() -> None:
    whole = {"metadata": {}, "spec": json.loads(nested(MAX_LEVELS + 50))}
    assert too_deep(cut(whole)["spec"], "spec")


def test_lists_count_as_levels() -> None:
    assert too_deep(json.loads("[" * 101 + "]" * 101), "spec") == ("spec.0.0.0.0: nested more than 100 levels deep")
    assert too_deep(json.loads("[" * 100 + "]" * 100), "spec") is None


def test_a_spec_that_is_nested_too_deeply_is_invalid_and_its_field_is_named() -> None:
    error = "spec.driver.podTemplate.spec.x: nested more than 100 levels deep"
    assert parse(sink(150)).spec.error == error


def test_a_spec_that_is_nested_less_is_valid() -> None:
    assert parse(sink(80)).spec.error == ""


def test_a_reset_annotation_that_is_nested_too_deeply_is_invalid() -> None:
    with deep_json():
        found = parse(sink(1, annotations={"s3sink.io/reset-offsets": nested(5_000)})).reset
    assert found is not None
    assert found.error == "the JSON is nested too deeply"
