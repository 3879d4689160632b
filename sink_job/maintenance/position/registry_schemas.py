"""The schemas of a registry for a comparison that runs before there is a ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from sink_job.api.errors import ConfigurationError
from sink_job.connect.errors import UnknownSchema
from sink_job.connect.schema import RegisteredSchema, registry_schema_id, shown_schema_id
from sink_job.registry.base import SchemaRegistry
from sink_job.verify.previous.given_schemas import GivenSchemas

NOT_KNOWN: Final = "the schema registry does not know the schema id"


class RegistrySchemas:
    """What the registry has answered so far. `reason_against` returns why a schema cannot be used, None if it can."""

    def __init__(
        self, registry: SchemaRegistry | None, reason_against: Callable[[RegisteredSchema], str | None]
    ) -> None:
        self._registry = registry
        self._reason_against = reason_against
        self._resolved: dict[str, dict[str, RegisteredSchema]] = {}
        self._unknown: dict[str, dict[str, str]] = {}

    @property
    def given(self) -> GivenSchemas:
        """The answers, for tasks."""
        return GivenSchemas(self._resolved, self._unknown)

    def ask(self, topic: str, ids: Iterable[str]) -> None:
        """Asks for ids that tasks have met. An id that cannot be used rejects its records: then no object can have
        them. Raises the errors of the registry."""
        if self._registry is None:
            raise ConfigurationError(f"topic {topic}: values have schema ids, and spec.format.registry is not set")
        resolved, unknown = self._resolved.setdefault(topic, {}), self._unknown.setdefault(topic, {})
        for each in ids:
            if each not in resolved and each not in unknown:
                found = self._answer(self._registry, topic, each)
                if isinstance(found, RegisteredSchema):
                    resolved[each] = found
                else:
                    unknown[each] = found

    def _answer(self, registry: SchemaRegistry, topic: str, schema_id: str) -> RegisteredSchema | str:
        """The schema, or the reason for the rejection of its records."""
        text, is_key = registry_schema_id(schema_id)
        try:
            found = registry.fetch(topic, text, is_key=is_key)
        except UnknownSchema as error:
            return str(error)
        if found is None:
            return f"{NOT_KNOWN} {shown_schema_id(schema_id)}"
        if is_key:
            found = msgspec.structs.replace(found, id=schema_id)
        return self._reason_against(found) or found
