"""The artifact of Apicurio in which the version of a schema counts."""

from __future__ import annotations

import json

import pytest

from sink_job.registry.clients.apicurio import artifact_of, schema_key
from sink_job.registry.clients.apicurio_client import Artifact, ArtifactVersion, SchemaKey

TEXT = json.dumps({"type": "record", "namespace": "example", "name": "Flight", "fields": []})


def chosen(*artifacts: str, is_key: bool = False) -> str | None:
    """The subject of the artifact; `artifacts` are `<group>/<name>`."""
    versions = [
        ArtifactVersion(Artifact(*each.split("/")), global_id, "AVRO") for global_id, each in enumerate(artifacts, 1)
    ]
    found = artifact_of("flights", "AVRO", TEXT, versions, is_key=is_key)
    return found.subject if found else None


def test_the_only_artifact_is_that_of_the_schema() -> None:
    assert chosen("any/thing", "any/thing") == "any/thing"


@pytest.mark.parametrize(
    ("artifact", "subject"),
    [
        ("default/flights-value", "flights-value"),
        ("default/flights", "flights"),
        ("default/flights-Flight", "flights-Flight"),
        ("default/example.Flight", "example.Flight"),
        ("example/Flight", "example/Flight"),
    ],
)
def test_of_several_artifacts_that_of_a_resolver_strategy_is_chosen(artifact: str, subject: str) -> None:
    assert chosen("default/other-value", artifact, "default/another") == subject


def test_the_artifact_of_the_topic_comes_before_that_of_the_record() -> None:
    assert chosen("example/Flight", "default/flights-value") == "flights-value"


def test_the_artifact_of_keys_has_a_name_of_its_own() -> None:
    assert chosen("default/flights-value", "default/flights-key", is_key=True) == "flights-key"


def test_the_default_group_comes_before_other_groups() -> None:
    assert chosen("staging/flights-value", "default/flights-value") == "flights-value"


@pytest.mark.parametrize(
    "artifacts", [("default/a", "default/b"), ("staging/flights-value", "test/flights-value", "default/flights")]
)
def test_an_ambiguous_artifact_is_none(artifacts: tuple[str, ...]) -> None:
    assert chosen(*artifacts) is None


def test_an_id_is_a_content_id_or_a_global_id() -> None:
    assert schema_key("7") == SchemaKey("contentIds", 7)
    assert schema_key("global-7") == SchemaKey("globalIds", 7)
