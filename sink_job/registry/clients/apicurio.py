"""Apicurio Registry, by its own API.

Ids are content ids (`7`) or global ids (`global-7`). What a subject is to Confluent is an artifact here, named
`<group>/<artifact>`. Versions of an artifact are arbitrary texts, but they have ascending global ids: the version of a
schema is its global id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from sink_job.api.errors import ConfigurationError
from sink_job.connect.schema import RegisteredSchema, SchemaReference
from sink_job.registry.clients.apicurio_client import (
    DEFAULT_GROUP,
    ApicurioClient,
    Artifact,
    ArtifactReference,
    ArtifactVersion,
    SchemaKey,
    apicurio_clients,
)
from sink_job.registry.clients.rest_registry import RestRegistry
from sink_job.registry.failures import SCHEMA_NOT_FOUND
from sink_job.registry.references import (
    MAX_REFERENCES,
    InvalidReferences,
    Reference,
    Referenced,
    collect,
    too_many_references,
)
from sink_job.registry.settings import RegistrySettings
from sink_job.registry.subjects import record_name

_GLOBAL: Final = "global-"
_MAX_ID: Final = 2**63 - 1
_ABSENT: Final = (SCHEMA_NOT_FOUND,)


class ApicurioRegistry(RestRegistry[ApicurioClient]):
    """A `SchemaRegistry`. `wait` pauses for a number of seconds and returns True if the driver has to stop. `hide` gets
    the secrets to redact in all output, each time when they were read."""

    def __init__(
        self, settings: RegistrySettings, wait: Callable[[float], bool], hide: Callable[[Iterable[str]], None]
    ) -> None:
        """Sends no request."""
        super().__init__(settings, apicurio_clients, wait, hide)

    def fetch(self, topic: str, schema_id: str, *, is_key: bool = False) -> RegisteredSchema | None:
        """As `SchemaRegistry.fetch`. A content id that is in no version of an artifact is unknown."""
        key, what = schema_key(schema_id), f"schema id {schema_id}"
        if not 0 < key.number <= _MAX_ID:
            return None
        text = self._requests.send(what, lambda client: client.text(key), absent=_ABSENT)
        versions = self._requests.send(f"versions of {what}", lambda client: client.versions(key), absent=_ABSENT)
        if text is None or not versions:
            return None
        language = versions[0].language
        artifact = artifact_of(topic, language, text, versions, is_key=is_key)
        return RegisteredSchema(
            id=schema_id,
            language=language,
            text=text,
            references=self._references(what, key),
            subject=artifact.subject if artifact else None,
            version=max((each.global_id for each in versions if each.artifact == artifact), default=None),
        )

    def latest(self, topic: str) -> RegisteredSchema | None:
        """As `NamedSchemas.latest`: the newest version of the artifact that TopicIdStrategy or SimpleTopicIdStrategy
        names, in the default group."""
        for name in (f"{topic}-value", topic):
            artifact = Artifact(DEFAULT_GROUP, name)
            found = self._requests.send(
                f"the newest version of artifact {artifact.subject}",
                partial(_latest_id, artifact),
                absent=_ABSENT,
            )
            if found is not None:
                return self.fetch(topic, str(found))
        return None

    def _references(self, what: str, key: SchemaKey) -> tuple[SchemaReference, ...]:
        found = self._requests.send(f"references of {what}", lambda client: client.references(key))
        try:
            return collect(self._numbered(what, found or []), partial(self._referenced, what))
        except InvalidReferences as error:
            raise ConfigurationError(
                f"schema registry {self.url}: {what} cannot be used: {error}. Register a schema without such "
                "references."
            ) from None

    def _numbered(self, what: str, references: Sequence[ArtifactReference]) -> list[Reference]:
        """The references with the global ids of their versions."""
        if len(references) > MAX_REFERENCES:
            raise too_many_references()
        return [Reference(each.name, each.artifact.subject, self._global_id(what, each)) for each in references]

    def _global_id(self, what: str, reference: ArtifactReference) -> int:
        version, artifact = reference.version, reference.artifact
        found = self._requests.send(
            f"version {version} of artifact {artifact.subject}, to which {what} refers",
            lambda client: client.global_id(artifact, version),
        )
        assert found is not None
        return found

    def _referenced(self, what: str, reference: Reference) -> Referenced:
        key = SchemaKey("globalIds", reference.version)
        target = f"global id {key.number} ({reference.subject}), to which {what} refers"

        def request(client: ApicurioClient) -> tuple[str, list[ArtifactReference]]:
            return client.text(key), client.references(key)

        found = self._requests.send(target, request)
        assert found is not None
        text, references = found
        return Referenced(text, self._numbered(what, references))


def _latest_id(artifact: Artifact, client: ApicurioClient) -> int:
    return client.latest_id(artifact)


def schema_key(schema_id: str) -> SchemaKey:
    """The id in Apicurio's terms. Raises ValueError for an id that is not of Apicurio's wire format."""
    if schema_id.startswith(_GLOBAL):
        return SchemaKey("globalIds", int(schema_id.removeprefix(_GLOBAL)))
    return SchemaKey("contentIds", int(schema_id))


def artifact_of(
    topic: str, language: str, text: str, versions: Sequence[ArtifactVersion], *, is_key: bool = False
) -> Artifact | None:
    """The artifact in which the version of a schema counts. A global id is in one. A content id can be in several: of
    these the one that an artifact resolver strategy of Apicurio's serializers names, in the default group if possible.
    None if that is ambiguous.

    Source: io.apicurio.registry.serde.strategy.{TopicIdStrategy, SimpleTopicIdStrategy} and
    io.apicurio.registry.serde.avro.strategy.{TopicRecordIdStrategy, QualifiedRecordIdStrategy, RecordIdStrategy}.
    """
    artifacts = dict.fromkeys(each.artifact for each in versions)
    if len(artifacts) == 1:
        return next(iter(artifacts))
    full_name = record_name(language, text) or ""
    name = full_name.rpartition(".")[2]
    part = "key" if is_key else "value"
    for artifact_id in (f"{topic}-{part}", topic, f"{topic}-{name}", full_name, name):
        named = [artifact for artifact in artifacts if artifact.name == artifact_id]
        chosen = [artifact for artifact in named if artifact.group == "default"] or named
        if chosen:
            return chosen[0] if len(chosen) == 1 else None
    return None
