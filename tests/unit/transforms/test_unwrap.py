"""Debezium's change events. tests/data/test_connect_transforms.py compares with Debezium's own class."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sink_job.api.enums import ConverterType
from sink_job.api.sections.transforms_section import TransformSpec
from sink_job.transforms.transform_list import TransformedBatch, TransformList
from tests.support.change_events import change_event
from tests.unit.transforms.transformed import TP, batch, values

ROW, CHANGED = {"id": 1, "name": "x"}, {"id": 1, "name": "y"}
EVENTS: list[bytes | None] = [
    change_event("c", None, ROW).encode(),
    change_event("d", CHANGED, None).encode(),
    None,
    change_event("t", None, None).encode(),
]


def unwrapped(given: list[bytes | None], **spec: Any) -> TransformedBatch:
    specs = [TransformSpec.model_validate({"type": "Unwrap", **spec})]
    return TransformList(specs, ConverterType.CONNECT_JSON).apply(batch(*given), TP)


def payloads(found: TransformedBatch) -> list[Any]:
    """The payloads; `filtered` for a record that is left out."""
    pairs = zip(values(found), found.filtered, strict=True)
    return ["filtered" if is_filtered else text and json.loads(text)["payload"] for text, is_filtered in pairs]


@pytest.mark.parametrize(
    ("deletes", "expected"),
    [
        ("Drop", [ROW, "filtered", "filtered", "filtered"]),
        ("Tombstone", [ROW, None, "filtered", "filtered"]),
        ("Rewrite", [{**ROW, "__deleted": "false"}, {**CHANGED, "__deleted": "true"}, "filtered", "filtered"]),
        ("RewriteWithTombstone", [{**ROW, "__deleted": "false"}, {**CHANGED, "__deleted": "true"}, None, "filtered"]),
    ],
)
def test_deleted_rows(deletes: str, expected: list[Any]) -> None:
    assert payloads(unwrapped(EVENTS, deletes=deletes)) == expected


def test_fields_of_the_event_are_added_to_the_row() -> None:
    found = unwrapped(EVENTS[:1], addFields=["op", "db", "source.ts_ms", "ts_ms"])
    assert payloads(found) == [{**ROW, "__op": "c", "__db": "d", "__source_ts_ms": 5, "__ts_ms": 9}]


def test_a_field_that_the_event_lacks_is_a_data_error() -> None:
    found = unwrapped(EVENTS[:1], addFields=["source.none"])
    assert found.rejected == [(0, "transforms[0] (Unwrap): source has no field none")]


def test_what_is_no_change_event_stays_as_it_is() -> None:
    given: list[bytes | None] = [change_event("c", None, ROW, name="other").encode(), b'{"schema":null,"payload":1}']
    assert values(unwrapped(given)) == given
