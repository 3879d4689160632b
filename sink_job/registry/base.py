"""The interface of a schema registry."""

from __future__ import annotations

from typing import Protocol

from sink_job.connect.schema import RegisteredSchema


class SchemaRegistry(Protocol):
    """Fetches schemas. Thread-safe."""

    @property
    def url(self) -> str:
        """The registry for messages: its URLs. Contains no secret."""
        ...

    def fetch(self, topic: str, schema_id: str, *, is_key: bool = False) -> RegisteredSchema | None:
        """The schema with the id `schema_id` in the values, or with `is_key` in the keys, of records of `topic`; None
        if the registry does not know the id.

        `version` of the result is None if the schema is in no version of the record's subject.

        Raises UnknownSchema with a reason if the registry does not have ids of this kind, ConfigurationError if user
        action is required, TransientError if the registry did not answer for the retry time, and Cancelled if the
        driver has to stop meanwhile.
        """
        ...

    def close(self) -> None:
        """Closes the connections."""
        ...


class NamedSchemas(SchemaRegistry, Protocol):
    """A registry whose schemas have names."""

    def latest(self, topic: str) -> RegisteredSchema | None:
        """The newest schema of the values of `topic` by the name that serializers give it; None if there is none, or
        it is not named by the topic. Raises as `fetch`."""
        ...
