"""The S3Sink: the one definition that the job, the operator, the CRD and the field reference share.

`load_sink` is the door: it reads a manifest and reports every mistake at once. The classes say what a manifest can
hold; what two fields mean together is in `rules`, what is not built yet in `built`.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, ValidationError

from sink_job.api import manifest, names
from sink_job.api.choices import (
    Compression,
    Converter,
    DeletionPolicy,
    ExecutorMode,
    IsolationLevel,
    OnDataLoss,
    OnNullValue,
    Output,
    PartitionerType,
    RotationScope,
    SchemaCompatibility,
    SchemaNamePosition,
    StartingOffsets,
    State,
    TimestampExtractor,
    Tolerance,
)
from sink_job.api.data_sections import (
    S3,
    Errors,
    Format,
    Kafka,
    Partitioner,
    PropertySecret,
    Rotation,
    Rounds,
    S3Names,
    SecretKey,
    SecretRef,
)
from sink_job.api.errors import SpecError
from sink_job.api.operator_sections import Driver, Executor, LocalRef, Offsets
from sink_job.api.section import Section, about
from sink_job.api.units import MANIFEST

__all__ = [
    "S3",
    "Compression",
    "Converter",
    "DeletionPolicy",
    "Driver",
    "Errors",
    "Executor",
    "ExecutorMode",
    "Format",
    "IsolationLevel",
    "Kafka",
    "OnDataLoss",
    "OnNullValue",
    "Output",
    "Partitioner",
    "PartitionerType",
    "PropertySecret",
    "Rotation",
    "RotationScope",
    "Rounds",
    "S3Names",
    "SchemaCompatibility",
    "SchemaNamePosition",
    "SecretKey",
    "SecretRef",
    "Shaping",
    "Sink",
    "Spec",
    "StartingOffsets",
    "State",
    "TimestampExtractor",
    "Tolerance",
    "load_sink",
]

GROUP: Final = "s3sink.io"
VERSION: Final = "v1alpha1"
KIND: Final = "S3Sink"


class Spec(Section):
    """What the user wants."""

    kafka: Kafka
    """Where records come from."""
    format: Format = Format()
    """How bytes of Kafka become bytes of objects."""
    partitioner: Partitioner = Partitioner()
    """Which S3 directory a record goes to."""
    rotation: Rotation = Rotation()
    """When objects are closed and become visible."""
    schema_compatibility: Annotated[SchemaCompatibility, about(key="schema.compatibility")] = SchemaCompatibility.NONE
    """When a record's schema differs from its object's: close it, or project the record."""
    s3: S3
    """Where objects go."""
    errors: Errors = Errors()
    """What happens to records that cannot be written."""
    rounds: Rounds = Rounds()
    """How much is read at once."""
    on_data_loss: OnDataLoss = OnDataLoss.FAIL
    """What to do when Kafka no longer holds records that are not in S3 yet: stop, or say so and go on behind
    them."""
    sink_id: Annotated[str | None, names.SinkId(), about(example="flights-archive")] = None
    """Name of the ledger under topicsDir. Without it: <namespace>.<name>."""
    state: State = State.RUNNING
    """Running; Paused: ended, what is open stays open; Stopped: ended, what is open is published first."""
    restart_nonce: Annotated[str | None, about(example="2025-11-03", max_length=63)] = None
    """Any new text restarts the sink."""
    offsets: Offsets = Offsets()
    """Requests about offsets."""
    deletion_policy: DeletionPolicy = DeletionPolicy.RETAIN
    """What happens to what is open when the S3Sink is deleted: it stays in S3, is published, or is discarded."""
    executor: Executor = Executor()
    """The processes that read, encode and upload."""
    driver: Driver = Driver()
    """The process that plans, records and publishes."""
    spark_conf: Annotated[
        dict[str, str], names.SparkConf(), about(example={"spark.executor.extraJavaOptions": "-XX:+UseParallelGC"})
    ] = Field(default_factory=dict)
    """Further properties of Spark. What the sink or its operator sets is refused by name."""
    image: Annotated[
        str | None, about(example="registry.example.com/s3sink-job:0.1.0", min_length=1, max_length=512)
    ] = None
    """Image of driver and executors. Without it: the operator's default."""
    image_pull_secrets: Annotated[list[LocalRef], about(example=[{"name": "registry-login"}])] = Field(
        default_factory=list
    )
    """Secrets to pull the image with."""


class Shaping(Section):
    """The settings that shape bytes and keys. The ledger keeps them beside the objects begun under them (P8)."""

    format: Format = Format()
    partitioner: Partitioner = Partitioner()
    rotation: Rotation = Rotation()
    s3: S3Names = S3Names()
    schema_compatibility: SchemaCompatibility = SchemaCompatibility.NONE


class Metadata(Section):
    """What names the sink. Everything else that Kubernetes keeps here is left alone."""

    model_config = ConfigDict(extra="ignore")

    name: Annotated[str, names.DnsLabel(), about(example="flights")]
    """Name of the sink."""
    namespace: Annotated[str, names.DnsLabel()] = "default"
    """Namespace of the sink."""


class Sink(Section):
    """A whole manifest."""

    api_version: Annotated[Literal["s3sink.io/v1alpha1"], about(example="s3sink.io/v1alpha1")]
    """Version of this format."""
    kind: Annotated[Literal["S3Sink"], about(example="S3Sink")]
    """Kind of this object."""
    metadata: Metadata
    """What names the sink."""
    spec: Spec
    """What the user wants."""
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

    def shaping(self) -> Shaping:
        """The settings that shape bytes and keys."""
        spec = self.spec
        return Shaping(
            format=spec.format,
            partitioner=spec.partitioner,
            rotation=spec.rotation,
            s3=S3Names(**{name: getattr(spec.s3, name) for name in S3Names.model_fields}),
            schema_compatibility=spec.schema_compatibility,
        )


def load_sink(text: str) -> Sink:
    """The S3Sink in the YAML `text`. Raises SpecError with every mistake at once."""
    try:
        return Sink.model_validate(manifest.read(text), context=MANIFEST, by_name=False, by_alias=True)
    except ValidationError as error:
        raise SpecError([f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]) from None
