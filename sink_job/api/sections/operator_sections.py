"""The sections of a manifest for the operator: processes, their resources, and offset requests.

The job validates these sections, because `s3sink run` accepts the same manifest, but does not act on them.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field, StrictInt

from sink_job.api.base_model import SpecModel, description
from sink_job.api.enums import ExecutorMode, MemoryMode, OnExisting, ResetTo, ScalingMode
from sink_job.api.field_types import ObjectName, TopicName
from sink_job.api.units.quantities import GI, MI, Size
from sink_job.api.units.timestamps import Timestamp

# Never printed: the environment of a container may contain secrets.
PodTemplate = Annotated[
    dict[str, Any] | None, Field(repr=False, json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})
]

MIN_EXECUTOR_MEMORY: Final = 512 * MI
"""Smallest memory of an executor and of a driver, in bytes."""
MAX_INSTANCES: Final = 10_000
"""Most executors of a sink."""
MAX_CORES: Final = 256
"""Most cores of an executor and of a driver."""

ExecutorMemory = Annotated[int, Size(minimum=MIN_EXECUTOR_MEMORY)]
"""Memory of an executor in bytes."""


class MemorySpec(SpecModel):
    """Memory sizing of executors."""

    mode: Annotated[MemoryMode, description(operator_default=True)] = MemoryMode.AUTO
    """Disabled: executors get max. Recommend: executors keep their initial memory, within min and max, and the status
    shows the recommended memory. Auto: the operator resizes executors to the recommended memory."""
    min: Annotated[ExecutorMemory, description(operator_default=True)] = MIN_EXECUTOR_MEMORY
    """Minimum memory of an executor, for all of its processes together."""
    max: Annotated[ExecutorMemory, description(operator_default=True)] = 8 * GI
    """Maximum memory of an executor, for all of its processes together."""


class ScalingSpec(SpecModel):
    """Number of executors over activity."""

    mode: ScalingMode = ScalingMode.FIXED
    """Fixed: instances is the number of executors. Auto: the operator changes the number with the active
    topic-partitions, without a restart; instances must be omitted. Auto is rejected in Local mode, which has no
    executors."""
    min_instances: Annotated[StrictInt, description(ge=1, le=MAX_INSTANCES)] = 1
    """With Auto: minimum number of executors."""
    max_instances: Annotated[StrictInt, description(ge=1, le=MAX_INSTANCES)] = 8
    """With Auto: maximum number of executors."""
    partitions_per_task: Annotated[StrictInt, description(ge=1, le=1000)] = 8
    """With Auto: number of active topic-partitions for each concurrent task. An executor is added when there are more:
    with 2 cores and 8, for 17 active topic-partitions."""


class ExecutorSpec(SpecModel):
    """The processes that read, encode and upload."""

    mode: ExecutorMode = ExecutorMode.CLUSTER
    """Cluster: executors run in their own pods. Local: everything runs in the driver pod, for small topics."""
    instances: Annotated[StrictInt, description(ge=1, le=MAX_INSTANCES)] = 1
    """Number of executor pods. Has no effect in Local mode. Omit it with scaling.mode: Auto."""
    scaling: ScalingSpec = ScalingSpec()
    """Number of executors over activity."""
    cores: Annotated[StrictInt, description(ge=1, le=MAX_CORES, operator_default=True)] = 1
    """Number of concurrent tasks of an executor."""
    memory: MemorySpec = MemorySpec()
    """Memory sizing of executors."""
    pod_template: PodTemplate = None
    """Pod template of executors. Memory is set by the operator. Default of the CPU request of the container s3sink: one
    CPU for each concurrent task. Volume of spilled data: spark-local-dir-tmp."""


class DriverSpec(SpecModel):
    """The process that plans, records and publishes."""

    cores: Annotated[StrictInt, description(ge=1, le=MAX_CORES, operator_default=True)] = 1
    """CPUs of the driver."""
    memory: Annotated[ExecutorMemory | None, description(example="2Gi")] = None
    """Memory of the driver. Default: computed from the number of topic-partitions."""
    pod_template: PodTemplate = None
    """Pod template of the driver and of operation pods. Memory is set by the operator. Default of the CPU request of
    the container s3sink: at least one CPU. Volume of spilled data: tmp."""


class ServiceAccountSpec(SpecModel):
    """The service account of the sink's pods."""

    name: Annotated[ObjectName | None, description(example="lake-writer")] = None
    """Name of an existing service account. Default: the operator creates <sink>-s3sink."""
    annotations: Annotated[
        dict[str, str], description(example={"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/lake"}, max_length=50)
    ] = Field(default_factory=dict)
    """Annotations of the service account that the operator creates, for example the IAM role."""


class LocalRef(SpecModel):
    """A reference to an object in the same namespace."""

    name: Annotated[ObjectName, description(example="registry-login")]
    """Name of the object."""


class PartitionOffset(SpecModel):
    """The start offset of one topic-partition."""

    topic: Annotated[TopicName, description(example="flights")]
    """The topic."""
    partition: Annotated[StrictInt, description(example=0, ge=0, le=2**31 - 1)]
    """The partition."""
    offset: Annotated[StrictInt, description(example=180, ge=0, le=2**53 - 1)]
    """The first offset to copy."""


class OffsetResetSpec(SpecModel):
    """A request to reset offsets. The operator runs it once for each nonce, and only while the sink is Stopped. Open
    objects are published first. The status shows the result."""

    nonce: Annotated[str, description(example="2025-11-03", min_length=1, max_length=63)]
    """Any text. A new text requests a new reset."""
    to: Annotated[ResetTo, description(example="Earliest")]
    """New start position: the first record in Kafka, the end of the log, a timestamp, or given offsets."""
    timestamp: Annotated[Annotated[int, Timestamp()] | None, description(example="2025-11-03T10:00:00Z")] = None
    """With Timestamp: start at the first record at or after this time, such as 2025-11-03T10:00:00Z, or milliseconds
    since 1970-01-01 UTC. Must not be in the future."""
    partitions: Annotated[list[PartitionOffset] | None, description(min_length=1, max_length=10000)] = None
    """With Offsets: the start offset of each topic-partition. Others continue at their current position."""
    on_existing: OnExisting = OnExisting.FAIL
    """Handling of existing objects with records at or above the new offsets. Fail: change nothing and report the first.
    NewPrefix: keep them and write new objects below topicsDir/generation=<n>/, from 2 on."""


class OffsetsSpec(SpecModel):
    """Requests to change the offsets of the sink."""

    reset: OffsetResetSpec | None = None
    """Request to reset the offsets."""
