"""The list of a sink over the values of a batch."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.api.enums import ConverterType
from sink_job.api.sections.transforms_section import TransformSpec
from sink_job.transforms.transform_list import TransformList, needs_headers, needs_timestamp
from tests.unit.transforms.transformed import TP, applied, batch, values

INSERT: dict[str, Any] = {"type": "Insert", "field": "o", "source": "Offset"}
DELETED: dict[str, Any] = {"field": "op", "values": ["d"]}


def test_transforms_apply_in_their_order() -> None:
    given = batch(b'{"a":{"b":1}}', start=7)
    assert values(applied(given, {"type": "Extract", "field": "a"}, INSERT)) == [b'{"b":1,"o":7}']
    assert values(applied(given, INSERT, {"type": "Extract", "field": "a"})) == [b'{"b":1}']


def test_a_record_that_no_transform_changes_stays_as_it_came() -> None:
    given = batch(b' {"op" : 1.0} ', b'{"op":"d"}', None)
    assert values(applied(given, {**INSERT, "when": DELETED})) == [b' {"op" : 1.0} ', b'{"op":"d","o":1}', None]


def test_a_filtered_record_and_a_rejected_one_have_no_value() -> None:
    given = batch(b'{"op":"d"}', b'{"op":"c"}', b"[]", b"{")
    found = applied(given, {"type": "Filter", "when": DELETED}, INSERT)
    assert values(found) == [None, b'{"op":"c","o":1}', None, None]
    assert found.filtered.tolist() == [True, False, False, False]
    assert [row for row, _ in found.rejected] == [2, 3]
    assert found.hidden.tolist() == [True, False, True, True]


def test_a_rejection_names_the_transform() -> None:
    found = applied(batch(b"{}", b"[]"), {"type": "Flatten", "when": {"tombstone": False}}, INSERT)
    assert found.rejected == [(1, "transforms[0] (Flatten): the value is an array, not an object")]


def test_a_record_is_filtered_before_a_later_transform_rejects_it() -> None:
    found = applied(batch(b"{", headers=[["h"]]), {"type": "Filter", "when": {"header": "h"}}, INSERT)
    assert (found.filtered.tolist(), found.rejected) == ([True], [])


@pytest.mark.parametrize(
    ("spec", "columns"),
    [
        (INSERT, (False, False)),
        ({**INSERT, "source": "Timestamp"}, (True, False)),
        ({**INSERT, "when": {"header": "h"}}, (False, True)),
    ],
)
def test_columns_are_those_that_transforms_need(spec: dict[str, Any], columns: tuple[bool, bool]) -> None:
    specs = [TransformSpec.model_validate(spec)]
    assert (needs_timestamp(specs), needs_headers(specs)) == columns


def test_the_text_null_is_a_tombstone_in_json_alone() -> None:
    specs = [TransformSpec.model_validate({"type": "Filter", "when": {"tombstone": True}})]
    given = batch(b"null", None, b"\x00")
    found = [
        TransformList(specs, each).apply(given, TP).filtered.tolist()
        for each in (ConverterType.JSON, ConverterType.TEXT)
    ]
    assert found == [[True, True, False], [False, True, False]]
