"""Envelopes of JsonConverter under transforms."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sink_job.api.enums import ConverterType
from sink_job.api.sections.transforms_section import TransformSpec
from sink_job.transforms.envelopes import EnvelopeValues
from sink_job.transforms.transform_list import TransformedBatch, TransformList
from sink_job.transforms.typed_values import TypedValue
from tests.unit.transforms.transformed import TP, batch, values

FIELDS: list[dict[str, Any]] = [
    {"type": "int32", "optional": True, "default": 7, "field": "a"},
    {"type": "struct", "optional": True, "field": "s", "fields": [{"type": "string", "optional": False, "field": "x"}]},
]


def envelope(payload: Any, fields: list[dict[str, Any]] | None = None, **more: Any) -> bytes:
    schema = {"type": "struct", "optional": False, "fields": FIELDS if fields is None else fields, "name": "N", **more}
    return json.dumps({"schema": schema, "payload": payload}).encode()


def transformed(given: list[bytes | None], *specs: dict[str, Any]) -> TransformedBatch:
    found = TransformList([TransformSpec.model_validate(each) for each in specs], ConverterType.CONNECT_JSON)
    return found.apply(batch(*given), TP)


def test_an_envelope_is_written_as_it_was_read() -> None:
    envelopes = EnvelopeValues()
    every: list[dict[str, Any]] = [
        *({"type": each, "optional": True, "field": each} for each in ("int8", "int64", "float", "double", "bytes")),
        {"type": "array", "optional": False, "items": {"type": "string", "optional": True}, "field": "l"},
        {
            "type": "map",
            "optional": False,
            "keys": {"type": "string", "optional": False},
            "values": {"type": "boolean", "optional": False},
            "field": "m",
            "doc": "d",
            "parameters": {"p": "q"},
            "version": 2,
        },
        *FIELDS,
    ]
    payload = {"int8": 1, "int64": None, "float": 0.5, "double": 1.5, "bytes": "AQ==", "l": [None], "m": {"k": True}}
    text = envelope({**payload, "a": 3, "s": {"x": "y"}}, every)
    value, again = envelopes.read(text), envelopes.read(text)
    assert isinstance(value, TypedValue)
    assert isinstance(again, TypedValue)
    assert json.loads(envelopes.write(value)) == json.loads(text)
    assert again.schema is value.schema


def test_the_schema_changes_with_the_value() -> None:
    insert = {"type": "Insert", "field": "o", "source": "Offset", "required": True}
    given: list[bytes | None] = [envelope({"a": 1, "s": {"x": "y"}})]
    (text,) = values(transformed(given, insert, {"type": "Flatten"}, {"type": "Drop", "fields": ["a"]}))
    fields = [
        {"type": "string", "optional": True, "field": "s.x"},
        {"type": "int64", "optional": False, "field": "o"},
    ]
    assert json.loads(text or b"") == {
        "schema": {"type": "struct", "optional": False, "name": "N", "fields": fields},
        "payload": {"s.x": "y", "o": 0},
    }


def test_a_payload_without_a_schema_is_transformed_as_json() -> None:
    found = transformed([b'{"schema":null,"payload":{"a":1.50}}'], {"type": "Insert", "field": "b", "source": "Topic"})
    assert values(found) == [b'{"schema":null,"payload":{"a":1.50,"b":"flights"}}']


def test_a_record_that_no_transform_changes_stays_as_it_came() -> None:
    given = [envelope({"a": None, "s": None}), b"no envelope", None]
    found = transformed(given, {"type": "Flatten", "when": {"header": "h"}})
    assert (values(found), found.rejected) == (given, [])


def test_a_value_that_is_no_envelope_is_left_to_the_converter() -> None:
    found = transformed([b"no envelope", b"{}"], {"type": "Flatten"})
    assert (values(found), found.rejected) == ([b"no envelope", b"{}"], [])


@pytest.mark.parametrize(
    ("when", "rows"),
    [({"field": "s.x", "values": ["y"]}, [0]), ({"tombstone": True}, [2, 3]), ({"field": "a", "values": ["7"]}, [1])],
)
def test_conditions_see_payloads(when: dict[str, Any], rows: list[int]) -> None:
    given = [envelope({"a": 1, "s": {"x": "y"}}), envelope({"a": None, "s": None}), envelope(None, optional=True), None]
    found = transformed(given, {"type": "Filter", "when": when})
    assert [row for row, is_filtered in enumerate(found.filtered) if is_filtered] == rows


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"type": "Extract", "field": "z"}, "the struct has no field z"),
        ({"type": "Insert", "field": "a", "source": "Topic"}, "two fields of the struct would have one name"),
        ({"type": "Rename", "renames": {"b": "a"}}, "the struct has a field a before a field gets this name"),
        ({"type": "Cast", "casts": {"s": "Text"}}, "the field s has the type struct, which cannot be cast"),
        ({"type": "Mask", "fields": ["s"]}, "the field s has the type struct, which cannot be masked so"),
        (
            {"type": "Timestamp", "field": "a", "timestampType": "Date"},
            "the field a has the type int32, which is no time",
        ),
    ],
)
def test_what_a_transform_cannot_handle_is_rejected(spec: dict[str, Any], why: str) -> None:
    found = transformed([envelope({"a": 1, "s": {"x": "y"}})], spec)
    assert found.rejected == [(0, f"transforms[0] ({spec['type']}): {why}")]
