"""The expressions of rules, evaluated: durations and literals in the notation of the job."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_operator.crd.cel import CelRule, bound, cel_list, cel_text, compare_duration, duration_notation, either
from sink_job.api.units.quantities import parse_duration
from tests.operator.cel_subset import evaluate

DAY_MS = 86_400_000


@st.composite
def durations(draw: st.DrawFn) -> str:
    """Durations in the notation of the job, some of them longer than a day."""
    numbers = [draw(st.sampled_from((None, 0, 1, 2, 23, 24, 25, 59, 60, 3600))) for _ in "dhms"]
    units = [f"{number}{unit}" for number, unit in zip(numbers, "dhms", strict=True) if number is not None]
    text = "".join(units)
    return text if any(number for number in numbers) else f"{text}1s"


def is_valid(text: str) -> bool:
    try:
        return bool(parse_duration(text))
    except ValueError:
        return False


@given(durations(), st.sampled_from((1, 1000, 60_000, 3_600_000, DAY_MS)))
def test_a_duration_is_compared_as_the_job_reads_it(text: str, limit: int) -> None:
    if is_valid(text):
        assert evaluate(compare_duration("self", "<=", limit), {"self": text}) == (parse_duration(text) <= limit)


@pytest.mark.parametrize("text", ["", "soon", "5", "1h 30m", "-1m", "1y"])
def test_a_text_that_is_no_duration_fails_the_rule_of_its_notation_alone(text: str) -> None:
    """So the user gets one message for it, and not one more for each limit."""
    assert not is_valid(text)
    assert not evaluate(duration_notation("spec.rotation.interval").cel, {"self": text})
    assert evaluate(bound("duration", "spec.rotation.interval", "maximum", "1d").cel, {"self": text})


@pytest.mark.parametrize("text", ["1ms", "1s", "1h30m", "1d", "0d1h", "500ms"])
def test_a_duration_of_the_job_has_its_notation(text: str) -> None:
    assert is_valid(text)
    assert evaluate(duration_notation("spec.rotation.interval").cel, {"self": text})


@pytest.mark.parametrize(("text", "allowed"), [("0s", False), ("0d0h", False), ("1ms", True), ("0h10m", True)])
def test_the_least_duration_is_any_above_zero(text: str, allowed: bool) -> None:
    assert evaluate(bound("duration", "spec.rotation.interval", "minimum", "1ms").cel, {"self": text}) is allowed


@pytest.mark.parametrize(
    ("text", "allowed"), [("14m59s", False), ("0s", False), ("15m", True), ("900s", True), ("1d", True), ("400d", True)]
)
def test_a_minimum_of_a_duration_is_compared(text: str, allowed: bool) -> None:
    rule = bound("duration", "spec.s3.assumeRole.duration", "minimum", "15m")
    assert evaluate(rule.cel, {"self": text}) is allowed


@pytest.mark.parametrize(
    ("which", "message"),
    [
        ("minimum", "spec.s3.partSize is below the minimum of 5Mi: write 5Mi or more"),
        ("maximum", "spec.s3.partSize is above the maximum of 5Mi: write 5Mi or less"),
    ],
)
def test_a_limit_has_a_message_with_the_value_to_write(which: str, message: str) -> None:
    assert bound("size", "spec.s3.partSize", which, "5Mi").message == message


def test_sizes_are_compared_as_quantities_also_when_they_are_written_as_numbers() -> None:
    assert bound("size", "spec.s3.partSize", "minimum", "5Mi").cel == (
        'quantity(string(self)).compareTo(quantity("5Mi")) >= 0'
    )


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_literal_has_the_characters_of_the_text(text: str) -> None:
    assert evaluate(cel_text(text), {}) == text
    assert evaluate(cel_list([text, "a"]), {}) == [text, "a"]


@pytest.mark.parametrize(
    ("path", "message", "field"),
    [
        ("spec.partitioner", "spec.partitioner.duration is missing", ".duration"),
        ("spec.partitioner", "spec.partitioner.a.b: no", ".a.b"),
        ("spec.partitioner", "spec.partitioner is missing", None),
        ("spec.partitioner", "spec.partitionerX.duration is missing", None),
        ("spec.partitioner", "a sink needs spec.partitioner.duration", None),
        ("", "spec.kafka.topics is missing", None),
    ],
)
def test_the_field_of_an_error_is_the_one_that_the_message_begins_with(
    path: str, message: str, field: str | None
) -> None:
    rule = CelRule(path, "true", message)
    assert rule.field_path == field
    expected = {"rule": "true", "message": message}
    assert rule.manifest() == (expected if field is None else expected | {"fieldPath": field})


def test_either_of_several_conditions_is_sufficient() -> None:
    rule = either("self == 1", "self == 2", "self == 3")
    assert [evaluate(rule, {"self": value}) for value in (0, 1, 2, 3)] == [False, True, True, True]
