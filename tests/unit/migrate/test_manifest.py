"""Manifests as text: order, comments, and values that every reader of YAML reads as the same."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api import yaml_loader
from sink_job.migrate.manifest import ORDER, Item, Line, commented, rendered, scalar

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]))


@given(TEXT)
def test_a_text_stays_a_text_for_yaml_1_1_and_for_the_parser_of_manifests(text: str) -> None:
    written = f"a: {scalar(text)} # comment\n"
    assert yaml.safe_load(written) == {"a": text}
    assert yaml_loader.read(written) == ({"a": text}, [])


@pytest.mark.parametrize(
    "text", ["no", "On", "~", "null", "1", "1.5", "1e3", "0x1", "12:30", "2026-01-01", "", "- a", "1h"]
)
def test_words_and_numbers_that_are_texts_are_quoted_where_yaml_needs_it(text: str) -> None:
    assert yaml.safe_load(scalar(text)) == text


@pytest.mark.parametrize(
    ("value", "written"), [(True, "true"), (5, "5"), ("1h30m", "1h30m"), ("25Mi", "25Mi"), (["a"], "[a]")]
)
def test_plain_values_are_not_quoted(value: object, written: str) -> None:
    assert scalar(value) == written


def test_fields_are_in_the_order_of_the_reference_with_their_comments() -> None:
    fields = {
        "s3.bucket": Line("b", "s3.bucket.name"),
        "kafka.topics": Line(["t"], "topics"),
        "kafka.groupId": Line("g"),
    }
    assert list(rendered({"name": "flights"}, fields)) == [
        "apiVersion: s3sink.io/v1alpha1",
        "kind: S3Sink",
        "metadata:",
        "  name: flights",
        "spec:",
        "  kafka:",
        "    topics: [t] # topics",
        "    groupId: g",
        "  s3:",
        "    bucket: b # s3.bucket.name",
    ]


def test_long_lists_and_lists_with_comments_have_a_line_for_each_item() -> None:
    fields = {
        "kafka.topics": Line([f"topic-{number:020}" for number in range(5)], "topics"),
        "kafka.propertySecrets": Line([Item({"name": "a"}, "key a")]),
        "kafka.properties": Line({"b": Item("x", "key b")}),
    }
    text = "\n".join(rendered({"name": "flights"}, fields))
    assert "    topics: # topics\n      - topic-0" in text
    assert "      - {name: a} # key a" in text
    assert "      b: x # key b" in text


def test_an_unknown_field_is_a_defect() -> None:
    with pytest.raises(KeyError):
        list(rendered({"name": "flights"}, {"unknown": Line(1)}))


def test_comments_are_wrapped_and_commands_are_not() -> None:
    assert max(len(line) for line in commented("word " * 200)) <= 120
    command = "kubectl create secret generic a " + "--from-file=key " * 20
    assert list(commented(command)) == [f"# {command}"]


def test_every_field_of_the_order_exists_in_the_manifest() -> None:
    from sink_job.api.field_errors import dotted, every_field
    from sink_job.api.spec import Spec

    known = {dotted(path) for path, _ in every_field(Spec)}
    assert [path for path in ORDER if path not in known] == []
