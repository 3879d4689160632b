"""Two texts of one Avro schema, and texts of different ones. Apicurio's own texts are in tests/data/registry."""

from __future__ import annotations

import json

import pytest

from sink_job.avro.comparison import is_same_avro
from sink_job.avro.to_connect import parse_registered
from sink_job.connect.schema import RegisteredSchema, SchemaReference

SEAT = {"type": "record", "name": "example.Seat", "fields": [{"name": "row", "type": "long"}]}
FLIGHT = {
    "type": "record",
    "name": "example.Flight",
    "doc": "one",
    "fields": [
        {"name": "seat", "type": SEAT},
        {"name": "next", "type": ["null", "example.Flight"], "default": None},
        {"name": "state", "type": {"type": "enum", "name": "example.State", "symbols": ["ON", "OFF"], "default": "ON"}},
        {"name": "hash", "type": {"type": "fixed", "name": "other.Hash", "size": 3, "owner": "us"}},
        {"name": "others", "type": {"type": "array", "items": "example.Seat"}},
        {"name": "late", "type": "boolean", "default": True},
    ],
}
TEXT = json.dumps(FLIGHT)


def schema(text: str, *references: tuple[str, object]) -> RegisteredSchema:
    found = tuple(SchemaReference(name, name, 1, json.dumps(each)) for name, each in references)
    return RegisteredSchema("7", "AVRO", text, found)


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ('"name": "example.Flight"', '"name": "Flight", "namespace": "example"'),
        ('"items": "example.Seat"', '"items": "Seat"'),
        ('"type": ["null", "example.Flight"]', '"type": ["null", {"type": "Flight"}]'),
        ('"type": "long"', '"type": {"type": "long"}'),
        ('"name": "example.State"', '"name": "State"'),
        ('"name": "late"', '"name": "late", "order": "ignore"'),
    ],
    ids=["a namespace", "a relative name", "a nested name", "a primitive type", "the namespace around", "an order"],
)
def test_texts_that_mean_the_same_are_equal(part: str, other: str) -> None:
    assert part in TEXT
    assert is_same_avro(schema(TEXT), schema(TEXT.replace(part, other)))


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ('"example.Flight"', '"example.Trip"'),
        ('"name": "other.Hash"', '"name": "Hash"'),
        ('"items": "example.Seat"', '"items": "Flight"'),
        ('"doc": "one"', '"doc": "two"'),
        ('"name": "row"', '"name": "line"'),
        ('"type": "long"', '"type": "int"'),
        ('"size": 3', '"size": 4'),
        ('"symbols": ["ON", "OFF"]', '"symbols": ["OFF", "ON"]'),
        ('"default": "ON"', '"default": "OFF"'),
        ('"owner": "us"', '"owner": "them"'),
        ('["null", "example.Flight"], "default": null', '["null", "example.Flight"]'),
        ('"default": true', '"default": 1'),
        ('"type": "array", "items"', '"type": "map", "values"'),
    ],
)
def test_texts_with_another_meaning_differ(part: str, other: str) -> None:
    assert part in TEXT
    changed = schema(TEXT.replace(part, other))
    parse_registered(changed)  # does not raise
    assert not is_same_avro(schema(TEXT), changed)


def test_the_texts_of_references_are_compared_by_their_meaning() -> None:
    text = json.dumps({"type": "array", "items": "example.Seat"})
    moved = {**SEAT, "name": "Seat", "namespace": "example"}
    assert is_same_avro(schema(text, ("seat", SEAT)), schema(text, ("seat", moved)))
    assert not is_same_avro(schema(text, ("seat", SEAT)), schema(text, ("seat", {**SEAT, "doc": "new"})))


def test_a_reference_that_is_not_used_is_compared() -> None:
    changed = {**SEAT, "fields": []}
    assert not is_same_avro(schema('"long"', ("seat", SEAT)), schema('"long"', ("seat", changed)))
    assert not is_same_avro(schema('"long"', ("seat", SEAT)), schema('"long"', ("other", SEAT)))
    assert not is_same_avro(schema('"long"', ("seat", SEAT)), schema('"long"'))


def test_an_invalid_text_is_the_same_as_no_other() -> None:
    assert not is_same_avro(schema('"nothing"'), schema('"nothing"'))
