"""Errors of a manifest as sentences: paths, values that are shown, and suggestions."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.api.field_errors import (
    FieldError,
    connector_key,
    dotted,
    every_field,
    field_at,
    in_a_line,
    is_list,
    model_at,
    section_of,
    shown,
)
from sink_job.api.rules.reserved_properties import HIDDEN
from sink_job.api.sections.job_sections import KafkaSpec, PropertySecret
from sink_job.api.spec import Sink, Spec
from tests.unit.api.manifests import ABSENT, spec_errors


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), "the manifest"),
        (("spec",), "spec"),
        (("spec", "kafka", "topics", 0), "spec.kafka.topics[0]"),
        (("spec", "kafka", "properties", "sasl.jaas.config"), "spec.kafka.properties[sasl.jaas.config]"),
        (("a b",), '["a b"]'),
    ],
)
def test_a_path_is_written_as_in_the_manifest(path: tuple[int | str, ...], text: str) -> None:
    assert dotted(path) == text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a", "a"),
        ("", '""'),
        ("a b", '"a b"'),
        ('a"', '"a\\""'),
        ("ä\n", '"\\u00e4\\n"'),
        ("ä b", '"ä b"'),
        ("x" * 80, "x" * 80),
        ("x" * 81, "x" * 79 + "…"),
        ("password=hunter2", HIDDEN),
    ],
)
def test_a_text_fits_into_a_sentence(text: str, line: str) -> None:
    assert in_a_line(text) == line


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        (("a",), {}, "a mapping"),
        (("a",), [1], "a list"),
        (("a",), None, "null"),
        (("a",), True, "true"),
        (("a",), 1.5, "1.5"),
        (("a",), "b", "b"),
        (("spec", "s3", "credentials"), "b", HIDDEN),
        (("spec", "kafka", "properties", "ssl.key.password"), 5, HIDDEN),
        (("spec", "kafka", "properties", "client.id"), 5, "5"),
        (("spec", "sparkConf", "spark.hadoop.fs.s3a.secret.key"), "b", HIDDEN),
    ],
)
def test_a_value_is_shown_unless_it_may_be_a_secret(path: tuple[str, ...], value: object, text: str) -> None:
    assert shown(path, value) == text


@pytest.mark.parametrize("section", ["credentials", "caSecret", "clientSecret", "propertySecrets", "podTemplate"])
def test_nothing_within_a_section_for_secrets_is_shown(section: str) -> None:
    assert shown(("spec", section, 0, "name"), "b") == HIDDEN


def test_an_error_is_a_sentence_after_its_path() -> None:
    assert str(FieldError(("spec", "state"), "is odd")) == "spec.state: is odd"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"spec.s3.bucket": ABSENT}, "spec.s3.bucket: is missing: "),
        ({"spec.s3.buckte": "b"}, "spec.s3.buckte: is not a field of spec.s3; did you mean bucket?"),
        ({"spec.kafka.bucket": "b"}, "spec.kafka.bucket: is not a field of spec.kafka; did you mean spec.s3.bucket?"),
        ({"spec.flush.size": 5}, "spec.flush: is not a field of spec"),
        ({"spec.format.rowGroup": 5}, "spec.format.rowGroup: is not a field of spec.format: it is now spec."),
        ({"spec.format.converter": "Jsn"}, "spec.format.converter: Jsn is not one of Json, "),
        ({"spec.format.converter": "JsonEnvelope"}, ": JsonEnvelope is now ConnectJson"),
        ({"spec.format.converter": "org.apache.kafka.connect.storage.StringConverter"}, "; did you mean Text?"),
        ({"spec.partitioner.type": "io.confluent.TimeBasedPartitioner"}, "; did you mean Time?"),
        ({"spec.kafka.topics": "a, b"}, 'spec.kafka.topics: "a, b" is not a list: write [a, b]'),
        ({"spec.s3.bucket": 5}, "spec.s3.bucket: 5 is not text: put it in quotes"),
        ({"spec.rotation.flushSize": "5"}, 'spec.rotation.flushSize: "5" is not a whole number'),
        ({"spec.rotation.flushSize": 0}, "spec.rotation.flushSize: 0 is below the minimum of 1"),
        ({"spec.kafka.topics": []}, "spec.kafka.topics: is empty: set at least one entry"),
        ({"spec.format.compression": "Gzip"}, 'spec.format.compression: "Gzip" is not a mapping: write {codec: Gzip}'),
        ({"spec.format.schema": []}, "a list is not a mapping: put a field list into spec.format.schema.text"),
    ],
)  # fmt: skip
def test_a_sentence_says_what_is_allowed(changes: dict[str, object], sentence: str) -> None:
    assert any(sentence in error for error in spec_errors(changes))


def test_every_field_has_a_path_that_leads_back_to_it() -> None:
    found = list(every_field(Spec, ("spec",)))
    assert len({path for path, _ in found}) == len(found) > 100
    assert ("spec", "kafka", "propertySecrets", 0, "secret") in {path for path, _ in found}
    for path, field in found:
        assert field_at(Sink, path) is field


def at(*path: str) -> Any:
    found = field_at(Sink, ("spec", *path))
    assert found is not None
    return found


def test_sections_are_found_also_in_lists_and_behind_options() -> None:
    assert section_of(at("kafka")) is KafkaSpec
    assert section_of(at("kafka", "propertySecrets")) is PropertySecret
    assert section_of(at("kafka", "topics")) is None
    assert (is_list(at("kafka", "propertySecrets")), is_list(at("kafka", "topics")), is_list(at("kafka"))) == (
        True,
        True,
        False,
    )
    assert model_at(Sink, ("spec", "kafka", "propertySecrets", 0)) is PropertySecret
    assert model_at(Sink, ("spec", "gone", "more")) is None
    assert field_at(Sink, ("spec", "gone", "more")) is None


def test_a_field_has_its_key_of_the_connector_if_there_is_one() -> None:
    assert connector_key(at("rotation", "flushSize")) == "flush.size"
    assert connector_key(at("state")) == ""
