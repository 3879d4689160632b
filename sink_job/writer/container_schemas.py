"""The schemas of objects that contain the schema of their records (`OutputFormat.has_datums`).

A task that opens such an object stores its schema, and with the output Parquet the field ids of this schema that the
topic does not have yet. Later tasks, rebuilds and `verify` read both from the store (ADR 25, ADR 32).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from sink_job.api.enums import OutputFormat
from sink_job.api.sections.format_section import FormatSpec
from sink_job.arrow.arrays import Mask
from sink_job.codecs.containers import EncoderOfKey, container_encoder
from sink_job.connect.field_ids import FieldIds, field_paths
from sink_job.connect.schema import Schema
from sink_job.converters.base import SchemaColumn
from sink_job.formats.base import ObjectEncoder
from sink_job.records.batch import NO_SCHEMA
from sink_job.records.fields import Rejections
from sink_job.writer.schema_stores import SchemaStores

MAX_ENCODERS: Final = 100
"""Maximum number of schemas whose encoders a task keeps."""


@dataclass
class ContainerSchemas:
    """The schemas of objects in the stores of a task. Creates the encoders of objects."""

    settings: FormatSpec
    stores: SchemaStores = field(default_factory=SchemaStores)
    _encoders: dict[tuple[str, str], EncoderOfKey] = field(default_factory=dict)

    def keep(self, topic: str, schemas: Sequence[Schema]) -> None:
        """Puts the schemas of objects of `topic` into the store, and their field ids, in the order of the schemas.
        Raises the errors of the stores."""
        self.stores.objects.put_all(schemas)
        if self._has_ids:
            paths = dict.fromkeys(path for each in schemas for path in field_paths(each))
            self.stores.field_ids.add(topic, [*paths])

    def schema(self, object_schema: str) -> Schema:
        """The schema with this id. Raises LedgerUnreadable and the errors of the store."""
        return self.stores.objects.find(object_schema)

    def field_ids(self, topic: str, schema: Schema) -> FieldIds | None:
        """The field ids of `schema` in objects of `topic`; None if the output has none. Raises as `schema`."""
        return self.stores.field_ids.find(topic, field_paths(schema)) if self._has_ids else None

    @property
    def _has_ids(self) -> bool:
        return self.settings.output is OutputFormat.PARQUET

    def encoder(self, key: str, topic: str, object_schema: str) -> ObjectEncoder:
        """The encoder of the object `key` of `topic` with this schema. Raises as `schema`."""
        encoder_of = self._encoders.get((topic, object_schema))
        if encoder_of is None:
            schema = self.schema(object_schema)
            encoder_of = container_encoder(self.settings, schema, self.field_ids(topic, schema))
            while len(self._encoders) >= MAX_ENCODERS:
                del self._encoders[next(iter(self._encoders))]
            self._encoders[topic, object_schema] = encoder_of
        return encoder_of(key)


def without_schema(schemas: SchemaColumn | None, skip: Mask) -> Rejections:
    """The rows without a schema, which are data errors in a container, without the rows of the mask `skip`."""
    without = ~skip if schemas is None else (schemas.codes == NO_SCHEMA) & ~skip
    reason = "the value has no schema, which the output needs"
    return [(row, reason) for row in np.flatnonzero(without).tolist()]
