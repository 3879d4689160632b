"""The S3Sink: the one definition that the job, the operator, the CRD and the field reference share.

`load_sink` is the door: it reads a manifest and reports every mistake at once. The classes say what a manifest can
hold; what two fields mean together is in `rules`, what is not built yet in `built`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field

from sink_job.api import parser
from sink_job.api.base_model import SpecModel, description
from sink_job.api.enums import (
    CompressionCodec,
    ConverterType,
    DeletionPolicy,
    DesiredState,
    ExecutorMode,
    IsolationLevel,
    OnDataLoss,
    OnNullValue,
    OutputFormat,
    PartitionerType,
    RotationScope,
    SchemaCompatibility,
    SchemaNamePosition,
    StartingOffsets,
    TimestampExtractor,
    Tolerance,
)
from sink_job.api.field_types import RESERVED, DnsLabel, SinkId
from sink_job.api.job_sections import (
    ErrorsSpec,
    FormatSpec,
    KafkaSpec,
    KeySettings,
    PartitionerSpec,
    PropertySecret,
    RotationSpec,
    RoundsSpec,
    S3Spec,
    SecretKey,
    SecretRef,
)
from sink_job.api.operator_sections import DriverSpec, ExecutorSpec, LocalRef, OffsetsSpec, ServiceAccountSpec
from sink_job.api.reserved_properties import redacted

__all__ = [
    "CompressionCodec",
    "ConverterType",
    "DeletionPolicy",
    "DesiredState",
    "DriverSpec",
    "ErrorsSpec",
    "ExecutorMode",
    "ExecutorSpec",
    "FormatSpec",
    "IsolationLevel",
    "KafkaSpec",
    "KeySettings",
    "ObjectSettings",
    "OnDataLoss",
    "OnNullValue",
    "OutputFormat",
    "PartitionerSpec",
    "PartitionerType",
    "PropertySecret",
    "RotationScope",
    "RotationSpec",
    "RoundsSpec",
    "S3Spec",
    "SchemaCompatibility",
    "SchemaNamePosition",
    "SecretKey",
    "SecretRef",
    "Sink",
    "Spec",
    "StartingOffsets",
    "TimestampExtractor",
    "Tolerance",
    "load_sink",
    "parse_sink",
]

GROUP: Final = "s3sink.io"
VERSION: Final = "v1alpha1"
KIND: Final = "S3Sink"


class Spec(SpecModel):
    """Desired state of the sink."""

    kafka: KafkaSpec
    """Brokers of Kafka and topics to copy."""
    format: FormatSpec = FormatSpec()
    """Conversion of records to objects."""
    partitioner: PartitionerSpec = PartitionerSpec()
    """Path of a record below the prefix of its topic."""
    rotation: RotationSpec = RotationSpec()
    """When objects are closed and become visible."""
    schema_compatibility: Annotated[SchemaCompatibility, description(key="schema.compatibility")] = (
        SchemaCompatibility.NONE
    )
    """If the schema of a record differs from that of its object: close the object, or project the record."""
    s3: S3Spec
    """Bucket and S3 endpoint of the objects."""
    errors: ErrorsSpec = ErrorsSpec()
    """Handling of records that cannot be written."""
    rounds: RoundsSpec = RoundsSpec()
    """Size of a round."""
    on_data_loss: OnDataLoss = OnDataLoss.FAIL
    """If Kafka no longer holds records that are not in S3. Fail: stop. Continue: report the number of lost offsets and
    continue with the records that Kafka holds."""
    sink_id: Annotated[SinkId | None, description(example="flights-archive")] = None
    """Name of the ledger below topicsDir. Immutable. Default: <namespace>.<name>."""
    state: DesiredState = DesiredState.RUNNING
    """Desired state. Paused: no driver, open objects stay open. Stopped: no driver, open objects are published."""
    restart_nonce: Annotated[str | None, description(example="2025-11-03", max_length=63)] = None
    """Any new text restarts the driver."""
    offsets: OffsetsSpec = OffsetsSpec()
    """Offset resets."""
    deletion_policy: DeletionPolicy = DeletionPolicy.RETAIN
    """Handling of open objects when the S3Sink is deleted. Retain: they stay in S3. Publish: they become visible.
    Discard: they are removed."""
    executor: ExecutorSpec = ExecutorSpec()
    """Executors: the processes that read, encode and upload."""
    driver: DriverSpec = DriverSpec()
    """Driver: the process that plans rounds, writes the ledger and publishes objects."""
    spark_conf: Annotated[
        dict[str, str], description(example={"spark.executor.extraJavaOptions": "-XX:+UseParallelGC"}, max_length=200)
    ] = Field(default_factory=dict)
    """Further Spark properties. Properties that the sink or the operator sets are rejected."""
    service_account: ServiceAccountSpec = ServiceAccountSpec()
    """ServiceAccount of the pods: their identity in Kubernetes and in the cloud."""
    image: Annotated[
        str | None, description(example="registry.example.com/s3sink-job:0.1.0", min_length=1, max_length=512)
    ] = None
    """Image of driver and executors. Default: that of the operator."""
    image_pull_secrets: Annotated[list[LocalRef], description(example=[{"name": "registry-login"}], max_length=20)] = (
        Field(default_factory=list)
    )
    """Secrets to pull the image with."""

    def reads(self, topic: str) -> bool:
        """Whether this sink copies `topic`; with a pattern, never its own dead letters nor what would hide ledgers."""
        if self.kafka.topics is not None:
            return topic in self.kafka.topics
        if topic in (self.errors.dead_letter_topic, RESERVED):
            return False
        return re.fullmatch(self.kafka.topics_pattern or "", topic) is not None

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, redacted(value) if name == "spark_conf" else value


class ObjectSettings(SpecModel):
    """The settings that shape bytes and keys. The ledger keeps them beside the objects begun under them (P8)."""

    format: FormatSpec = FormatSpec()
    partitioner: PartitionerSpec = PartitionerSpec()
    rotation: RotationSpec = RotationSpec()
    s3: KeySettings = KeySettings()
    schema_compatibility: SchemaCompatibility = SchemaCompatibility.NONE


class Metadata(SpecModel):
    """What names the sink. Everything else that Kubernetes keeps here is left alone."""

    model_config = ConfigDict(extra="ignore")

    name: Annotated[DnsLabel, description(example="flights")]
    """Name of the sink."""
    namespace: DnsLabel = "default"
    """Namespace of the sink."""


class Sink(SpecModel):
    """A whole manifest."""

    api_version: Annotated[Literal["s3sink.io/v1alpha1"], description(example="s3sink.io/v1alpha1")]
    """Version of this format."""
    kind: Annotated[Literal["S3Sink"], description(example="S3Sink")]
    """Kind of this object."""
    metadata: Metadata
    """What names the sink."""
    spec: Spec
    """Desired state of the sink."""
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
        """What names this sink's ledger: `spec.sinkId`, or namespace and name, joined by a dot."""
        return self.spec.sink_id or f"{self.namespace}.{self.name}"

    @property
    def group_id(self) -> str:
        """The consumer group that shows the progress."""
        return self.spec.kafka.group_id or f"s3sink-{self.sink_id}"

    def shaping(self) -> ObjectSettings:
        """The settings that shape bytes and keys."""
        spec = self.spec
        return ObjectSettings(
            format=spec.format,
            partitioner=spec.partitioner,
            rotation=spec.rotation,
            s3=KeySettings(**{name: getattr(spec.s3, name) for name in KeySettings.model_fields}),
            schema_compatibility=spec.schema_compatibility,
        )

    def reason_not_to_run(self) -> str | None:
        """Why a manifest that is right should still not be run; None if it should."""
        if self.spec.state is not DesiredState.RUNNING:
            return f"spec.state is {self.spec.state}: write Running to run this sink"
        if self.spec.offsets.reset is not None:
            return "spec.offsets.reset asks for other offsets, which is done only while spec.state is Stopped"
        return None

    def redacted(self) -> dict[str, Any]:
        """The manifest for logs: every value that may be a secret is replaced, pod templates are left out."""
        document = self.model_dump(mode="json", exclude_none=True)
        spec = document["spec"]
        spec["kafka"]["properties"] = redacted(self.spec.kafka.properties)
        spec["sparkConf"] = redacted(self.spec.spark_conf)
        for process in ("driver", "executor"):
            spec[process].pop("podTemplate", None)
        return document


def load_sink(text: str, *, for_job: bool = True) -> Sink:
    """The S3Sink in the YAML `text`. Raises InvalidSpec with every mistake at once.

    `for_job`: also refuse, by name, what this version of the job cannot do yet.
    """
    return parser.load(text, Sink, for_job=for_job)


def parse_sink(document: object, *, for_job: bool = True) -> Sink:
    """`load_sink` for a manifest that is already plain data, as a Kubernetes client gives it."""
    return parser.parse(document, Sink, for_job=for_job)
