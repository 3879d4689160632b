"""Schemas of Apicurio, and the artifact in which the version of a schema counts."""

from __future__ import annotations

import json

import pytest
from confluent_kafka.schema_registry.error import SchemaRegistryError

from sink_job.api.errors import ConfigurationError
from sink_job.connect.schema import RegisteredSchema, SchemaReference
from sink_job.registry.clients import apicurio
from sink_job.registry.clients.apicurio import ApicurioRegistry, artifact_of, schema_key
from sink_job.registry.clients.apicurio_client import Artifact, ArtifactReference, ArtifactVersion, SchemaKey
from sink_job.registry.failures import SCHEMA_NOT_FOUND
from sink_job.registry.references import MAX_REFERENCES
from sink_job.registry.settings import RegistrySettings
from tests.support.registry import QUICK

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


# -- schemas -----------------------------------------------------------------------------------------------------------


class Client:
    """An Apicurio with the schemas `texts` by kind and number of their id."""

    def __init__(self) -> None:
        self.texts = {("contentIds", 7): TEXT}
        self.found = [ArtifactVersion(Artifact("default", "flights-value"), 3, "AVRO")]
        self.refers: dict[tuple[str, int], list[ArtifactReference]] = {}
        self.global_ids: dict[tuple[str, str], int] = {}

    def text(self, key: SchemaKey) -> str:
        if key not in self.texts:
            raise SchemaRegistryError(404, SCHEMA_NOT_FOUND, "No content")
        return self.texts[key]

    def versions(self, key: SchemaKey) -> list[ArtifactVersion]:
        return self.found

    def references(self, key: SchemaKey) -> list[ArtifactReference]:
        return self.refers.get(key, [])

    def global_id(self, artifact: Artifact, version: str) -> int:
        return self.global_ids[artifact.name, version]

    def latest_id(self, artifact: Artifact) -> int:
        if artifact not in [each.artifact for each in self.found]:
            raise SchemaRegistryError(404, SCHEMA_NOT_FOUND, "No artifact")
        return 7

    def close(self) -> None:
        pass


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def registry(client: Client, monkeypatch: pytest.MonkeyPatch) -> ApicurioRegistry:
    monkeypatch.setattr(apicurio, "apicurio_clients", lambda *_: lambda url: client)
    return ApicurioRegistry(RegistrySettings(urls=("https://a",), retry=QUICK), lambda _: False, lambda _: None)


def reference(name: str, version: str = "1") -> ArtifactReference:
    return ArtifactReference(f"example.{name}", Artifact("default", name), version)


def test_a_schema_has_the_newest_global_id_of_its_artifact_as_version(
    client: Client, registry: ApicurioRegistry
) -> None:
    client.found = [
        ArtifactVersion(Artifact("default", "flights-value"), 3, "AVRO"),
        ArtifactVersion(Artifact("default", "other"), 9, "AVRO"),
        ArtifactVersion(Artifact("default", "flights-value"), 5, "AVRO"),
    ]
    assert registry.fetch("flights", "7") == RegisteredSchema("7", "AVRO", TEXT, subject="flights-value", version=5)


def test_a_schema_of_an_ambiguous_artifact_has_no_version(client: Client, registry: ApicurioRegistry) -> None:
    client.found = [ArtifactVersion(Artifact("default", name), 3, "AVRO") for name in ("a", "b")]
    found = registry.fetch("flights", "7")
    assert found is not None
    assert (found.subject, found.version) == (None, None)


@pytest.mark.parametrize("schema_id", ["8", "0", "-1", "global-0", f"{2**63}"])
def test_an_id_that_does_not_exist_is_unknown(registry: ApicurioRegistry, schema_id: str) -> None:
    assert registry.fetch("flights", schema_id) is None


def test_a_content_that_is_in_no_artifact_any_more_is_unknown(client: Client, registry: ApicurioRegistry) -> None:
    client.found = []
    assert registry.fetch("flights", "7") is None


def test_references_have_the_global_ids_of_their_versions_each_after_its_own(
    client: Client, registry: ApicurioRegistry
) -> None:
    client.refers = {("contentIds", 7): [reference("b", "2.0")], ("globalIds", 20): [reference("c")]}
    client.global_ids = {("b", "2.0"): 20, ("c", "1"): 30}
    client.texts |= {("globalIds", 20): "B", ("globalIds", 30): "C"}
    found = registry.fetch("flights", "7")
    assert found is not None
    assert found.references == (
        SchemaReference("example.c", "c", 30, "C"),
        SchemaReference("example.b", "b", 20, "B"),
    )


def test_a_cycle_of_references_cannot_be_used(client: Client, registry: ApicurioRegistry) -> None:
    client.refers = {("contentIds", 7): [reference("b")], ("globalIds", 20): [reference("b")]}
    client.global_ids = {("b", "1"): 20}
    client.texts |= {("globalIds", 20): "B"}
    with pytest.raises(ConfigurationError, match="schema id 7 cannot be used: its references form a cycle: b version"):
        registry.fetch("flights", "7")


@pytest.mark.parametrize("nested", [False, True])
def test_too_many_references_are_rejected_before_they_are_requested(
    client: Client, registry: ApicurioRegistry, nested: bool
) -> None:
    many = [reference(f"n{n}") for n in range(MAX_REFERENCES + 1)]
    client.refers = (
        {("contentIds", 7): [reference("b")], ("globalIds", 20): many} if nested else {("contentIds", 7): many}
    )
    client.global_ids, client.texts = {("b", "1"): 20}, client.texts | {("globalIds", 20): "B"}
    with pytest.raises(ConfigurationError, match="it has more than 1,000 references"):
        registry.fetch("flights", "7")


def test_a_reference_to_a_missing_schema_needs_user_action(client: Client, registry: ApicurioRegistry) -> None:
    client.refers = {("contentIds", 7): [reference("b")]}
    client.global_ids = {("b", "1"): 20}
    with pytest.raises(
        ConfigurationError, match=r"global id 20 \(b\), to which schema id 7 refers: HTTP 404.*: register"
    ):
        registry.fetch("flights", "7")


@pytest.mark.parametrize("name", ["flights-value", "flights"])
def test_the_newest_schema_is_that_of_the_artifact_of_the_topic(
    client: Client, registry: ApicurioRegistry, name: str
) -> None:
    client.found = [ArtifactVersion(Artifact("default", name), 3, "AVRO")]
    assert registry.latest("flights") == RegisteredSchema("7", "AVRO", TEXT, subject=name, version=3)


def test_a_topic_without_an_artifact_has_no_newest_schema(registry: ApicurioRegistry) -> None:
    assert registry.latest("other") is None
