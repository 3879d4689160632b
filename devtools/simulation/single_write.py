"""What an object has to contain: its parts, written in one go from its records and the settings of its claim (P3).

Rounds, restarts, kills and rebuilds must not change a byte of them. The product's encoders are used, but nothing is
staged or continued.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import pyarrow as pa

from devtools.simulation import containers
from devtools.simulation.kafka import HEADERS
from sink_job.api.sections.job_sections import ErrorsSpec
from sink_job.api.sections.schema_section import INFERRED_ID, text_id
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.connect.schema import RegisteredSchema
from sink_job.formats.part_assembler import PartAssembler
from sink_job.formats.spill_buffer import SpillPool
from sink_job.ledger.schemas.field_ids import FieldIdsEntry
from sink_job.ledger.schemas.object_schemas import ObjectSchemaEntry
from sink_job.ledger.schemas.schema_store import SchemaEntry
from sink_job.records.batch import ANY_SCHEMA, NO_SCHEMA
from sink_job.rotation.types import ObjectId
from sink_job.writer.record_pipeline import RecordPipeline
from sink_job.writer.row_slices import RowSelection, row_slices
from sink_job.writer.schema_stores import InMemoryFieldIds, InMemoryObjectSchemas, SchemaStores

_COPY = re.compile(rf"(?:{INFERRED_ID}|[0-9]+)\.json")
"""The file of a schema."""


class _Schemas:
    """The schemas of all runs, in all topics, and the inferred and registered ones of each topic."""

    def __init__(self) -> None:
        found = [RegisteredSchema(text_id("JSON", text), "JSON", text) for text in containers.SCHEMAS]
        self._by_id = {each.id: each for each in found}
        self.of_topics: dict[tuple[str, str], RegisteredSchema] = {}

    def find(self, topic: str, schema_id: str) -> RegisteredSchema | None:
        return self.of_topics.get((topic, schema_id)) or self._by_id.get(schema_id)


@dataclass
class SingleWrite:
    """Writes objects in one go."""

    _pipelines: dict[str, RecordPipeline] = field(default_factory=dict)
    _schemas: _Schemas = field(default_factory=_Schemas)
    _ids: InMemoryFieldIds = field(default_factory=InMemoryFieldIds)
    _objects: InMemoryObjectSchemas = field(default_factory=InMemoryObjectSchemas)

    def put(self, key: str, body: bytes) -> None:
        """Takes what the ledger has of a topic: its schemas and its field ids."""
        *_, kind, topic, name = f"//{key}".split("/")
        if kind == "schemas" and _COPY.fullmatch(name):
            self._schemas.of_topics[topic, name.removesuffix(".json")] = msgspec.json.decode(
                body, type=SchemaEntry
            ).schema
        if topic == "object-schemas":
            self._objects.put_all([msgspec.json.decode(body, type=ObjectSchemaEntry).schema])
        if kind == "field-ids":
            self._ids.topics.setdefault(topic, {}).update(msgspec.json.decode(body, type=FieldIdsEntry).ids)

    def parts(
        self,
        settings: str,
        key: str,
        tp: TopicPartition,
        records: Sequence[tuple[int, int, bytes | None]],
        object_schema: str | None,
    ) -> list[bytes]:
        """The parts of an object with these records: offset, timestamp and value. `settings` are those of its claim.
        `object_schema` counts only for an object that begins with a record without a value."""
        pipeline = self._pipeline(settings)
        columns = {
            "offset": pa.array([offset for offset, _, _ in records], pa.int64()),
            "value": pa.array([value for _, _, value in records], pa.binary()),
            "timestamp": pa.array([time for _, time, _ in records], pa.int64()),
            "timestamp_type": pa.array([0] * len(records), pa.int8()),
            "key": pa.nulls(len(records), pa.binary()),
            "headers": pa.nulls(len(records), HEADERS),
        }
        prepared = pipeline.prepare(pa.RecordBatch.from_pydict(columns), 0, tp)
        codes, ids = prepared.rows.schemas, prepared.rows.schema_ids
        first = NO_SCHEMA if codes is None else int(codes[0])
        schema = object_schema if first == ANY_SCHEMA else ids[first] if first >= 0 else None
        pipeline.keep_schemas(tp.topic, [ObjectId("", schema)], prepared.schemas)
        (rows,) = row_slices(prepared, [RowSelection(schema, slice(0, len(records)))])
        with SpillPool(1 << 30) as pool:
            encoder = pipeline.object_encoder(key, tp.topic, schema)
            settings_of_keys = pipeline.object_settings.s3
            assembler = PartAssembler(
                part_size=settings_of_keys.part_size,
                equal_parts=settings_of_keys.equal_parts,
                encoder=encoder,
                spool=pool,
            )
            return [bytes(part) for part in (*assembler.append(rows.data, rows.ends), *assembler.finish())]

    def _pipeline(self, settings: str) -> RecordPipeline:
        if settings not in self._pipelines:
            object_settings = ObjectSettings.model_validate_json(settings)
            stores = SchemaStores(self._schemas, self._objects, self._ids)
            self._pipelines[settings] = RecordPipeline.of(object_settings, ErrorsSpec(), stores)
        return self._pipelines[settings]
