"""Validation rules that involve more than one field of a manifest.

Each rule yields field errors. A field error lists every path that it depends on. The parser drops an error that
depends on a value with an error of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from sink_job.api.enums import (
    ConverterType,
    DecimalFormat,
    ExecutorMode,
    LogicalTypes,
    OutputFormat,
    PartitionerType,
    ResetTo,
    ScalingMode,
    SchemaCompatibility,
    TimestampFormat,
)
from sink_job.api.field_errors import FieldError, Path, shown
from sink_job.api.rules.compressions import compression_errors
from sink_job.api.rules.dead_letter_rules import check_dead_letters
from sink_job.api.rules.envelope_rules import check_envelope
from sink_job.api.rules.json_values_rules import check_json_values, has_json_schema, transforms_json_schema
from sink_job.api.rules.login_rules import check_login
from sink_job.api.rules.names_rules import check_names
from sink_job.api.rules.null_value_rules import check_null_values
from sink_job.api.rules.reserved_properties import kafka_property_error, kafka_secret_error, spark_property_error
from sink_job.api.rules.s3_access_rules import check_s3_access
from sink_job.api.rules.schema_rules import check_schema
from sink_job.api.rules.skip_rules import check_skip
from sink_job.api.rules.tables_rules import check_tables
from sink_job.api.rules.transform_rules import check_transforms
from sink_job.api.sections.record_fields import check_record_fields
from sink_job.api.sections.registry_section import check_registry
from sink_job.api.units.quantities import format_duration, format_size
from sink_job.api.units.s3_limits import MAX_PARTS

if TYPE_CHECKING:
    from sink_job.api.spec import Spec


_KAFKA: Final = ("spec", "kafka")
_PARTITIONER: Final = ("spec", "partitioner")
_TYPE: Final = (*_PARTITIONER, "type")
_ROTATION: Final = ("spec", "rotation")
_S3: Final = ("spec", "s3")
_MEMORY: Final = ("spec", "executor", "memory")
_SCALING: Final = ("spec", "executor", "scaling")
_FORMAT: Final = ("spec", "format")
_SCHEMA: Final = (*_FORMAT, "schema")
_RESET: Final = ("spec", "offsets", "reset")


def check_cross_fields(spec: Spec) -> Iterator[FieldError]:
    """Every error in the combination of two or more fields of `spec`."""
    for rule in _RULES:
        yield from rule(spec)


def _topics(spec: Spec) -> Iterator[FieldError]:
    topics, pattern = (*_KAFKA, "topics"), (*_KAFKA, "topicsPattern")
    if spec.kafka.topics is None and spec.kafka.topics_pattern is None:
        yield FieldError(topics, "is missing: set topics or topicsPattern", (topics, pattern))
    if spec.kafka.topics is not None and spec.kafka.topics_pattern is not None:
        yield FieldError(pattern, "cannot be combined with topics: set only one of them", (topics,))
    for topic, count in Counter(spec.kafka.topics or ()).items():
        if count > 1:
            yield FieldError(topics, f"{topic} is listed {count} times")


def _kafka_properties(spec: Spec) -> Iterator[FieldError]:
    for name, value in spec.kafka.properties.items():
        error = kafka_property_error(name) or kafka_secret_error(name, value)
        if error:
            yield FieldError((*_KAFKA, "properties", name), error)
    secrets = [each.name for each in spec.kafka.property_secrets]
    for at, name in enumerate(secrets):
        here: Path = (*_KAFKA, "propertySecrets", at, "name")
        error = kafka_property_error(name)
        if error:
            yield FieldError(here, f"{name} {error}")
        elif name in spec.kafka.properties:
            yield FieldError(here, f"{name} is also set in spec.kafka.properties: set it in one place only")
        elif name in secrets[:at]:
            yield FieldError(here, f"{name} is listed twice")


def _spark_properties(spec: Spec) -> Iterator[FieldError]:
    for name in spec.spark_conf:
        error = spark_property_error(name)
        if error:
            yield FieldError(("spec", "sparkConf", name), error)


def _fields(spec: Spec) -> Iterator[FieldError]:
    kind, fields = spec.partitioner.type, spec.partitioner.fields
    here = (*_PARTITIONER, "fields")
    if kind.uses_fields and fields is None:
        yield FieldError(here, f"is missing: the type {kind} needs at least one field", (here, _TYPE))
    if not kind.uses_fields and fields is not None:
        yield FieldError(
            here, f"has no effect with the type {kind}: remove it, or use the type Field or FieldAndTime", (_TYPE,)
        )
    for field, count in Counter(fields or ()).items():
        if count > 1:
            yield FieldError(here, f"{field} is listed {count} times")


def _time_paths(spec: Spec) -> Iterator[FieldError]:
    kind, partitioner = spec.partitioner.type, spec.partitioner
    own = kind in (PartitionerType.TIME, PartitionerType.FIELD_AND_TIME)
    for name, value, example in (
        ("duration", partitioner.duration, "1h"),
        ("pathFormat", partitioner.path_format, "'year'=YYYY/'month'=MM/'day'=dd"),
    ):
        here = (*_PARTITIONER, name)
        if own and value is None:
            yield FieldError(here, f"is missing: the type {kind} needs it, for example {example}", (_TYPE,))
        elif not kind.uses_time and value is not None:
            yield FieldError(here, f"has no effect with the type {kind}: remove it, or use the type Time", (_TYPE,))
    yield from _fixed_by_type(spec)
    if kind.uses_time and partitioner.timezone is None:
        here = (*_PARTITIONER, "timezone")
        yield FieldError(here, f"is missing: the type {kind} needs it, for example UTC", (_TYPE,))


def _fixed_by_type(spec: Spec) -> Iterator[FieldError]:
    kind, partitioner = spec.partitioner.type, spec.partitioner
    fixed = kind.duration
    if fixed is None:
        return
    if partitioner.duration not in (None, fixed):
        here, written = (*_PARTITIONER, "duration"), format_duration(partitioner.duration or 0)
        message = (
            f"{written} is not allowed: the type {kind} always uses {format_duration(fixed)}; remove it, or use the "
            "type Time"
        )
        yield FieldError(here, message, (_TYPE,))
    delimiter = spec.s3.directory_delimiter
    if partitioner.path_format not in (None, kind.path_format("/"), kind.path_format(delimiter)):
        here, written = (*_PARTITIONER, "pathFormat"), str(partitioner.path_format)
        message = (
            f"{written} is not allowed: the type {kind} always uses {kind.path_format(delimiter)}; remove it, or use "
            "the type Time"
        )
        yield FieldError(here, message, (_TYPE,))


def _schemas(spec: Spec) -> Iterator[FieldError]:
    converter, registry = spec.format.converter, spec.format.registry
    here, of_converter = ("spec", "format", "registry"), ("spec", "format", "converter")
    of_key = ("spec", "format", "keyConverter")
    in_wire_format = converter if spec.format.bare_value_schema is None else None
    users = [each for each in (in_wire_format, spec.format.key_converter) if each is not None and each.needs_registry]
    if users and registry is None:
        other = "; bare values (without a schema id) have spec.format.schema" if users[0] is in_wire_format else ""
        message = f"is missing: the converter {users[0]} reads schemas from a registry{other}"
        yield FieldError(here, message, (of_converter, of_key, _SCHEMA))
    if registry is not None:
        if not users:
            why = f"with the converter {converter}: remove it, or use another converter"
            why = why if in_wire_format is not None else "with spec.format.schema: remove one of them"
            yield FieldError(here, f"has no effect {why}", (of_converter, of_key, _SCHEMA))
        yield from check_registry(registry, here)


def _schema_compatibility(spec: Spec) -> Iterator[FieldError]:
    compatibility, converter, output = spec.schema_compatibility, spec.format.converter, spec.format.output
    here, of_converter = ("spec", "schemaCompatibility"), ("spec", "format", "converter")
    if compatibility is SchemaCompatibility.NONE:
        return
    if has_json_schema(spec):
        return  # schema and inference have rules of their own
    if not converter.has_schemas:
        why = f"the records of the converter {converter} have no schema"
        yield FieldError(here, f"{compatibility} has no effect: {why}; remove it", (of_converter,))
    elif compatibility.projects and output is OutputFormat.BYTES:
        message = (
            f"{compatibility} cannot be used with the output {output}: it writes values as they came, under their own "
            "schemas; use None or Separate, or the output Json"
        )
        yield FieldError(here, message, (("spec", "format", "output"),))


_WITH_FORMS: Final = (ConverterType.AVRO, ConverterType.PROTOBUF, ConverterType.CONNECT_JSON)
_OUTPUT: Final[Path] = (*_FORMAT, "output")


def _forms_of_values(spec: Spec) -> Iterator[FieldError]:
    converter, output = spec.format.converter, spec.format.output
    depends = ((*_FORMAT, "converter"), _OUTPUT)
    for name, value, default in (
        ("decimals", spec.format.decimals, DecimalFormat.BASE64),
        ("timestamps", spec.format.timestamps, TimestampFormat.NUMBER),
    ):
        is_in_envelope = spec.format.envelope and name == "timestamps"  # that of the record
        has_forms = converter in _WITH_FORMS or transforms_json_schema(spec) or is_in_envelope
        if value is not default and not has_forms:
            message = (
                f"{value} has no effect with the converter {converter}: it applies to {', '.join(_WITH_FORMS)}"
                f"{', and to an envelope' if name == 'timestamps' else ''}; remove it"
            )
            yield FieldError((*_FORMAT, name), message, depends[:1])
        elif value is not default and output.has_datums:
            message = f"{value} has no effect with the output {output}, which has types for it: remove it"
            yield FieldError((*_FORMAT, name), message, depends[1:])


def _forms_of_data(spec: Spec) -> Iterator[FieldError]:
    """Settings of the outputs Avro and Parquet."""
    output, value = spec.format.output, spec.format.logical_types
    if value is not LogicalTypes.ALL and not output.has_datums:
        message = f"{value} has no effect with the output {output}: remove it, or use the output Avro or Parquet"
        yield FieldError((*_FORMAT, "logicalTypes"), message, (_OUTPUT,))


def _sections_of_outputs(spec: Spec) -> Iterator[FieldError]:
    """Each section of an output needs this output."""
    output = spec.format.output
    for name, section, of_output in (
        ("parquet", spec.format.parquet, OutputFormat.PARQUET),
        ("avro", spec.format.avro, OutputFormat.AVRO),
        ("bytes", spec.format.bytes, OutputFormat.BYTES),
    ):
        if section is not None and output is not of_output:
            message = f"has no effect with the output {output}: it applies to the output {of_output}; remove it"
            yield FieldError((*_FORMAT, name), message, (_OUTPUT,))
    filters = spec.format.parquet and spec.format.parquet.bloom_filters
    for field, count in Counter(filters or ()).items():
        if count > 1:
            yield FieldError((*_FORMAT, "parquet", "bloomFilters"), f"{field} is listed {count} times")


def _schemas_of_objects(spec: Spec) -> Iterator[FieldError]:
    """The outputs Avro and Parquet need records with schemas."""
    output, converter = spec.format.output, spec.format.converter
    if output.has_datums and not converter.has_schemas and not has_json_schema(spec):
        message = (
            f"{output} needs records with a schema, and those of the converter {converter} have none: use the "
            "converter Avro, Protobuf or JsonSchema with registry or schema, ConnectJson, or Json with schema or "
            "inference"
        )
        depends = tuple(("spec", "format", name) for name in ("converter", "schema", "inference"))
        yield FieldError(("spec", "format", "output"), message, depends)


def _rotation(spec: Spec) -> Iterator[FieldError]:
    rotation, kind = spec.rotation, spec.partitioner.type
    ends = {
        "flushSize": rotation.flush_size,
        "interval": rotation.interval,
        "scheduleInterval": rotation.schedule_interval,
        "maxBytes": rotation.max_bytes,
    }
    if all(value is None for value in ends.values()):
        also = " (maxOpenTime alone is not enough)" if rotation.max_open_time is not None else ""
        message = f"no setting closes objects: set at least one of {', '.join(ends)}{also}"
        yield FieldError(_ROTATION, message, tuple((*_ROTATION, name) for name in ends))
    if rotation.interval is not None and not kind.uses_time:
        message = (
            f"{format_duration(rotation.interval)} has no effect: the type {kind} of spec.partitioner does not use "
            "time; use scheduleInterval, or the type Time, Hourly, Daily or FieldAndTime"
        )
        yield FieldError((*_ROTATION, "interval"), message, (_TYPE,))
    if rotation.schedule_interval is not None and spec.partitioner.timezone is None and not kind.uses_time:
        message = (
            "is missing: spec.rotation.scheduleInterval counts from midnight in this time zone; set it, for example "
            "to UTC"
        )
        yield FieldError((*_PARTITIONER, "timezone"), message, (_TYPE, (*_ROTATION, "scheduleInterval")))


def _object_size(spec: Spec) -> Iterator[FieldError]:
    limit, part = spec.rotation.max_bytes, spec.s3.part_size
    if limit is not None and limit > MAX_PARTS * part:
        message = (
            f"{format_size(limit)} does not fit into S3's maximum of {MAX_PARTS} parts of {format_size(part)}: use "
            f"at most {format_size(MAX_PARTS * part)}, or increase spec.s3.partSize"
        )
        yield FieldError((*_ROTATION, "maxBytes"), message, ((*_S3, "partSize"),))


def _endpoint(spec: Spec) -> Iterator[FieldError]:
    endpoint = spec.s3.endpoint
    if endpoint is not None and not spec.s3.allows_http and endpoint.startswith("http://"):
        here = (*_S3, "endpoint")
        message = f"{shown(here, endpoint)} is not encrypted: use https://, or set spec.s3.insecure: true"
        yield FieldError(here, message, ((*_S3, "insecure"),))


def _delimiters(spec: Spec) -> Iterator[FieldError]:
    directory, file, topics_dir = spec.s3.directory_delimiter, spec.s3.file_delimiter, spec.s3.topics_dir
    here, other = (*_S3, "fileDelimiter"), (*_S3, "directoryDelimiter")
    if directory in file or file in directory:
        message = (
            f"{shown(here, file)} overlaps spec.s3.directoryDelimiter {shown(other, directory)}: neither may contain "
            "the other"
        )
        yield FieldError(here, message, (other,))
    if directory != "/" and (topics_dir.startswith(directory) or topics_dir.endswith(directory)):
        here = (*_S3, "topicsDir")
        message = f"{shown(here, topics_dir)} starts or ends with spec.s3.directoryDelimiter: remove it there"
        yield FieldError(here, message, (other,))


def _sizes(spec: Spec) -> Iterator[FieldError]:
    rounds, memory = spec.rounds, spec.executor.memory
    if rounds.min_bytes > rounds.max_bytes:
        here, other = ("spec", "rounds", "minBytes"), ("spec", "rounds", "maxBytes")
        message = f"{format_size(rounds.min_bytes)} is above spec.rounds.maxBytes, {format_size(rounds.max_bytes)}"
        yield FieldError(here, message, (other,))
    if memory.min > memory.max:
        message = f"{format_size(memory.min)} is above spec.executor.memory.max, {format_size(memory.max)}"
        yield FieldError((*_MEMORY, "min"), message, ((*_MEMORY, "max"),))


def _scaling(spec: Spec) -> Iterator[FieldError]:
    executor, scaling = spec.executor, spec.executor.scaling
    if scaling.min_instances > scaling.max_instances:
        here, other = (*_SCALING, "minInstances"), (*_SCALING, "maxInstances")
        yield FieldError(here, f"{scaling.min_instances} is above maxInstances, {scaling.max_instances}", (other,))
    if scaling.mode is not ScalingMode.AUTO:
        return
    if executor.mode is ExecutorMode.LOCAL:
        message = "Auto has no effect in Local mode, which has no executors: write Fixed, or executor.mode: Cluster"
        yield FieldError((*_SCALING, "mode"), message, (("spec", "executor", "mode"),))
    if executor.instances != 1:
        message = "has no effect with scaling.mode: Auto: remove it, or set scaling.minInstances and maxInstances"
        yield FieldError(("spec", "executor", "instances"), message, ((*_SCALING, "mode"),))


def _service_account(spec: Spec) -> Iterator[FieldError]:
    account = spec.service_account
    if account.name is not None and account.annotations:
        here, other = ("spec", "serviceAccount", "annotations"), ("spec", "serviceAccount", "name")
        yield FieldError(
            here, f"has no effect with name: {account.name}; annotate that service account, or remove name", (other,)
        )


def _offset_reset(spec: Spec) -> Iterator[FieldError]:
    reset = spec.offsets.reset
    if reset is None:
        return
    to = (*_RESET, "to")
    for name, value, needed_by in (
        ("timestamp", reset.timestamp, ResetTo.TIMESTAMP),
        ("partitions", reset.partitions, ResetTo.OFFSETS),
    ):
        here = (*_RESET, name)
        if reset.to is needed_by and value is None:
            yield FieldError(here, f"is missing: to: {needed_by} needs it", (to,))
        if reset.to is not needed_by and value is not None:
            yield FieldError(here, f"has no effect with to: {reset.to}; remove it, or set to: {needed_by}", (to,))
    counts = Counter((each.topic, each.partition) for each in reset.partitions or ())
    for (topic, partition), count in counts.items():
        if count > 1:
            yield FieldError((*_RESET, "partitions"), f"{topic}-{partition} is listed {count} times")


_RULES: Final[tuple[Callable[[Spec], Iterator[FieldError]], ...]] = (
    _topics,
    _kafka_properties,
    check_login,
    _fields,
    _time_paths,
    check_record_fields,
    _schemas,
    _schema_compatibility,
    check_schema,
    check_json_values,
    _forms_of_values,
    _schemas_of_objects,
    compression_errors,
    check_envelope,
    _forms_of_data,
    _sections_of_outputs,
    _rotation,
    _object_size,
    _endpoint,
    check_s3_access,
    check_names,
    _delimiters,
    check_dead_letters,
    check_null_values,
    check_skip,
    check_transforms,
    check_tables,
    _sizes,
    _scaling,
    _spark_properties,
    _service_account,
    _offset_reset,
)
