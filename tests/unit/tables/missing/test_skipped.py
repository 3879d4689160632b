"""The number of skipped objects, and the sum that identifies them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.ledger.state import ClosedObject
from sink_job.tables.missing.skipped import (
    MAX_KEYS,
    NONE_SKIPPED,
    NOTHING,
    Skipped,
    SkippedObjects,
    skipped_property,
)
from tests.unit.tables.parquet_objects import listed

OBJECTS = [listed(f"topics/{n}", b"x", n + 1) for n in range(300)]
chosen = st.sets(st.integers(0, 20)).map(lambda numbers: [OBJECTS[n] for n in sorted(numbers)])


@given(chosen, chosen)
def test_only_the_objects_that_were_skipped_have_their_sum(
    skipped: list[ClosedObject], others: list[ClosedObject]
) -> None:
    total = NOTHING.with_objects(skipped)
    assert (total.objects, total.records) == (len(skipped), sum(o.offsets.count for o in skipped))
    assert total.are(others) == (skipped == others)


@given(chosen, chosen)
def test_objects_that_are_removed_leave_the_others(skipped: list[ClosedObject], removed: list[ClosedObject]) -> None:
    removed = [o for o in removed if o in skipped]
    found = NONE_SKIPPED.with_objects(skipped).without_objects(removed)
    assert found == NONE_SKIPPED.with_objects(o for o in skipped if o not in removed)


@given(chosen, st.randoms())
def test_the_order_of_the_objects_does_not_matter(skipped: list[ClosedObject], rng: object) -> None:
    shuffled = list(skipped)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    assert NOTHING.with_objects(shuffled) == NOTHING.with_objects(skipped)


def test_objects_are_found_by_the_sum_or_by_their_keys() -> None:
    few, many = NONE_SKIPPED.with_objects(OBJECTS[:MAX_KEYS]), NONE_SKIPPED.with_objects(OBJECTS[: MAX_KEYS + 1])
    assert few.among(OBJECTS) == OBJECTS[:MAX_KEYS]
    assert many.among(OBJECTS[: MAX_KEYS + 1]) == OBJECTS[: MAX_KEYS + 1]
    assert many.among(OBJECTS) is None
    assert few.among(OBJECTS[1:]) is None


def test_a_table_that_skipped_nothing_lacks_none_of_them() -> None:
    assert NONE_SKIPPED.among(OBJECTS) == []


def test_the_property_has_the_first_keys() -> None:
    found = NONE_SKIPPED.with_objects(OBJECTS)
    properties = found.changed({}, "sink")
    assert SkippedObjects.of(found.total, properties, "sink") == found
    assert len(found.keys) == MAX_KEYS
    assert found.changed(properties, "sink") == {}
    assert NONE_SKIPPED.changed({}, "sink") == {}
    assert NONE_SKIPPED.changed(properties, "sink") == {skipped_property("sink"): "[]"}


@pytest.mark.parametrize("text", ["", "{}", "[1]", "[" * 100_000, '["\\ud800"]'])
def test_a_property_that_is_no_list_of_keys_has_none(text: str) -> None:
    assert SkippedObjects.of(None, {skipped_property("sink"): text}, "sink") == NONE_SKIPPED


@pytest.mark.parametrize("text", ['{"objects": -1}', '{"keys": "xyz"}', '{"keys": "0"}', '{"records": 1e40}'])
def test_other_numbers_and_sums_are_rejected(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(text, type=Skipped)
