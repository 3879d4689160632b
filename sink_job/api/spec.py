"""The definition of an S3Sink for the job, the operator, the CRD and the field reference.

The classes define the fields. `parser` reads a manifest and reports all errors at once: `cross_field_rules` validates
combinations of fields, and `unsupported` lists features without an implementation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field

from sink_job.api.base_model import SpecModel, description
from sink_job.api.enums import (
    DeletionPolicy,
    DesiredState,
    OnDataLoss,
    SchemaCompatibility,
    SchemaInference,
)
from sink_job.api.field_types import RESERVED, DnsLabel, SinkId
from sink_job.api.rules.reserved_properties import redacted
from sink_job.api.sections.format_section import FormatSpec
from sink_job.api.sections.job_sections import (
    DeadLetterSettings,
    ErrorsSpec,
    KafkaSpec,
    KeySettings,
    NullValueSettings,
    PartitionerSpec,
    RotationSpec,
    RoundsSpec,
    S3Spec,
)
from sink_job.api.sections.operator_sections import DriverSpec, ExecutorSpec, LocalRef, OffsetsSpec, ServiceAccountSpec
from sink_job.api.sections.record_fields import needs_value
from sink_job.api.sections.registry_section import WireFormatSettings
from sink_job.api.sections.schema_section import BareValueSettings, bare_value_settings
from sink_job.api.sections.tables_section import MAX_TABLES, TableSpec
from sink_job.api.sections.transforms_section import MAX_TRANSFORMS, TransformSpec

GROUP: Final = "s3sink.io"
VERSION: Final = "v1alpha1"
KIND: Final = "S3Sink"

TOMBSTONE: Final = "tombstone"
"""Default path of records without a value (`errors.onNullValue: Write`), as with the connector."""


def ledger_folder(topics_dir: str, sink_id: str) -> str:
    """The folder of a sink's ledger, without a trailing `/`, after `S3Spec.ledger_front`. It does not depend on
    `directoryDelimiter`, which users may edit."""
    return f"{topics_dir}/{RESERVED}/{sink_id}" if topics_dir else f"{RESERVED}/{sink_id}"


class Spec(SpecModel):
    """The desired state of a sink."""

    kafka: KafkaSpec
    """The source topics and the connection to Kafka."""
    format: FormatSpec = FormatSpec()
    """How records are converted, encoded and compressed."""
    transforms: Annotated[
        list[TransformSpec],
        description(example=[{"type": "Drop", "fields": ["password"]}], max_length=MAX_TRANSFORMS),
    ] = Field(default_factory=list)
    """What is done to values, in this order, before paths and rotation."""
    partitioner: PartitionerSpec = PartitionerSpec()
    """How a record is assigned to a directory (path) in S3."""
    rotation: RotationSpec = RotationSpec()
    """When objects are closed and become visible."""
    schema_compatibility: Annotated[SchemaCompatibility, description(key="schema.compatibility")] = (
        SchemaCompatibility.NONE
    )
    """Handling of a record with another schema than the open object of its path. None: close the open objects.
    Separate: a path has one open object for each schema. Backward, Full: close for a newer version, project records of
    older ones to the object's schema. Forward: close for an older version, project records of newer ones."""
    s3: S3Spec
    """The bucket and the connection to S3."""
    tables: Annotated[
        list[TableSpec],
        description(
            example=[{"catalog": {"type": "Rest", "uri": "https://catalog.example.com"}, "name": "lake.{topic}"}],
            max_length=MAX_TABLES,
        ),
    ] = Field(default_factory=list)
    """Tables of Apache Iceberg over the objects, for the outputs Parquet and Avro, and partitions of tables of Hive's
    kind, for every output. The driver adds published objects to them, and so does s3sink register."""
    errors: ErrorsSpec = ErrorsSpec()
    """Handling of records that cannot be written."""
    rounds: RoundsSpec = RoundsSpec()
    """Size of the rounds (micro-batches)."""
    on_data_loss: OnDataLoss = OnDataLoss.FAIL
    """Handling of records that Kafka has deleted before they were in S3. Fail: stop. Continue: report the number of
    lost offsets and continue."""
    sink_id: Annotated[SinkId | None, description(example="flights-archive")] = None
    """Name of the ledger under topicsDir. Default: <namespace>.<name>."""
    state: DesiredState = DesiredState.RUNNING
    """Running: the driver runs. Paused: the driver is stopped, and open objects stay open. Stopped: open objects are
    published, and the driver is stopped."""
    restart_nonce: Annotated[str | None, description(example="2025-11-03", max_length=63)] = None
    """Any text. A new text restarts the sink."""
    offsets: OffsetsSpec = OffsetsSpec()
    """Requests to change the offsets of the sink."""
    deletion_policy: DeletionPolicy = DeletionPolicy.RETAIN
    """Handling of open objects when the S3Sink is deleted. Retain: keep their uploads and staged data. Publish: publish
    them. Discard: abort their uploads and delete their staged data."""
    executor: ExecutorSpec = ExecutorSpec()
    """The processes that read, encode and upload."""
    driver: DriverSpec = DriverSpec()
    """The process that plans, records and publishes."""
    spark_conf: Annotated[
        dict[str, str], description(example={"spark.executor.extraJavaOptions": "-XX:+UseParallelGC"}, max_length=200)
    ] = Field(default_factory=dict)
    """Additional Spark properties. Properties set by the sink or the operator are rejected."""
    service_account: ServiceAccountSpec = ServiceAccountSpec()
    """The service account of the sink's pods."""
    image: Annotated[
        str | None, description(example="registry.example.com/s3sink-job:0.1.0", min_length=1, max_length=512)
    ] = None
    """Container image of driver and executors. Default: the default image of the operator."""
    image_pull_secrets: Annotated[list[LocalRef], description(example=[{"name": "registry-login"}], max_length=20)] = (
        Field(default_factory=list)
    )
    """Secrets to pull the image."""

    def reads(self, topic: str) -> bool:
        """True if this sink copies `topic`. A pattern never matches the name of ledgers."""
        if self.kafka.topics is not None:
            return topic in self.kafka.topics
        if topic == RESERVED:
            return False
        return re.fullmatch(self.kafka.topics_pattern or "", topic) is not None

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, redacted(value) if name == "spark_conf" else value


