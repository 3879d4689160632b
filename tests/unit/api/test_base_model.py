"""Sections of a manifest: their names in YAML, and their schema."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import ValidationError

from sink_job.api.base_model import OPERATOR_DEFAULT, SpecModel, description
from sink_job.api.units.quantities import Duration, Size


class Inner(SpecModel):
    """An inner section."""

    a_number: int = 5
    """A number."""


class Section(SpecModel):
    """A section."""

    file_size: Annotated[int, Size(), description(key="file.size", example="5Mi")] = 5 << 20
    """The size
    of a file."""
    max_age: Annotated[Annotated[int, Duration()] | None, description(operator_default=True)] = None
    """An age."""
    wait: Annotated[int, Duration()] = 90_000
    """A pause."""
    inner: Inner = Inner()
    """A section."""
    count: Annotated[int, description(ge=1)]
    """A count."""


def properties() -> dict[str, Any]:
    found: dict[str, Any] = Section.model_json_schema()["properties"]
    return found


def test_a_section_is_built_from_names_in_yaml_and_in_python_and_is_written_as_yaml() -> None:
    assert Section.model_validate({"fileSize": "1Ki", "count": 1}) == Section(file_size=1024, count=1)
    assert "fileSize" in Section(count=1).model_dump()


def test_an_unknown_field_is_rejected_without_its_value() -> None:
    with pytest.raises(ValidationError) as caught:
        Section.model_validate({"count": 1, "more": "hunter2"})
    assert "more" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_section_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        Section(count=1).count = 2


def test_a_default_has_its_unit() -> None:
    assert (properties()["fileSize"]["default"], properties()["wait"]["default"]) == ("5Mi", "1m30s")


def test_an_optional_field_is_omitted_instead_of_null() -> None:
    assert "anyOf" not in properties()["maxAge"]
    assert "default" not in properties()["maxAge"]
    assert properties()["maxAge"]["x-s3sink-type"] == "duration"


def test_an_inner_section_has_the_default_of_its_fields() -> None:
    assert properties()["inner"]["default"] == {}


def test_the_docstring_of_a_field_is_its_description_in_one_line() -> None:
    assert properties()["fileSize"]["description"] == "The size of a file."


def test_an_annotation_has_the_connector_key_an_example_and_bounds() -> None:
    assert properties()["fileSize"]["x-s3sink-connector-key"] == "file.size"
    assert properties()["fileSize"]["examples"] == ["5Mi"]
    assert properties()["count"]["minimum"] == 1
    assert [name for name, each in properties().items() if each.get(OPERATOR_DEFAULT)] == ["maxAge"]
