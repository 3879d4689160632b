"""The schemas of a driver's rounds: which ids its tasks may decode, and the resolution of the ids that they report."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sink_job.api import enums
from sink_job.api.errors import how_to_skip
from sink_job.api.sections.schema_section import INFERRED_ID
from sink_job.api.spec import ObjectSettings, Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.codecs.converters import converter_for, whole_value_converter
from sink_job.connect.field_names import names_equal_but_case
from sink_job.connect.schema import RegisteredSchema, registry_schema_id
from sink_job.converters.registered import RegisteredConverter, SchemaSettings
from sink_job.coordinator.context import CoordinatorContext
from sink_job.coordinator.schemas.schema_resolver import SchemaResolver, StoppedAt
from sink_job.ledger.schemas.schema_store import SchemaStore
from sink_job.ledger.schemas.schema_table import KnownSchemas
from sink_job.s3 import S3Client
from sink_job.tasks.write import TaskResult

if TYPE_CHECKING:
    from sink_job.coordinator.schemas.schema_inference import SchemaInferrer


class RoundSchemas:
    """The schemas of one driver. Without a registry, `spec.format.schema` and inference there are none."""

    def __init__(self, sink: Sink, context: CoordinatorContext, s3: S3Client, root: str) -> None:
        """`root` is the `schemas_root` of the generation."""
        self._sink_arguments = sink.command_arguments
        self._resolver: SchemaResolver | None = None
        self._inference: SchemaInferrer | None = None
        store = SchemaStore(s3, root)
        if context.registry is not None:
            use = SchemaUse.of(sink.object_settings())
            self._resolver = SchemaResolver(
                context.registry,
                store,
                needs_version=sink.spec.schema_compatibility.projects,
                rejects_unknown=_rejects_unknown(sink),
                reason_against=use.reason_against,
                warnings=use.warnings,
                wait=context.stop.wait,
                clock=time.monotonic,
            )
        if sink.spec.format.inference is enums.SchemaInference.ONCE:
            from sink_job.coordinator.schemas.schema_inference import SchemaInferrer

            self._inference = SchemaInferrer(store, sink.spec.format)

    def known(self) -> KnownSchemas:
        """The ids that the tasks of the next round may decode or have to reject."""
        known = KnownSchemas() if self._resolver is None else self._resolver.known
        if self._inference is None:
            return known
        topics = {topic: known.resolved.get(topic, frozenset()) | {INFERRED_ID} for topic in self._inference.topics}
        return KnownSchemas({**known.resolved, **topics}, known.unknown)

    def resolve(self, results: Mapping[TopicPartition, TaskResult]) -> None:
        """Resolves the ids that the tasks of a round have reported, and infers the schemas of the records that
        they have observed. Raises as `SchemaResolver.resolve` and `SchemaInference.infer`."""
        if self._inference is not None:
            self._inference.infer({tp: each.observed for tp, each in results.items() if each.observed is not None})
        reported = {tp: ids for tp, result in results.items() if (ids := _registered(result))}
        if reported and self._resolver is not None:
            first = [tp for tp, ids in reported.items() if results[tp].unresolved[0][1] == ids[0]]
            self._resolver.resolve(reported, {tp: self._stopped_at(tp, results[tp].state.next) for tp in first})

    def _stopped_at(self, tp: TopicPartition, offset: int) -> StoppedAt:
        return StoppedAt(offset, how_to_skip(tp.topic, tp.partition, offset, self._sink_arguments))


@dataclass(frozen=True)
class SchemaUse:
    """What a sink can do with the schemas of its records. `value` and `key` are its converters; None where it has no
    schemas. `is_transformed`: objects have other schemas than values."""

    value: RegisteredConverter | None
    key: RegisteredConverter | None
    is_transformed: bool = False

    @classmethod
    def of(cls, object_settings: ObjectSettings) -> SchemaUse:
        settings, of_values = object_settings.format, SchemaSettings.of(object_settings, None)
        key = _converter(settings.key_converter, settings.key_output, SchemaSettings.of_keys(object_settings, None))
        if object_settings.transforms_registered and of_values is not None:
            return cls(whole_value_converter(settings.converter, of_values), key, is_transformed=True)
        return cls(_converter(settings.converter, settings.output, of_values), key)

    def reason_against(self, schema: RegisteredSchema) -> str | None:
        """Why a schema cannot be used for the values, or keys, of the sink; None if it can. A schema that cannot be
        used is not put into the ledger, whose copies last."""
        is_key = registry_schema_id(schema.id)[1]
        converter = self.key if is_key else self.value
        return None if converter is None else converter.reason_against(schema)

    def warnings(self, schema: RegisteredSchema) -> tuple[str, ...]:
        """What readers of the objects may not expect of a schema of values that can be used, as phrases."""
        found = None if self.value is None or self.is_transformed else self.value.schema_of(schema)
        return () if found is None else tuple(names_equal_but_case(found))


def _converter(
    choice: enums.ConverterType | None, output: enums.OutputFormat, schemas: SchemaSettings | None
) -> RegisteredConverter | None:
    if choice is None or schemas is None:
        return None
    found = converter_for(choice, (), output=output, schemas=schemas)
    return found if isinstance(found, RegisteredConverter) else None


def _rejects_unknown(sink: Sink) -> bool:
    registry = sink.spec.format.registry
    return registry is not None and registry.unknown_ids is enums.UnknownIds.REJECT


def _registered(result: TaskResult) -> list[str]:
    """The reported ids of schemas that are not inferred."""
    return [schema_id for _, schema_id in result.unresolved if schema_id != INFERRED_ID]
