"""The CEL rules: each has a message of its own, a limited cost, and a manifest that it rejects."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from s3sink_operator.crd.cel import CelRule
from s3sink_operator.crd.rules import RULES
from s3sink_operator.crd.schema import attach
from sink_job.api.errors import InvalidSpec
from sink_job.api.parser import parse_sink
from sink_job.api.rules.reserved_properties import (
    KAFKA_OWNED,
    SPARK_OWNED,
    SPARK_OWNED_PREFIXES,
    kafka_property_error,
    spark_property_error,
)
from tests.operator.crd.definition import rules
from tests.operator.crd.rejected_manifests import CHANGED, REJECTED


def test_each_rule_has_a_sentence_of_its_own() -> None:
    sentences = Counter(rule["message"] for _, rule in rules())
    assert not [sentence for sentence, count in sentences.items() if count > 1]


@pytest.mark.parametrize("rule", [rule for _, rule in rules()], ids=lambda rule: rule["message"])
def test_a_sentence_begins_with_the_field_and_stays_in_a_line(rule: dict[str, str]) -> None:
    assert rule["message"].startswith(("spec.", "metadata.name "))
    assert rule["message"].isprintable()
    assert len(rule["message"]) < 400


def test_the_field_path_of_a_rule_is_the_field_that_its_message_names() -> None:
    found = 0
    for node, rule in rules():
        if "fieldPath" in rule:
            *steps, name = rule["fieldPath"].removeprefix(".").split(".")
            section = node
            for step in steps:
                section = section["properties"][step]
            assert name in section["properties"]
            assert rule["message"].split(" ")[0].rstrip(":").endswith(rule["fieldPath"])
            found += 1
    assert found > 20


def test_texts_and_lists_in_rules_are_bounded() -> None:
    for node, _ in rules():
        if node.get("type") == "string":
            assert "maxLength" in node
        if node.get("type") == "array":
            assert "maxItems" in node
        if "additionalProperties" in node:
            assert "maxProperties" in node


@pytest.mark.parametrize("name", [*SPARK_OWNED, *SPARK_OWNED_PREFIXES])
def test_a_spark_property_that_the_job_rejects_is_in_a_rule(name: str) -> None:
    assert spark_property_error(name)
    assert any(json.dumps(name) in rule.cel for rule in RULES if rule.path == "spec.sparkConf")


@pytest.mark.parametrize("name", list(KAFKA_OWNED))
def test_a_kafka_property_that_the_job_rejects_is_in_a_rule(name: str) -> None:
    assert kafka_property_error(name)
    for path in ("spec.kafka.properties", "spec.kafka.propertySecrets"):
        assert any(json.dumps(name) in rule.cel for rule in RULES if rule.path == path)


def test_every_rule_has_a_manifest_that_it_rejects() -> None:
    shown = [case.values[-1] for case in (*REJECTED, *CHANGED)]
    assert not [rule["message"] for _, rule in rules() if not any(said in rule["message"] for said in shown)]


@pytest.mark.parametrize("said", sorted({case.values[-1] for case in (*REJECTED, *CHANGED)}))
def test_the_expected_message_of_a_rejection_is_in_one_rule_only(said: str) -> None:
    assert sum(said in rule["message"] for _, rule in rules()) == 1


@pytest.mark.parametrize(("manifest", "said"), [case for case in REJECTED if "40 characters" not in case.values[-1]])
def test_a_manifest_that_a_rule_rejects_is_rejected_by_the_parser(manifest: dict[str, Any], said: str) -> None:
    assert said
    with pytest.raises(InvalidSpec):
        parse_sink(manifest)


def test_a_rule_for_a_field_that_there_is_not_is_an_error() -> None:
    with pytest.raises(KeyError):
        attach({"properties": {}}, (CelRule("spec.zebra", "true", "spec.zebra is wrong"),))
