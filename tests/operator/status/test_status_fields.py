"""Fields of the status with other types in code than in JSON, and the schema of a section."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from s3sink_operator.status.status_fields import PastTimes, Quantity, StatusModel, Time
from sink_job.api.units.quantities import GI, MI


class Section(StatusModel):
    """A section with a field of each type."""

    last_time: Time = None
    """Time of the
    last change."""
    size: Quantity = None
    from_: Annotated[Quantity, Field(alias="from")] = None
    past_times: PastTimes | None = None
    note: str | None = None


@given(st.integers(0, 4_000_000_000), st.integers(1, 1 << 60), st.lists(st.integers(0, 4_000_000_000), min_size=1))
def test_a_section_is_read_as_it_was_written(seconds: int, size: int, past: list[int]) -> None:
    section = Section(last_time=seconds * 1000, size=size, from_=size, past_times=[each * 1000 for each in past])
    document = section.document()
    assert Section.model_validate(json.loads(json.dumps(document))) == section


def test_json_has_timestamps_quantities_and_camel_case() -> None:
    section = Section(last_time=1_760_000_000_999, size=512 * MI, from_=GI, past_times=[1_760_000_000_000])
    assert section.document() == {
        "lastTime": "2025-10-09T08:53:20Z",
        "size": "512Mi",
        "from": "1Gi",
        "pastTimes": ["2025-10-09T08:53:20Z"],
    }


def test_absent_and_empty_fields_are_left_out_and_zero_is_not() -> None:
    assert Section(past_times=[], note="").document() == {"note": ""}
    assert Section(last_time=0).document() == {"lastTime": "1970-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("field", "text"),
    [("lastTime", "soon"), ("lastTime", ""), ("size", "much"), ("size", "5Zi"), ("from", ""), ("size", "9" * 5000)],
)
def test_a_text_that_is_no_time_or_quantity_is_absent(field: str, text: str) -> None:
    assert Section.model_validate({field: text}) == Section()


def test_of_past_times_those_that_are_none_are_left_out() -> None:
    found = Section.model_validate({"pastTimes": ["soon", "2025-10-09T08:53:20Z", ""]})
    assert found.past_times == [1_760_000_000_000]


@pytest.mark.parametrize(("field", "value"), [("pastTimes", 5), ("pastTimes", {}), ("lastTime", []), ("size", {})])
def test_a_value_of_another_type_is_invalid(field: str, value: Any) -> None:
    with pytest.raises(ValidationError, match=field):
        Section.model_validate({field: value})


def test_fields_of_a_newer_operator_are_ignored() -> None:
    assert Section.model_validate({"note": "a", "newer": {"b": 1}}) == Section(note="a")


def test_a_section_cannot_be_changed() -> None:
    section = Section(note="a")
    with pytest.raises(ValidationError):
        section.note = "b"


def test_the_schema_has_the_types_of_json_and_no_null_or_default() -> None:
    properties = Section.model_json_schema()["properties"]
    assert properties["size"]["type"] == "string"
    assert properties["pastTimes"] == {
        "type": "array",
        "items": {"type": "string", "format": "date-time"},
        "title": "Pasttimes",
    }
    assert properties["note"]["type"] == "string"
    assert properties["lastTime"]["format"] == "date-time"
    assert properties["lastTime"]["description"] == "Time of the last change."
    for each in properties.values():
        assert not {"default", "anyOf"} & each.keys()
