"""The schemas of a registry for tasks that run before there is a ledger: the driver passes them on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sink_job.connect.errors import UnknownSchema
from sink_job.connect.schema import RegisteredSchema


@dataclass(frozen=True)
class GivenSchemas:
    """A `SchemaTable`; picklable. `resolved`: the schemas by topic and id. `unknown`: the reasons for the rejection of
    records with ids that cannot be used, by topic and id."""

    resolved: Mapping[str, Mapping[str, RegisteredSchema]] = field(default_factory=dict)
    unknown: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def find(self, topic: str, schema_id: str) -> RegisteredSchema | None:
        """The schema with this id; None if the driver was not asked for it yet. Raises UnknownSchema."""
        reason = self.unknown.get(topic, {}).get(schema_id)
        if reason is not None:
            raise UnknownSchema(reason)
        return self.resolved.get(topic, {}).get(schema_id)
