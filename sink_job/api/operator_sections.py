"""The sections of the manifest for the operator: pods, their sizes, and offset resets.

The job validates them, since `s3sink run` accepts the same manifest, and ignores them otherwise.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StrictInt

from sink_job.api.base_model import SpecModel, description
from sink_job.api.enums import ExecutorMode, MemoryMode, OnExisting, ResetTo
from sink_job.api.field_types import ObjectName, TopicName
from sink_job.api.quantities import GI, MI, Size

# Never printed: the environment of a container may contain secrets.
PodTemplate = Annotated[
    dict[str, Any] | None, Field(repr=False, json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})
]


class MemorySpec(SpecModel):
    """Memory of executors."""

    mode: MemoryMode = MemoryMode.AUTO
    """Off: use max. Recommend: show the recommended memory in the status. Auto: apply the recommended memory."""
    min: Annotated[int, Size(minimum=512 * MI)] = 512 * MI
    """Minimum memory of an executor, including all of its processes."""
    max: Annotated[int, Size(minimum=512 * MI)] = 8 * GI
    """Maximum memory of an executor, including all of its processes."""


class ExecutorSpec(SpecModel):
    """Executors: the processes that read, encode and upload."""

    mode: ExecutorMode = ExecutorMode.CLUSTER
    """Cluster: executors are separate pods. Local: everything runs in the driver pod, for small topics."""
    instances: Annotated[StrictInt, description(ge=1, le=10000)] = 1
    """Number of executor pods. Ignored in Local mode."""
    cores: Annotated[StrictInt, description(ge=1, le=256)] = 1
    """Number of tasks that an executor runs at a time."""
    memory: MemorySpec = MemorySpec()
    """Memory of executors."""
    pod_template: PodTemplate = None
    """Pod template of executors, for node selectors, tolerations, volumes, labels and so on. Of the resources only the
    CPU request of the container s3sink is used; its default is one CPU for each task."""


class DriverSpec(SpecModel):
    """Driver: the process that plans rounds, writes the ledger and publishes objects."""

    cores: Annotated[StrictInt, description(ge=1, le=256)] = 1
    """Number of CPUs of the driver."""
    memory: Annotated[Annotated[int, Size(minimum=512 * MI)] | None, description(example="2Gi")] = None
    """Memory of the driver. Default: chosen by the number of topic-partitions."""
    pod_template: PodTemplate = None
    """Pod template of driver and operation pods, for node selectors, tolerations, volumes, labels and so on. Of the
    resources only the CPU request of the container s3sink is used."""


class ServiceAccountSpec(SpecModel):
    """ServiceAccount of the pods: their identity in Kubernetes and in the cloud."""

    name: Annotated[ObjectName | None, description(example="lake-writer")] = None
    """Name of an existing ServiceAccount. Default: <sink>-s3sink, created by the operator."""
    annotations: Annotated[
        dict[str, str], description(example={"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/lake"}, max_length=50)
    ] = Field(default_factory=dict)
    """Annotations of the ServiceAccount that the operator creates, such as the role in the cloud."""


class LocalRef(SpecModel):
    """Reference to an object in the same namespace."""

    name: Annotated[ObjectName, description(example="registry-login")]
    """Name of the object."""


class PartitionOffset(SpecModel):
    """Start offset of one topic-partition."""

    topic: Annotated[TopicName, description(example="flights")]
    """Topic."""
    partition: Annotated[StrictInt, description(example=0, ge=0, le=2**31 - 1)]
    """Partition."""
    offset: Annotated[StrictInt, description(example=180, ge=0, le=2**53 - 1)]
    """First offset to copy."""


class OffsetResetSpec(SpecModel):
    """Request to start from other offsets. Carried out once for each nonce, while the sink is Stopped and after open
    objects are published. status.offsetReset has the result."""

    nonce: Annotated[str, description(example="2025-11-03", min_length=1, max_length=63)]
    """Identifies the request. Each nonce is carried out once."""
    to: Annotated[ResetTo, description(example="Earliest")]
    """Start position: the first available record, the end of the log, a timestamp, or explicit offsets."""
    timestamp: Annotated[StrictInt | None, description(ge=0, le=2**53 - 1)] = None
    """With Timestamp: the first record at or after this time, in milliseconds since 1970. Not in the future."""
    partitions: Annotated[list[PartitionOffset] | None, description(min_length=1, max_length=10000)] = None
    """With Offsets: the start offset of each topic-partition. Topic-partitions without one continue unchanged."""
    on_existing: OnExisting = OnExisting.FAIL
    """If objects hold records at or above the new offsets. Fail: change nothing and report the first of them.
    NewPrefix: keep them and write new objects below topicsDir/generation=<n>/, where n is 2 after the first reset."""


class OffsetsSpec(SpecModel):
    """Offsets of the sink."""

    reset: OffsetResetSpec | None = None
    """Request to start from other offsets."""
