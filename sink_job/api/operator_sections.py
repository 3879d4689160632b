"""The sections of the manifest that are the operator's business: processes, their size, and requests about offsets.

The job reads them as far as a check needs it (`s3sink run` on a laptop takes the same manifest) and acts on none.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StrictInt

from sink_job.api.base_model import SpecModel, description
from sink_job.api.enums import ExecutorMode, MemoryMode, OnExisting, ResetTo
from sink_job.api.field_types import ObjectName, TopicName
from sink_job.api.quantities import GI, MI, Size

# Never printed: the environment of a container may hold secrets.
PodTemplate = Annotated[
    dict[str, Any] | None, Field(repr=False, json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})
]


class MemorySpec(SpecModel):
    """How the memory of executors is chosen."""

    mode: MemoryMode = MemoryMode.AUTO
    """Off: max is taken. Recommend: the status says what is needed. Auto: executors follow what is needed."""
    min: Annotated[int, Size(minimum=512 * MI)] = 512 * MI
    """Least memory of an executor, all of its processes together."""
    max: Annotated[int, Size(minimum=512 * MI)] = 8 * GI
    """Most memory of an executor, all of its processes together."""


class ExecutorSpec(SpecModel):
    """The processes that read, encode and upload."""

    mode: ExecutorMode = ExecutorMode.CLUSTER
    """Cluster: executors are pods of their own. Local: everything runs in the driver's pod, for small topics."""
    instances: Annotated[StrictInt, description(ge=1, le=10000)] = 1
    """Number of executor pods. In Local mode there are none, and this is not used."""
    cores: Annotated[StrictInt, description(ge=1, le=256)] = 1
    """Tasks that an executor runs at a time."""
    memory: MemorySpec = MemorySpec()
    """How the memory of executors is chosen."""
    pod_template: PodTemplate = None
    """Pod template of executors: node selectors, tolerations, volumes, labels and so on; of resources the CPU request
    of the container s3sink, which is a CPU a task otherwise."""


class DriverSpec(SpecModel):
    """The process that plans, records and publishes."""

    cores: Annotated[StrictInt, description(ge=1, le=256)] = 1
    """CPUs of the driver."""
    memory: Annotated[Annotated[int, Size(minimum=512 * MI)] | None, description(example="2Gi")] = None
    """Memory of the driver. Without it: by the number of topic-partitions."""
    pod_template: PodTemplate = None
    """Pod template of the driver and of requests: node selectors, tolerations, volumes, labels and so on; of resources
    the CPU request of the container s3sink, which is one CPU or more otherwise."""


class ServiceAccountSpec(SpecModel):
    """Who the sink's pods are, to Kubernetes and to the cloud."""

    name: Annotated[ObjectName | None, description(example="lake-writer")] = None
    """One that exists. Without it: <sink>-s3sink, which the operator makes."""
    annotations: Annotated[
        dict[str, str], description(example={"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/lake"}, max_length=50)
    ] = Field(default_factory=dict)
    """Annotations of the one that the operator makes: the cloud's role, for one."""


class LocalRef(SpecModel):
    """An object in the same namespace, by name."""

    name: Annotated[ObjectName, description(example="registry-login")]
    """Its name."""


class PartitionOffset(SpecModel):
    """Where to start in one topic-partition."""

    topic: Annotated[TopicName, description(example="flights")]
    """The topic."""
    partition: Annotated[StrictInt, description(example=0, ge=0, le=2**31 - 1)]
    """The partition."""
    offset: Annotated[StrictInt, description(example=180, ge=0, le=2**53 - 1)]
    """The first offset to copy."""


class OffsetResetSpec(SpecModel):
    """A request to start elsewhere. Carried out once for each nonce, and only while the sink is Stopped. What is open
    is published before; status.offsets says what came of it."""

    nonce: Annotated[str, description(example="2025-11-03", min_length=1, max_length=63)]
    """Any new text: each is carried out once."""
    to: Annotated[ResetTo, description(example="Earliest")]
    """Where to start: at the first record that Kafka holds, behind the last one, at a time, or at given offsets."""
    timestamp: Annotated[StrictInt | None, description(ge=0, le=2**53 - 1)] = None
    """With Timestamp: the first record at or after this time, in milliseconds since 1970. Not in the future."""
    partitions: Annotated[list[PartitionOffset] | None, description(min_length=1, max_length=10000)] = None
    """With Offsets: where to start in each topic-partition. Those that are not named go on where they are."""
    on_existing: OnExisting = OnExisting.FAIL
    """What happens where objects hold records at or above the new offsets. Fail: nothing is changed, and the first of
    them is named. NewPrefix: they stay, and what is copied from now on goes below topicsDir/generation=<n>/, n being 2
    after the first reset. Overwrite is not built yet: move the objects away and use Fail, or use NewPrefix."""


class OffsetsSpec(SpecModel):
    """Requests about the offsets of the sink."""

    reset: OffsetResetSpec | None = None
    """Start elsewhere."""
