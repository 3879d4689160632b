"""Dead-letter topics."""

from __future__ import annotations

import re

import pytest
import yaml

from sink_job.api.parser import load_sink
from sink_job.migrate.conversion import convert
from sink_job.migrate.dead_letters import convert_dead_letters
from sink_job.migrate.draft import Draft
from sink_job.migrate.findings import Configuration, Severity
from tests.unit.migrate.test_conversion import MINIMAL, findings_of, spec_of

TOPIC = "errors.deadletterqueue.topic.name"
TOLERANT = {"errors.tolerance": "all", TOPIC: "orders-dlq.v1"}


def test_without_a_topic_there_is_nothing_to_convert() -> None:
    draft = Draft({}, {})
    convert_dead_letters(draft, "All", None)
    assert (draft.fields, draft.findings) == ({}, [])


@pytest.mark.parametrize("pattern", ["orders-.*", "a|orders-.*", "(?i)ORDERS-.*", "^orders.*$"])
def test_a_pattern_does_not_match_the_dead_letter_topic(pattern: str) -> None:
    settings = {**TOLERANT, "topics": "", "topics.regex": pattern}
    found = spec_of(settings)["kafka"]["topicsPattern"]
    for topic, expected in [("orders-dlq.v1", False), ("orders-dlq-v1", True), ("orders-dlq.v12", True), ("x", False)]:
        assert (re.fullmatch(found, topic) is not None) == expected, topic
    (finding,) = findings_of(settings)
    assert "the pattern excludes it" in finding


def test_a_pattern_that_does_not_match_the_topic_is_kept() -> None:
    settings = {**TOLERANT, "topics": "", "topics.regex": "fares-.*"}
    assert spec_of(settings)["kafka"]["topicsPattern"] == "fares-.*"
    assert findings_of(settings) == []


def test_the_dead_letter_topic_is_left_out_of_the_topics() -> None:
    settings = {**TOLERANT, "topics": "orders,orders-dlq.v1"}
    assert spec_of(settings)["kafka"]["topics"] == ["orders"]
    assert len(findings_of(settings)) == 1


def test_a_connector_of_its_dead_letters_alone_is_not_converted() -> None:
    assert len(findings_of({**TOLERANT, "topics": "orders-dlq.v1"}, Severity.IMPOSSIBLE)) == 1


@pytest.mark.parametrize("topic", ["no topic", "${file:a:b}"])
def test_a_name_that_is_no_topic_is_left_out_and_reported(topic: str) -> None:
    settings = {**TOLERANT, TOPIC: topic}
    assert "deadLetters" not in spec_of(settings)["errors"]
    assert len(findings_of(settings)) == 1


def test_a_pattern_that_becomes_too_long_is_not_converted() -> None:
    settings = {**TOLERANT, "topics": "", "topics.regex": f"orders-.*|{'a' * 1000}"}
    assert len(findings_of(settings, Severity.IMPOSSIBLE)) == 1


def test_the_manifest_is_one_that_the_sink_takes() -> None:
    manifest = convert(Configuration({**MINIMAL, **TOLERANT, "topics": "a,orders-dlq.v1"}, "a")).manifest
    assert load_sink(manifest).spec.errors.dead_letters.topic == TOLERANT[TOPIC]
    assert yaml.safe_load(manifest)["spec"]["errors"]["tolerance"] == "All"
