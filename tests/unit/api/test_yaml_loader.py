"""YAML of manifests, with the semantics of Kubernetes."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from sink_job.api import yaml_loader
from sink_job.api.errors import InvalidSpec
from sink_job.api.yaml_loader import TOO_DEEP, read, without_nulls

_NUMBER_OF_YAML_1_2 = re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+")
"""A text for PyYAML, which writes it without quotes, and a number for Kubernetes."""
TEXTS = st.text(st.characters(codec="ascii"), max_size=6).filter(lambda text: not _NUMBER_OF_YAML_1_2.fullmatch(text))
TREES: st.SearchStrategy[Any] = st.recursive(
    st.booleans() | st.integers(-(10**18), 10**18) | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1, max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)

TAG = "invalid YAML: it contains a tag (!) or a value that is not allowed here"
ALIAS = "invalid YAML: an alias (*) has no anchor, or an anchor (&) is defined twice"


def value(scalar: str) -> object:
    document, _ = read(f"a: {scalar}\n")
    assert isinstance(document, dict)
    return document["a"]


def problem(text: str) -> str:
    with pytest.raises(InvalidSpec) as caught:
        read(text)
    (sentence,) = caught.value.errors
    return str(sentence)


@settings(max_examples=40)
@given(TREES)
def test_what_pyyaml_writes_is_read_again(tree: Any) -> None:
    assert read(yaml.safe_dump({"a": tree}, default_style='"' if isinstance(tree, str) else None))[0] == {"a": tree}


@pytest.mark.parametrize(
    "scalar", ["no", "yes", "on", "off", "+10:00", "2025-11-03", "0x1F", "010", "1_000", "12:30:45", ".5", "1.", "tRue"]
)
def test_a_scalar_of_yaml_1_1_alone_is_text(scalar: str) -> None:
    assert value(scalar) == scalar


@pytest.mark.parametrize(
    ("scalar", "expected"),
    [
        *(("true", True), ("FALSE", False), ("~", None), ("", None), ("Null", None), ("-5", -5), ("+5", 5)),
        *(("1.5", 1.5), ("1e3", 1000.0), ("'5'", "5")),
    ],
)
def test_a_scalar_of_the_core_schema_has_its_type(scalar: str, expected: object) -> None:
    found = value(scalar)
    assert (found, type(found)) == (expected, type(expected))


def test_a_key_is_text_whatever_it_looks_like() -> None:
    assert read("{1: a, true: b, null: c, 1.5: d}")[0] == {"1": "a", "true": "b", "null": "c", "1.5": "d"}


def test_each_duplicate_key_is_named_with_both_lines() -> None:
    _, errors = read("a: 1\nb:\n  c: 1\n  c: 2\na: 2\na: 3\n")
    assert sorted(errors) == [
        "line 4: c is a duplicate of the key in line 3",
        "line 5: a is a duplicate of the key in line 1",
        "line 6: a is a duplicate of the key in line 1",
    ]


def test_an_alias_and_a_merge_repeat_a_value() -> None:
    assert read("a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}\n") == (
        {"a": {"b": 1}, "c": {"b": 1}, "d": {"b": 1, "e": 2}},
        [],
    )


def test_aliases_must_not_multiply_the_manifest(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a: &x [1, 2]\nb: [*x, *x]\n"  # 1 + 2 keys, 3 nodes in a, 1 + 2 * 3 in b
    monkeypatch.setattr(yaml_loader, "MAX_NODES", 13)
    read(text)
    monkeypatch.setattr(yaml_loader, "MAX_NODES", 12)
    assert problem(text) == "the aliases (*) make the manifest larger than 12 keys and values"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the manifest is empty: it must contain an S3Sink"),
        ("---\n# nothing\n---\n", "the manifest is empty: it must contain an S3Sink"),
        ("a: 1\n---\nb: 2\n", "the manifest contains 2 documents: use one S3Sink per manifest"),
        ("a: [hunter2", "line 1, column 12: invalid YAML: "),
        ("a: hunter2: b", "line 1, column 11: invalid YAML: mapping values are not allowed here"),
        (
            "a: *hunter2",
            f"line 1, column 4: {ALIAS}",
        ),
        ("a: !hunter2 b", f"line 1, column 4: {TAG}"),
        (
            "a: !!bool hunter2",
            f"line 1, column 4: {TAG}",
        ),
        ("a: !x!hunter2 b", "invalid YAML: it contains an unknown tag (!)"),
        ("a: hunter2\x01", "invalid YAML: it contains a character that is not allowed"),
        ("? [hunter2]\n: 1", "line 1, column 3: invalid YAML: a key must be text"),
        (
            "a: " + "9" * 5000,
            f"line 1, column 4: {TAG}",
        ),
        ("[" * 1000, TOO_DEEP),
    ],
)
def test_another_text_is_rejected_with_its_place_and_without_its_content(text: str, sentence: str) -> None:
    found = problem(text)
    assert re.search(re.escape(sentence), found)
    assert "hunter2" not in found


def test_an_empty_document_beside_another_does_not_count() -> None:
    assert read("---\n---\na: 1\n---\n")[0] == {"a": 1}


def test_empty_fields_are_removed_at_any_depth_except_in_mappings_of_the_user() -> None:
    section = {"a": None, "b": {"c": None, "d": 0, "e": {"f": None}}, "properties": {"x": None}, "list": [None]}
    assert without_nulls(section) == {"b": {"d": 0, "e": {}}, "properties": {"x": None}, "list": [None]}
    for name in ("sparkConf", "podTemplate", "status"):
        assert without_nulls({name: {"x": None}}) == {name: {"x": None}}
        assert without_nulls({name: None}) == {}
