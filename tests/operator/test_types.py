"""The functions that the layers of the operator share, on whatever other clients have written."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_operator import names
from s3sink_operator.types import (
    MAX_ATTEMPT,
    Decision,
    Delete,
    Event,
    EventType,
    Json,
    ObjectWrites,
    Resize,
    annotation,
    attempt_number,
    desired_state,
    is_controlled,
    is_terminating,
    label,
    one_line,
    owner_reference,
    sanitize_reason,
    to_ms,
    to_timestamp,
    uid_of,
    without_managed_fields,
)
from sink_job.api.enums import DesiredState
from tests.operator.conflicts.test_overlaps import ELDER, PATTERN
from tests.operator.fake_cluster import document

REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
"""What the CustomResourceDefinition allows."""


@given(st.integers(0, 4_000_000_000_000))
def test_times_are_whole_seconds_and_come_back(ms: int) -> None:
    assert to_ms(to_timestamp(ms)) == ms // 1000 * 1000


def test_what_is_no_time_is_none() -> None:
    assert to_ms("soon") is None
    assert to_ms(None) is None


@pytest.mark.parametrize("ms", [-(10**18), 10**18])
def test_a_time_outside_of_the_calendar_is_clamped(ms: int) -> None:
    assert to_ms(to_timestamp(ms)) is not None


@pytest.mark.parametrize("text", ["", "0001-01-01", "9999-99-99T00:00:00Z", "2025-10-09T08:53:20+99:00", "1760000000"])
def test_a_text_that_is_no_time_of_the_calendar_fails_nothing(text: str) -> None:
    found = to_ms(text)
    assert found is None or isinstance(found, int)


@given(st.text())
def test_each_reason_becomes_one_that_a_condition_may_have(text: str) -> None:
    assert REASON.fullmatch(sanitize_reason(text))
    assert len(sanitize_reason(text)) <= 128


@pytest.mark.parametrize("reason", ["OOMKilled", "Error_2", "a" * 128])
def test_an_allowed_reason_is_unchanged(reason: str) -> None:
    assert sanitize_reason(reason) == reason


@given(st.text())
def test_a_message_is_one_printable_line(text: str) -> None:
    found = one_line(text)
    assert found.isprintable()
    assert one_line(found) == found


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (" a\n\t b\r\n", "a b"),
        ("a\x1b[2Jb", "a\\u001b[2Jb"),
        ("left\u202eright", "left\\u202eright"),
        ("Zürich", "Zürich"),
        ("", ""),
    ],
)
def test_lines_are_joined_and_control_characters_escaped(text: str, line: str) -> None:
    assert one_line(text) == line


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        ("007", 7),
        (str(MAX_ATTEMPT), MAX_ATTEMPT),
        (str(MAX_ATTEMPT + 1), 0),
        ("9" * 5000, 0),
        ("-1", 0),
        ("1.0", 0),
        ("٣", 0),
        ("²", 0),
        ("", 0),
        (None, 0),
    ],
)
def test_the_number_of_an_attempt_is_that_of_the_label_if_the_operator_may_have_written_it(
    text: str | None, number: int
) -> None:
    labels = {} if text is None else {names.ATTEMPT_LABEL: text}
    assert attempt_number({"metadata": {"labels": labels}}, names.ATTEMPT_LABEL) == number


@pytest.mark.parametrize("section", ["annotations", "labels"])
@pytest.mark.parametrize("found", [{}, None])
def test_an_object_without_annotations_or_labels_has_none(section: str, found: Any) -> None:
    objects: list[Json] = [{"metadata": {section: found}}, {"metadata": {}}, {}]
    for obj in objects:
        assert annotation(obj, "a") is None
        assert label(obj, "a") is None


@pytest.mark.parametrize("state", list(DesiredState))
def test_the_annotation_precedes_the_state_of_the_spec(state: DesiredState) -> None:
    sink = document(state="Stopped")
    assert desired_state(sink) == (DesiredState.STOPPED, "spec.state")
    sink["metadata"]["annotations"] = {names.STATE_ANNOTATION: state.value}
    assert desired_state(sink) == (state, f"the annotation {names.STATE_ANNOTATION}")


@pytest.mark.parametrize("value", ["paused", "", "RUNNING", "x"])
def test_an_annotation_with_another_value_is_ignored(value: str) -> None:
    sink = document(state="Paused")
    sink["metadata"]["annotations"] = {names.STATE_ANNOTATION: value}
    assert desired_state(sink) == (DesiredState.PAUSED, "spec.state")


@pytest.mark.parametrize("spec", [None, "text", [], {}, {"state": None}, {"state": 5}, {"state": ["Paused"]}])
def test_an_invalid_state_of_the_spec_counts_as_running(spec: Any) -> None:
    assert desired_state({"metadata": {}, "spec": spec}) == (DesiredState.RUNNING, "spec.state")


def test_a_child_is_controlled_by_the_sink_of_its_owner_reference() -> None:
    sink = document()
    owner = owner_reference(sink)
    child = {"metadata": {"ownerReferences": [{"uid": "other"}, owner]}}
    assert is_controlled(child, uid_of(sink))
    assert not is_controlled(child, "other"), "an owner that is not the controller"
    assert not is_controlled({"metadata": {"ownerReferences": None}}, uid_of(sink))
    assert not is_controlled({}, uid_of(sink))


def test_an_object_is_terminating_from_its_deletion_timestamp_on() -> None:
    sink = document()
    assert not is_terminating(sink)
    sink["metadata"]["deletionTimestamp"] = "2025-10-09T08:53:20Z"
    assert is_terminating(sink)


def test_managed_fields_are_removed_from_a_copy() -> None:
    sink = document()
    assert without_managed_fields(sink) is sink
    managed = {**sink, "metadata": {**sink["metadata"], "managedFields": [{"manager": "a"}]}}
    assert without_managed_fields(managed) == sink
    assert "managedFields" in managed["metadata"]


DELETE = Delete(kind="Pod", name="a", uid="u")


@pytest.mark.parametrize(
    ("writes", "is_empty"),
    [
        (ObjectWrites(), True),
        (ObjectWrites(starts_rollout=True), True),
        (ObjectWrites(finalizers=()), False),
        (ObjectWrites(apply=({},)), False),
        (ObjectWrites(create=({},)), False),
        (ObjectWrites(delete=(DELETE,)), False),
        (ObjectWrites(resize=(Resize(pod="a", uid="u", container="c", memory=1),)), False),
    ],
)
def test_writes_are_empty_without_a_request_and_the_removal_of_all_finalizers_is_one(
    writes: ObjectWrites, is_empty: bool
) -> None:
    assert writes.is_empty is is_empty
    assert Decision(writes=writes).has_writes is not is_empty


def test_a_status_and_an_event_are_writes_too() -> None:
    assert not Decision(requeue_after_ms=5).has_writes
    assert Decision(status={}).has_writes
    assert Decision(events=(Event(type=EventType.NORMAL, reason="a", message="b"),)).has_writes


@pytest.mark.parametrize(
    "changes",
    [
        {"topics": ("flights", "more")},
        {"topics": ()},
        {"topics": None, "pattern": "fli.*"},
        {"bucket": "other"},
        {"topics_dir": "other"},
        {"group": "other"},
        {"sink_id": "other"},
        {"endpoint": "https://s3.example.com"},
        {"brokers": "other:9092"},
    ],
    ids=str,
)
def test_the_digest_of_a_claim_changes_with_each_resource_that_the_spec_sets(changes: dict[str, Any]) -> None:
    assert replace(ELDER, **changes).digest != ELDER.digest


@pytest.mark.parametrize(
    "changes",
    [{"name": "other"}, {"creation_time": "2030-01-01T00:00:00Z"}, {"held": "x"}, {"observed_topics": ("a",)}],
    ids=str,
)
def test_the_digest_of_a_claim_does_not_change_with_what_is_observed(changes: dict[str, Any]) -> None:
    assert replace(ELDER, **changes).digest == ELDER.digest


def test_the_order_of_topics_is_no_part_of_a_claim() -> None:
    one, other = (replace(ELDER, topics=topics) for topics in (("a", "b"), ("b", "a")))
    assert one.digest == other.digest


def test_the_known_topics_of_a_pattern_are_those_that_were_observed() -> None:
    assert ELDER.known_topics == ("flights",)
    assert PATTERN.known_topics == ()
    assert replace(PATTERN, observed_topics=("flights",)).known_topics == ("flights",)
    assert replace(ELDER, observed_topics=("other",)).known_topics == ("flights",)
