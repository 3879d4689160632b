"""The schema of a topic's records: from a sample, from the manifest, or from what the ledger has last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from sink_job.api.enums import ConverterType, OutputFormat
from sink_job.api.errors import ConfigurationError, InvalidSpec
from sink_job.api.sections.format_section import FormatSpec
from sink_job.api.sections.schema_section import INFERRED_ID
from sink_job.api.sections.transforms_section import TransformSpec
from sink_job.api.spec import Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.arrow import columns as arrow_columns
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.json_decoder import decode_json
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import Extension, RegisteredSchema, Schema, SchemaType
from sink_job.ddl.transformed_schema import transformed_schema
from sink_job.envelope.schema import KEY_BYTES, KEY_TEXT, envelope_schema, nullable_envelope_schema
from sink_job.json.typed.decoder import TextReading
from sink_job.json.typed.field_list import JSON_NAME, LANGUAGE, field_list_text
from sink_job.json.typed.inference import SampledValues, inferred_fields
from sink_job.json.typed.schema_source import value_schema
from sink_job.ledger import files
from sink_job.ledger.first_claim.ledger_place import ledger_root
from sink_job.ledger.schemas.object_schemas import ObjectSchemas
from sink_job.ledger.schemas.schema_store import FORMAT, SchemaEntry, schemas_folder, schemas_root
from sink_job.ledger.state import ClosedObject
from sink_job.ledger.store import Ledger
from sink_job.records.batch import DEAD_LETTERS
from sink_job.registry.bare_values import bare_value_schema
from sink_job.registry.client import open_registry
from sink_job.registry.settings import RegistrySettings
from sink_job.s3 import S3Client
from sink_job.transforms.transform_list import TransformList

ANY_JSON: Final = Schema(SchemaType.STRING, JSON_NAME, optional=True)
"""A value of an unknown type within an envelope."""
MAX_SAMPLED: Final = 100_000
"""Maximum number of values of a sample."""


def sampled_schema(lines: Iterable[bytes], settings: FormatSpec) -> Schema:
    """The schema that is inferred from values, one JSON text in a line, as `inference: Once` does. Raises InvalidSpec
    for a line that is no JSON object, and for an empty sample."""
    observed = SampledValues()
    count = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if count == MAX_SAMPLED:
            break
        try:
            value = decode_json(line)
        except (msgspec.DecodeError, RecursionError) as error:
            raise InvalidSpec([f"--records: line {number} is not JSON: {error}"]) from None
        if not isinstance(value, dict):
            raise InvalidSpec([f"--records: line {number} is not a JSON object"])
        observed.add(value)
        count += 1
    if not count:
        raise InvalidSpec(["--records: the file has no values"])
    text = field_list_text(inferred_fields(observed.properties))
    return _value(RegisteredSchema(INFERRED_ID, LANGUAGE, text), settings, None)


def transformed(lines: Iterable[bytes], specs: Sequence[TransformSpec], topic: str) -> Iterator[bytes]:
    """The values of records of `topic` after transforms, without those that are left out. The sample has no headers;
    its records have the timestamp 0, and offsets from 0 on. Raises InvalidSpec for a line that a transform rejects."""
    values = [line for line in lines if line.strip()][:MAX_SAMPLED]
    numbers = np.arange(len(values), dtype=np.int64)
    columns = {
        "offset": arrow_columns.integers(numbers),
        "value": arrow_columns.binaries(values),
        "timestamp": arrow_columns.integers(np.zeros(len(values), np.int64)),
        "headers": pa.nulls(len(values), pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    }
    found = TransformList(specs).apply(pa.record_batch(columns), TopicPartition(topic, 0))
    if found.rejected:
        row, reason = found.rejected[0]
        raise InvalidSpec([f"--records: record {row + 1}: {reason}"])
    yield from (value for value in found.batch.column("value").to_pylist() if value is not None)


def transformed_by(sink: Sink) -> Callable[[Schema, str], Schema] | None:
    """What makes of the schema of a topic's values that of the objects, if transforms change values with the schema of
    a registry or of the manifest; else None. It raises ConfigurationError."""
    if not sink.object_settings().transforms_registered:
        return None

    def change(schema: Schema, topic: str) -> Schema:
        try:
            return transformed_schema(schema, sink.spec.transforms, topic)
        except InvalidSchema as error:
            raise ConfigurationError(f"the schema of {topic} cannot be used: {error}") from None

    return change


def manifest_schema(settings: FormatSpec, *, is_transformed: bool = False) -> Schema | None:
    """The schema of values in the manifest; None without one. `is_transformed`: `transformed_by` changes it. Raises
    ConfigurationError for an invalid one."""
    found = bare_value_schema(settings)
    if found is None:
        return None
    schema = settings.bare_value_schema
    return _value(found, settings, None if schema is None else schema.message, is_transformed=is_transformed)


def _value(
    registered: RegisteredSchema, settings: FormatSpec, message: str | None, *, is_transformed: bool = False
) -> Schema:
    """The schema of values. Raises ConfigurationError."""
    datums = DatumSettings.of(settings)
    extension = Extension.NONE if datums is None else datums.extension
    try:
        if settings.converter is ConverterType.JSON:
            schema = value_schema(registered, datums or DatumSettings())
            return schema if datums is None else TextReading(schema, settings.unknown_fields, is_bare_json=True).schema
        match registered.language:
            case "AVRO":
                from sink_job.avro.to_connect import connect_schema, parse_registered

                return connect_schema(parse_registered(registered), registered.version, extension)
            case "JSON":
                from sink_job.json.json_schema.to_connect import json_connect_schema

                is_read = datums is not None or is_transformed
                schema = json_connect_schema(registered, optional_properties=is_read)
                return TextReading(schema, settings.unknown_fields).schema if is_read else schema
            case _:
                return _protobuf(registered, message)
    except InvalidSchema as error:
        raise ConfigurationError(f"{registered.label} cannot be used: {error}") from None


def _protobuf(registered: RegisteredSchema, message: str | None) -> Schema:
    from sink_job.protobuf.compiler import compile_schema
    from sink_job.protobuf.files import ProtobufFiles
    from sink_job.protobuf.to_connect import connect_schema
    from sink_job.registry.subjects import record_name

    name = message or record_name(registered.language, registered.text)
    if name is None:
        raise InvalidSchema("it has no message")
    return connect_schema(ProtobufFiles(compile_schema(registered)).named(name))


def with_envelope(value: Schema | None, settings: FormatSpec, *, has_nulls: bool = False) -> Schema | None:
    """The schema of records, with the envelope of the settings. Keys of a converter with schemas are any JSON.
    `has_nulls`: records without a value are written, and the envelope has the field `valueIsNull`."""
    if not settings.envelope:
        return value
    key = KEY_BYTES if settings.key_converter in (None, ConverterType.BYTES) else ANY_JSON
    make = nullable_envelope_schema if has_nulls else envelope_schema
    return make(value or ANY_JSON, KEY_TEXT if settings.key_converter is ConverterType.TEXT else key)


def registry_schema(
    topic: str,
    settings: FormatSpec,
    registry: RegistrySettings,
    wait: Callable[[float], bool],
    hide: Callable[[Iterable[str]], None],
    change: Callable[[Schema, str], Schema] | None = None,
    *,
    has_nulls: bool = False,
) -> Schema | None:
    """The newest schema of the values of `topic` in a registry, with the envelope; None if there is none. `wait` and
    `hide` as of `open_registry`, `change` as `transformed_by`, `has_nulls` as
    `with_envelope`. Raises ConfigurationError and TransientError."""
    client = open_registry(registry, wait, hide)
    try:
        found = client.latest(topic)
    finally:
        client.close()
    return None if found is None else _of_topic(found, topic, settings, change, has_nulls=has_nulls)


def _of_topic(
    registered: RegisteredSchema,
    topic: str,
    settings: FormatSpec,
    change: Callable[[Schema, str], Schema] | None,
    *,
    has_nulls: bool,
) -> Schema | None:
    value = _value(registered, settings, None, is_transformed=change is not None)
    return with_envelope(value if change is None else change(value, topic), settings, has_nulls=has_nulls)


class LedgerSchemaReader:
    """Reads the schemas of the newest objects and records from a ledger."""

    def __init__(self, sink: Sink, s3: S3Client) -> None:
        self._sink = sink
        self._s3 = s3
        self._root = ledger_root(s3, sink.spec.s3.topics_dir, sink.sink_id)
        self._state = Ledger(s3, self._root, "ddl").load()
        self._newest: dict[str, ClosedObject] | None = None
        self._has_nulls = sink.spec.errors.null_values() is not None
        self._tombstones = sink.object_settings().tombstone_path

    @property
    def topics(self) -> list[str]:
        """The topics of the ledger."""
        return sorted({name.rpartition("-")[0] for name in self._state.partitions})

    def schema(self, topic: str) -> Schema | None:
        """The schema of the records of `topic`, with the envelope; None if the ledger has none yet. Raises
        ConfigurationError and the errors of the store."""
        if self._sink.spec.format.output in (OutputFormat.AVRO, OutputFormat.PARQUET):
            newest = self._objects().get(topic)
            return None if newest is None else ObjectSchemas(self._s3, self._root).find(str(newest.schema))
        found = self._registered(topic)
        if found is None:
            return None
        settings, change = self._sink.spec.format, transformed_by(self._sink)
        return _of_topic(found, topic, settings, change, has_nulls=self._has_nulls)

    def _objects(self) -> dict[str, ClosedObject]:
        """The newest object with a schema of each topic. One of tombstones alone has no column of values: the others
        precede it."""
        if self._newest is None:
            self._newest = {}
            lines = Ledger(self._s3, self._root, "ddl").published(self._state)
            objects = [each.object for each in lines if each.object is not None]
            for o in sorted(
                [*objects, *self._state.pending.values()], key=lambda o: (o.path != self._tombstones, o.record, o.last)
            ):
                if o.path != DEAD_LETTERS and o.schema is not None:
                    self._newest[o.topic] = o
        return self._newest

    def _registered(self, topic: str) -> RegisteredSchema | None:
        """The newest version of the schemas of values that records have had."""
        folder = schemas_folder(schemas_root(self._root, self._state.generation), topic)
        found = []
        for each in self._s3.list(folder):
            name = each.key.removeprefix(folder)
            if name.startswith("key-") or name.endswith((".version.json", ".unknown.json")):
                continue
            entry = files.find(self._s3, each.key, SchemaEntry, expected_format=FORMAT)
            if entry is not None:
                found.append(entry.schema)
        return max(found, key=_age, default=None)


def _age(schema: RegisteredSchema) -> tuple[int, int]:
    return schema.version or 0, int(schema.id) if schema.id.isdigit() else 0
