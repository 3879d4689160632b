"""Schemas of AWS Glue, from the answers of its client."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sink_job.api.enums import RegistryType
from sink_job.api.errors import ConfigurationError, TransientError
from sink_job.connect.errors import UnknownSchema
from sink_job.connect.schema import RegisteredSchema
from sink_job.registry.clients import glue
from sink_job.registry.clients.glue import GlueRegistry, GlueVersion, version_of
from sink_job.registry.clients.requests import Endpoint
from sink_job.registry.settings import RegistrySettings
from tests.support.registry import QUICK

ID = "01234567-89ab-cdef-0123-456789abcdef"
ANSWER: dict[str, Any] = {
    "SchemaVersionId": ID,
    "SchemaDefinition": '"int"',
    "DataFormat": "AVRO",
    "SchemaArn": "arn:aws:glue:eu-central-1:123456789012:schema/travel/flights",
    "VersionNumber": 3,
    "Status": "AVAILABLE",
}


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The answer to each request; a test changes it."""
    found = dict(ANSWER)
    client = SimpleNamespace(get_schema_version=lambda **_: dict(found))
    monkeypatch.setattr(glue, "GlueEndpoints", lambda settings: lambda: [Endpoint("https://glue", client)])
    return found


def registry(**settings: Any) -> GlueRegistry:
    found = RegistrySettings(type=RegistryType.GLUE, region="eu-central-1", retry=QUICK, **settings)
    return GlueRegistry(found, lambda seconds: False)


def test_a_schema_has_the_subject_and_version_of_glue(answer: dict[str, Any]) -> None:
    assert registry().fetch("any", ID) == RegisteredSchema(ID, "AVRO", '"int"', subject="travel/flights", version=3)


@pytest.mark.parametrize("state", ["AVAILABLE", "DELETING"])
def test_a_version_that_was_valid_is_used(answer: dict[str, Any], state: str) -> None:
    answer["Status"] = state
    assert registry().fetch("any", ID) is not None


@pytest.mark.parametrize("state", ["PENDING", "FAILURE"])
def test_a_version_that_glue_has_not_accepted_is_unknown_with_its_state(answer: dict[str, Any], state: str) -> None:
    answer["Status"] = state
    del answer["SchemaDefinition"]
    with pytest.raises(UnknownSchema, match=f"{ID} is version 3 of travel/flights, whose state in AWS Glue is {state}"):
        registry().fetch("any", ID)


def test_a_schema_of_another_registry_than_that_of_the_manifest_is_rejected(answer: dict[str, Any]) -> None:
    assert registry(registry_name="travel").fetch("any", ID) is not None
    with pytest.raises(
        ConfigurationError, match=rf"{ID} is a version of travel/flights, not of .* registry other: fix"
    ):
        registry(registry_name="other").fetch("any", ID)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("SchemaArn", None),
        ("SchemaArn", 7),
        ("SchemaArn", "flights"),
        ("SchemaArn", "arn:aws:glue:eu-central-1:1:schema/flights"),
        ("SchemaDefinition", None),
        ("SchemaDefinition", 7),
        ("SchemaDefinition", "\ud800"),
        ("DataFormat", None),
        ("VersionNumber", None),
        ("VersionNumber", "three"),
        ("Status", None),
    ],
)
def test_an_answer_of_another_form_is_not_kept_but_retried(answer: dict[str, Any], field: str, value: object) -> None:
    answer[field] = value
    with pytest.raises(TransientError, match="the answer is not the answer of AWS Glue"):
        registry().fetch("any", ID)


@pytest.mark.parametrize("field", ["SchemaArn", "SchemaDefinition", "DataFormat", "VersionNumber", "Status"])
def test_an_answer_without_a_field_is_retried(answer: dict[str, Any], field: str) -> None:
    del answer[field]
    with pytest.raises(TransientError, match="the answer is not the answer of AWS Glue"):
        registry().fetch("any", ID)


def test_a_version_without_a_schema_needs_no_text() -> None:
    found = version_of(
        {name: value for name, value in ANSWER.items() if name != "SchemaDefinition"} | {"Status": "PENDING"}
    )
    assert found == GlueVersion("travel", "flights", 3, "PENDING", "AVRO", "")


def test_a_registry_without_an_endpoint_is_named_by_its_region(answer: dict[str, Any]) -> None:
    assert repr(registry()) == "GlueRegistry(AWS Glue in eu-central-1)"
    assert registry(urls=("https://glue.local",)).url == "https://glue.local"


def test_the_newest_schema_is_that_of_the_topic_in_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def get_schema_version(**given: Any) -> dict[str, Any]:
        asked.append(given)
        return dict(ANSWER)

    client = SimpleNamespace(get_schema_version=get_schema_version)
    monkeypatch.setattr(glue, "GlueEndpoints", lambda settings: lambda: [Endpoint("https://glue", client)])
    found = registry(registry_name="travel").latest("flights")
    assert found == RegisteredSchema(ID, "AVRO", '"int"', subject="travel/flights", version=3)
    assert asked == [
        {
            "SchemaId": {"RegistryName": "travel", "SchemaName": "flights"},
            "SchemaVersionNumber": {"LatestVersion": True},
        },
        {"SchemaVersionId": ID},
    ]
    asked.clear()
    registry().latest("flights")
    assert asked[0]["SchemaId"]["RegistryName"] == "default-registry"