class ObjectSettings(SpecModel):
    """The settings that determine bytes and keys of objects. The ledger stores them with each open object (P8).

    `wire_format` is the part of `format.registry` that does, and `bare_values` that of `format.schema` or
    `format.inference`. Both sections are None here: a change of the connection closes no object, and the ledger has the
    text of the schema once. In the ledger they are called `framing` and `unframed`.

    `dead_letters`: None if rejected records are in no object. `null_values`: None if records without a value are in no
    object.

    `library` is the library that determines the bytes, with its version, such as `zstd 1.5.7`. It is set in the
    settings of a claim only, by the driver process. None: the settings alone determine the bytes. `rules` are the
    libraries that decide which values are accepted and what their paths are, set in the same place: a rebuild with
    other ones may select other records. So is `customer_key`: what distinguishes the key of SSE-C from others; None:
    without one. An upload has one key.
    """

    format: FormatSpec = FormatSpec()
    partitioner: PartitionerSpec = PartitionerSpec()
    rotation: RotationSpec = RotationSpec()
    s3: KeySettings = KeySettings()
    schema_compatibility: SchemaCompatibility = SchemaCompatibility.NONE
    wire_format: Annotated[WireFormatSettings | None, Field(alias="framing")] = None
    bare_values: Annotated[BareValueSettings | None, Field(alias="unframed")] = None
    dead_letters: Annotated[DeadLetterSettings | None, Field(exclude_if=lambda value: value is None)] = None
    null_values: Annotated[NullValueSettings | None, Field(exclude_if=lambda value: value is None)] = None
    transforms: Annotated[tuple[TransformSpec, ...], Field(exclude_if=lambda value: not value)] = ()
    library: str | None = None
    rules: tuple[str, ...] = ()
    customer_key: Annotated[str | None, Field(exclude_if=lambda value: value is None)] = None

    @property
    def has_schemas(self) -> bool:
        """True if the values have schemas."""
        return self.format.converter.has_schemas or self.bare_values is not None

    @property
    def transforms_registered(self) -> bool:
        """True if transforms change values whose schemas are in a registry or in `bare_values`: the schemas that they
        make are in neither."""
        return any(each.reads_value for each in self.transforms) and self.format.converter.needs_registry

    @property
    def tombstone_path(self) -> str | None:
        """The path of all records without a value; None if they are not written, or have the path of other records."""
        if self.null_values is None:
            return None
        if self.null_values.tombstone_path is not None:
            return self.null_values.tombstone_path
        return TOMBSTONE if needs_value(self.partitioner) else None


