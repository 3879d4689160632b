"""AWS Glue Schema Registry.

Ids are the UUIDs of schema versions. The subject of a schema is `<registry>/<schema>`, and its version is the number
within the schema. Schemas of Glue have no references.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from sink_job.api.errors import ConfigurationError
from sink_job.connect.errors import UnknownSchema
from sink_job.connect.schema import RegisteredSchema
from sink_job.registry.answers import is_text
from sink_job.registry.clients.glue_client import GlueEndpoints
from sink_job.registry.clients.glue_errors import failure_of
from sink_job.registry.clients.requests import Requests
from sink_job.registry.failures import SCHEMA_NOT_FOUND
from sink_job.registry.settings import RegistrySettings

DEFAULT_REGISTRY: Final = "default-registry"
"""The registry in which Glue's serializers register schemas without a name for it."""
_READABLE: Final = ("AVAILABLE", "DELETING")
"""States of a version whose schema can be used: records of a version that is being deleted were valid."""


class GlueVersion(NamedTuple):
    """A version of a schema. `state`: AVAILABLE, PENDING, FAILURE or DELETING."""

    registry: str
    schema: str
    number: int
    state: str
    language: str
    text: str

    @property
    def subject(self) -> str:
        """`<registry>/<schema>`."""
        return f"{self.registry}/{self.schema}"


class GlueRegistry:
    """A `SchemaRegistry`. `wait` pauses for a number of seconds and returns True if the driver has to stop."""

    def __init__(self, settings: RegistrySettings, wait: Callable[[float], bool]) -> None:
        """Sends no request."""
        self.settings = settings
        self._endpoints = GlueEndpoints(settings)
        self._requests = Requests(self._endpoints, failure_of, settings.retry, wait)

    def __repr__(self) -> str:
        return f"GlueRegistry({self.url})"

    @property
    def url(self) -> str:
        """The endpoint, or the region."""
        return self.settings.url

    def close(self) -> None:
        """Closes the connections."""
        self._endpoints.close()

    def fetch(self, topic: str, schema_id: str, *, is_key: bool = False) -> RegisteredSchema | None:
        """As `SchemaRegistry.fetch`. Versions that Glue has not accepted are unknown."""
        found = self._requests.send(
            f"schema id {schema_id}",
            lambda client: version_of(client.get_schema_version(SchemaVersionId=schema_id)),
            absent=(SCHEMA_NOT_FOUND,),
        )
        if found is None:
            return None
        self._check(schema_id, found)
        return RegisteredSchema(
            id=schema_id, language=found.language, text=found.text, subject=found.subject, version=found.number
        )

    def latest(self, topic: str) -> RegisteredSchema | None:
        """As `NamedSchemas.latest`: the newest version of the schema that Glue's serializers name by the topic, in the
        registry of the settings or the default one."""
        name = {"RegistryName": self.settings.registry_name or DEFAULT_REGISTRY, "SchemaName": topic}

        def request(client: Any) -> str:
            answer = client.get_schema_version(SchemaId=name, SchemaVersionNumber={"LatestVersion": True})
            return _text(answer["SchemaVersionId"])

        found = self._requests.send(f"the newest version of schema {topic}", request, absent=(SCHEMA_NOT_FOUND,))
        return None if found is None else self.fetch(topic, found)

    def _check(self, schema_id: str, found: GlueVersion) -> None:
        """Raises ConfigurationError for a schema of another registry, UnknownSchema for a version without a schema."""
        name = self.settings.registry_name
        if name is not None and found.registry != name:
            raise ConfigurationError(
                f"schema registry {self.url}: schema id {schema_id} is a version of {found.subject}, not of a schema "
                f"of the registry {name}: fix spec.format.registry.name, or remove it to accept all registries"
            )
        if found.state not in _READABLE:
            raise UnknownSchema(
                f"the schema id {schema_id} is version {found.number} of {found.subject}, whose state in AWS Glue is "
                f"{found.state}"
            )


def version_of(answer: dict[str, Any]) -> GlueVersion:
    """The version in an answer to GetSchemaVersion. Raises ValueError and KeyError for an answer of another form.

    An ARN is `arn:aws:glue:<region>:<account>:schema/<registry>/<schema>`.
    """
    _, registry, schema = _text(answer["SchemaArn"]).rpartition(":")[2].split("/")
    state, number = _text(answer["Status"]), answer["VersionNumber"]
    if not isinstance(number, int):
        raise ValueError("the version is not a number")
    text = answer["SchemaDefinition"] if state in _READABLE else answer.get("SchemaDefinition", "")
    return GlueVersion(registry, schema, number, state, _text(answer["DataFormat"]), _text(text))


def _text(value: object) -> str:
    """The value of an answer; botocore does not check its type. Raises ValueError if it is no text."""
    if not is_text(value):
        raise ValueError("a value is not a text")
    return value
