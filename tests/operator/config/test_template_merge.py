"""The strategic merge of two pod templates, whatever a user has written into one of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_operator.config.template_merge import item_key, merge, own_container, section

JSON = st.recursive(
    st.sampled_from((None, True, 1, "a")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(("containers", "env", "ports", "name", "a")), inner, max_size=3)
    ),
    max_leaves=12,
)


def test_fields_of_both_are_kept_and_ours_wins_where_both_set_one() -> None:
    theirs = {"a": 1, "b": {"c": 2, "d": 3}}
    assert merge(theirs, {"b": {"c": 9}, "e": 4}) == {"a": 1, "b": {"c": 9, "d": 3}, "e": 4}


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [({"a": 1}, 5), ([1], {"a": 1}), ("text", [1]), (None, {"a": 1}), ([1, 2], [3])],
    ids=["mapping", "list", "text", "null", "list without names"],
)
def test_a_value_of_another_type_or_a_list_without_names_is_ours(theirs: Any, ours: Any) -> None:
    assert merge({"x": theirs}, {"x": ours}) == {"x": ours}


@pytest.mark.parametrize(
    ("field", "key"),
    [
        ("containers", "name"),
        ("initContainers", "name"),
        ("ports", "containerPort"),
        ("imagePullSecrets", "name"),
        ("topologySpreadConstraints", "topologyKey"),
    ],
)
def test_list_items_of_one_name_are_merged_and_theirs_follow_ours(field: str, key: str) -> None:
    theirs = [{key: "b", "x": 1}, {key: "a", "x": 1, "y": 1}]
    merged = merge({field: theirs}, {field: [{key: "a", "y": 2}, {key: "c"}]})
    assert merged == {field: [{key: "a", "x": 1, "y": 2}, {key: "c"}, {key: "b", "x": 1}]}


@pytest.mark.parametrize(("field", "key"), [("volumes", "name"), ("env", "name"), ("volumeMounts", "mountPath")])
def test_an_item_with_one_source_is_replaced_and_not_merged(field: str, key: str) -> None:
    """A volume with two sources, or a variable with a value and a reference, is rejected by the API server."""
    theirs = [{key: "a", "emptyDir": {}}, {key: "b", "emptyDir": {}}]
    merged = merge({field: theirs}, {field: [{key: "a", "configMap": {}}]})
    assert merged == {field: [{key: "a", "configMap": {}}, {key: "b", "emptyDir": {}}]}


@pytest.mark.parametrize("item", [{"image": "x"}, {"name": ["a"]}, {"name": {}}, "text", 7])
def test_an_item_without_a_usable_name_is_kept_beside_ours(item: Any) -> None:
    merged = merge({"containers": [item]}, {"containers": [{"name": "a"}]})
    assert merged == {"containers": [{"name": "a"}, item]}


@given(JSON, JSON)
def test_no_template_fails_and_nothing_of_ours_is_lost(theirs: Any, ours: Any) -> None:
    merged = merge({"spec": theirs}, {"spec": ours})["spec"]
    if isinstance(ours, dict):
        assert list(merged)[-len(ours) :] == list(ours) or not ours
    elif isinstance(ours, list):
        assert merged == ours
    else:
        assert merged is ours


@given(JSON)
def test_a_template_merged_with_nothing_or_with_itself_is_unchanged(template: Any) -> None:
    assert merge({"spec": template}, {}) == {"spec": template}
    assert merge({"spec": template}, {"spec": template}).keys() == {"spec"}


@pytest.mark.parametrize(
    ("template", "found"),
    [
        ({"spec": {"containers": [{"name": "a"}, {"name": "s3sink", "tty": True}]}}, {"name": "s3sink", "tty": True}),
        ({"spec": {"containers": [{"name": "a"}]}}, {}),
        ({"spec": {"containers": ["s3sink", {"name": ["s3sink"]}]}}, {}),
        ({"spec": {"containers": {"name": "s3sink"}}}, {}),
        ({"spec": "text"}, {}),
        ([], {}),
        (None, {}),
    ],
)
def test_the_own_container_is_found_by_its_name_in_any_template(template: Any, found: Any) -> None:
    assert own_container(template) == found


def test_a_section_is_a_copy() -> None:
    template = {"spec": {"a": 1}}
    section(template, "spec")["a"] = 2
    own_container({"spec": {"containers": [container := {"name": "s3sink"}]}})["tty"] = True
    assert template == {"spec": {"a": 1}}
    assert container == {"name": "s3sink"}


@pytest.mark.parametrize("item", ["text", None, [], {}])
def test_an_item_that_is_no_mapping_with_the_field_has_no_name(item: Any) -> None:
    assert item_key(item, "name") is None