class Metadata(SpecModel):
    """The name of the sink. All other metadata of Kubernetes is ignored."""

    model_config = ConfigDict(extra="ignore")

    name: Annotated[DnsLabel, description(example="flights")]
    """Name of the sink."""
    namespace: DnsLabel = "default"
    """Namespace of the sink."""


class Sink(SpecModel):
    """A manifest."""

    api_version: Annotated[Literal["s3sink.io/v1alpha1"], description(example="s3sink.io/v1alpha1")]
    """Version of this format."""
    kind: Annotated[Literal["S3Sink"], description(example="S3Sink")]
    """Kind of this object."""
    metadata: Metadata
    """Name and namespace of the sink."""
    spec: Spec
    """The desired state of the sink."""
    status: Annotated[dict[str, Any] | None, Field(exclude=True)] = None
    """Written by the operator; not read."""

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def sink_id(self) -> str:
        """The name of this sink's ledger: `spec.sinkId`, or `<namespace>.<name>`."""
        return self.spec.sink_id or f"{self.namespace}.{self.name}"

    @property
    def command_arguments(self) -> str:
        """The arguments of `kubectl s3sink` that name the sink."""
        return f"{self.name} -n {self.namespace}"

    @property
    def group_id(self) -> str:
        """The consumer group for committed offsets."""
        return self.spec.kafka.group_id or f"s3sink-{self.sink_id}"

    def object_settings(self) -> ObjectSettings:
        """The settings that determine bytes and keys of objects."""
        spec = self.spec
        return ObjectSettings(
            format=spec.format.model_copy(update={"registry": None, "bare_value_schema": None}),
            partitioner=spec.partitioner,
            rotation=spec.rotation,
            s3=KeySettings(**{name: getattr(spec.s3, name) for name in KeySettings.model_fields}),
            schema_compatibility=spec.schema_compatibility,
            dead_letters=spec.errors.object_settings(
                f"{spec.s3.ledger_front}{ledger_folder(spec.s3.topics_dir, self.sink_id)}"
            ),
            null_values=spec.errors.null_values(),
            transforms=tuple(spec.transforms),
            wire_format=None if spec.format.registry is None else spec.format.registry.wire_format(),
            bare_values=bare_value_settings(
                spec.format.converter,
                spec.format.bare_value_schema,
                infers=spec.format.inference is SchemaInference.ONCE,
            ),
        )

    def with_schema_text(self, text: str) -> Sink:
        """The sink with the text of the schema in its ConfigMap."""
        assert self.spec.format.bare_value_schema is not None
        schema = self.spec.format.bare_value_schema.model_copy(update={"text": text, "config_map": None, "key": None})
        settings = self.spec.format.model_copy(update={"bare_value_schema": schema})
        return self.model_copy(update={"spec": self.spec.model_copy(update={"format": settings})})

    def reason_not_to_run(self) -> str | None:
        """The reason why a valid manifest must not run; None if it may run."""
        if self.spec.state is not DesiredState.RUNNING:
            return f"spec.state is {self.spec.state}: set it to Running to run this sink"
        if self.spec.offsets.reset is not None:
            return "spec.offsets.reset is set: an offset reset runs only while spec.state is Stopped"
        return None

    def redacted(self) -> dict[str, Any]:
        """The manifest for logs, with placeholders for values that may be secrets and without pod templates."""
        document = self.model_dump(mode="json", exclude_none=True)
        spec = document["spec"]
        spec["kafka"]["properties"] = redacted(self.spec.kafka.properties)
        spec["sparkConf"] = redacted(self.spec.spark_conf)
        for process in ("driver", "executor"):
            spec[process].pop("podTemplate", None)
        return document
