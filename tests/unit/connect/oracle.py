"""The rules of Kafka Connect and its storage connectors, value by value and in their order of checks.

References: org.apache.kafka.connect.data.SchemaProjector and
io.confluent.connect.storage.schema.StorageSchemaCompatibility. Slow and simple, for schemas without recursion.
"""

from __future__ import annotations

import numpy as np

from sink_job.api.enums import SchemaCompatibility
from sink_job.connect.json_decoder import default_value
from sink_job.connect.schema import Schema, SchemaType

NUMBERS = ["int8", "int16", "int32", "int64", "float32", "float64"]
PROMOTABLE = {(NUMBERS[i], NUMBERS[j]) for i in range(len(NUMBERS)) for j in range(i, len(NUMBERS))}
METADATA = {"connect.record.doc", "connect.record.aliases", "connect.record.namespace"}
FIELD_DOC = "io.confluent.connect.avro.field.doc."
ENUM = "io.confluent.connect.avro.Enum"


class Impossible(Exception):
    """SchemaProjectorException."""


def project(source: Schema, value: object, target: Schema) -> object:
    """The value under `target`."""
    if different_type(source, target) or source.name != target.name or different_parameters(source, target):
        raise Impossible
    if source.optional and not target.optional:
        if target.default is None:
            raise Impossible
        return default_value(target) if value is None else project_required(source, value, target)
    return None if value is None else project_required(source, value, target)


def project_required(source: Schema, value: object, target: Schema) -> object:
    if target.type == SchemaType.STRUCT:
        assert isinstance(value, dict)
        return project_struct(source, value, target)
    if target.type == SchemaType.ARRAY:
        assert isinstance(value, list)
        return [project(child(source.values), item, child(target.values)) for item in value]
    if target.type == SchemaType.MAP:
        return project_map(source, value, target)
    if source.type == target.type:
        return value
    assert isinstance(value, (int, float))
    if target.type == SchemaType.FLOAT32:
        return float(np.array([value], np.int64).astype(np.float32)[0])
    return float(value) if target.type == SchemaType.FLOAT64 else int(value)


def project_struct(source: Schema, value: dict[str, object], target: Schema) -> dict[str, object]:
    sources = {field.name: field.schema for field in source.fields}
    result: dict[str, object] = {}
    for field in target.fields:
        if field.name in sources:
            result[field.name] = project(sources[field.name], value.get(field.name), field.schema)
        elif field.schema.default is not None:
            result[field.name] = default_value(field.schema)
        elif field.schema.optional:
            result[field.name] = None
        else:
            raise Impossible
    return result


def project_map(source: Schema, value: object, target: Schema) -> object:
    pairs = list(value.items()) if isinstance(value, dict) else value
    assert isinstance(pairs, list)
    projected = [
        (
            project(child(source.keys), key, child(target.keys)),
            project(child(source.values), item, child(target.values)),
        )
        for key, item in pairs
    ]
    return dict(projected) if isinstance(value, dict) else projected


def child(schema: Schema | None) -> Schema:
    assert schema is not None
    return schema


def different_type(source: Schema, target: Schema) -> bool:
    return source.type != target.type and (source.type.value, target.type.value) not in PROMOTABLE


def different_parameters(source: Schema, target: Schema) -> bool:
    theirs, ours = filtered(source), filtered(target)
    if ENUM in theirs and ENUM in ours:
        return any(ours.get(key) != value for key, value in theirs.items())
    return theirs != ours


def filtered(schema: Schema) -> dict[str, str]:
    kept = {key: value for key, value in schema.parameter.items() if key not in METADATA}
    return {key: value for key, value in kept.items() if not key.startswith(FIELD_DOC)}


def should_change_schema(mode: SchemaCompatibility, record: Schema, current: Schema) -> bool:
    """Whether the record needs another object, before its projection is tried."""
    if record == current:
        return False
    if mode == SchemaCompatibility.NONE:
        return True
    if not compatible(record, current):
        return True
    assert record.version is not None
    assert current.version is not None
    return record.version < current.version if mode == SchemaCompatibility.FORWARD else record.version > current.version


def compatible(record: Schema, current: Schema) -> bool:
    if different_type(record, current) or record.name != current.name or different_parameters(record, current):
        return False
    if record.type == SchemaType.STRUCT:
        others = {field.name: field.schema for field in current.fields}
        return all(compatible(each.schema, others[each.name]) for each in record.fields if each.name in others)
    if record.type == SchemaType.ARRAY:
        return compatible(child(record.values), child(current.values))
    if record.type == SchemaType.MAP:
        if not compatible(child(record.keys), child(current.keys)):
            return False
        return compatible(child(record.values), child(current.values))
    return True
