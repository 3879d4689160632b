"""Subjects of schemas by the name strategies of Confluent's serializers."""

from __future__ import annotations

import json

import pytest

from sink_job.api.enums import SubjectNameStrategy
from sink_job.registry.subjects import record_name, subject_of, unqualified

FLIGHT = json.dumps({"type": "record", "name": "Flight", "namespace": "example", "fields": []})


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [
        (SubjectNameStrategy.TOPIC_NAME, "flights-value"),
        (SubjectNameStrategy.RECORD_NAME, "example.Flight"),
        (SubjectNameStrategy.TOPIC_RECORD_NAME, "flights-example.Flight"),
    ],
)
def test_each_strategy_names_the_subject(strategy: SubjectNameStrategy, subject: str) -> None:
    assert subject_of(strategy, "flights", "AVRO", FLIGHT) == subject


@pytest.mark.parametrize("strategy", [SubjectNameStrategy.RECORD_NAME, SubjectNameStrategy.TOPIC_RECORD_NAME])
def test_a_schema_without_a_name_has_no_subject_by_record_name(strategy: SubjectNameStrategy) -> None:
    assert subject_of(strategy, "flights", "AVRO", '"string"') is None


@pytest.mark.parametrize(
    ("language", "text", "name"),
    [
        ("AVRO", FLIGHT, "example.Flight"),
        ("AVRO", '{"type": "record", "name": "a.b.Flight", "namespace": "other", "fields": []}', "a.b.Flight"),
        ("AVRO", '{"type": "record", "name": "Flight", "namespace": "", "fields": []}', "Flight"),
        ("AVRO", '["null", "string"]', None),
        ("AVRO", "not JSON", None),
        ("JSON", '{"title": "Flight", "type": "object"}', "Flight"),
        ("JSON", '{"type": "object"}', None),
        ("JSON", "true", None),
        ("PROTOBUF", 'syntax = "proto3"; package example; message Flight { int64 n = 1; }', "example.Flight"),
        ("PROTOBUF", "message Flight { message Seat {} }", "Flight"),
        ("PROTOBUF", "// message Comment {}\n/* package no; */ enum Kind { A = 0; } message Flight {}", "Flight"),
        ("PROTOBUF", 'option (x) = "message Text {"; message Flight {}', "Flight"),
        ("PROTOBUF", "enum Kind { A = 0; }", None),
        ("PROTOBUF", "ChRleGFtcGxlL2ZsaWdodC5wcm90bxIHZXhhbXBsZSIICgZGbGlnaHQ=", "example.Flight"),
        ("PROTOBUF", "IggKBkZsaWdodA==", "Flight"),
        ("PROTOBUF", "AAAA", None),
    ],
)
def test_the_name_of_a_schema_is_found(language: str, text: str, name: str | None) -> None:
    assert record_name(language, text) == name


@pytest.mark.parametrize(
    ("subject", "name"),
    [(":.staging:flights-value", "flights-value"), ("flights-value", "flights-value"), ("a:b-value", "a:b-value")],
)
def test_the_context_of_a_subject_does_not_count(subject: str, name: str) -> None:
    assert unqualified(subject) == name


def test_the_schema_of_a_key_has_the_subject_of_keys() -> None:
    assert subject_of(SubjectNameStrategy.TOPIC_NAME, "flights", "AVRO", FLIGHT, is_key=True) == "flights-key"
    assert subject_of(SubjectNameStrategy.RECORD_NAME, "flights", "AVRO", FLIGHT, is_key=True) == "example.Flight"
