"""What an object has to contain: its parts, written in one go from its records and the settings of its claim (P3).

Rounds, restarts, kills and rebuilds must not change a byte of them. The product's encoders are used, but nothing is
staged or continued.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
import pyarrow as pa

from devtools.simulation import containers
from sink_job.api.job_sections import ErrorsSpec
from sink_job.api.schema_section import INFERRED_ID, text_id
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.formats.part_assembler import PartAssembler
from sink_job.formats.spill_buffer import SpillPool
from sink_job.ledger.field_ids import FieldIdsEntry
from sink_job.ledger.schemas import SchemaEntry
from sink_job.schemas.model import RegisteredSchema
from sink_job.writer.container_schemas import InMemoryFieldIds
from sink_job.writer.projection import InMemoryObjectSchemas
from sink_job.writer.record_pipeline import RecordPipeline


class _Schemas:
    """The schemas of all runs, in all topics, and the inferred ones of each topic."""

    def __init__(self) -> None:
        found = [RegisteredSchema(text_id("JSON", text), "JSON", text) for text in containers.SCHEMAS]
        self._by_id = {each.id: each for each in found}
        self.inferred: dict[str, RegisteredSchema] = {}

    def find(self, topic: str, schema_id: str) -> RegisteredSchema | None:
        return self.inferred[topic] if schema_id == INFERRED_ID else self._by_id[schema_id]


@dataclass
class SingleWrite:
    """Writes objects in one go."""

    _pipelines: dict[str, RecordPipeline] = field(default_factory=dict)
    _schemas: _Schemas = field(default_factory=_Schemas)
    _ids: InMemoryFieldIds = field(default_factory=InMemoryFieldIds)

    def put(self, key: str, body: bytes) -> None:
        """Takes what the ledger has of a topic: its inferred schema and its field ids."""
        *_, kind, topic, name = f"//{key}".split("/")
        if kind == "schemas" and name == f"{INFERRED_ID}.json":
            self._schemas.inferred[topic] = msgspec.json.decode(body, type=SchemaEntry).schema
        if kind == "field-ids":
            self._ids.topics.setdefault(topic, {}).update(msgspec.json.decode(body, type=FieldIdsEntry).ids)

    def parts(self, settings: str, key: str, tp: TopicPartition, values: Sequence[bytes]) -> list[bytes]:
        """The parts of an object with these records. `settings` are those of its claim."""
        pipeline = self._pipeline(settings)
        columns = {
            "offset": pa.array(range(len(values)), pa.int64()),
            "value": pa.array(values, pa.binary()),
            "timestamp": pa.array([0] * len(values), pa.int64()),
        }
        prepared = pipeline.prepare(pa.RecordBatch.from_pydict(columns), 0, tp)
        rows = prepared.encoded.to_pylist()
        schema = prepared.rows.schema_ids[0] if prepared.rows.schema_ids else None
        with SpillPool(1 << 30) as pool:
            encoder = pipeline.object_encoder(key, tp.topic, schema)
            assembler = PartAssembler(part_size=pipeline.shaping.s3.part_size, encoder=encoder, spool=pool)
            ends = np.cumsum([len(row) for row in rows], dtype=np.int64)
            return [bytes(part) for part in (*assembler.append(memoryview(b"".join(rows)), ends), *assembler.finish())]

    def _pipeline(self, settings: str) -> RecordPipeline:
        if settings not in self._pipelines:
            shaping = ObjectSettings.model_validate_json(settings)
            found = RecordPipeline.of(shaping, ErrorsSpec(), self._schemas)
            self._pipelines[settings] = found.with_object_schemas(InMemoryObjectSchemas(), self._ids)
        return self._pipelines[settings]
