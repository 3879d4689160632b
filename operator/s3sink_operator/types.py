"""The words that the operator's floors share: what was seen of one sink, and what is to be done about it.

Everything is a value. Kubernetes objects are plain JSON as the API server gives them; times are milliseconds since the
epoch, sizes bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from s3sink_operator import names
from sink_job.api.enums import State
from sink_job.api.report import Report

Json = dict[str, Any]

MAX_ATTEMPT: Final = 10**15
"""A label with a larger number is not the operator's."""
_LAST_S: Final = 253_402_300_799  # the last second of the year 9999


@dataclass(frozen=True, kw_only=True)
class Unreachable:
    """A driver that did not answer: its state is unknown, which is never a reason to end it. `lasts`: it has not
    answered several times in a row."""

    message: str
    persistent: bool = True


@dataclass(frozen=True, kw_only=True)
class SinkResources:
    """What a sink takes for itself. `seen` are topics that it copies by a pattern, as far as they are known."""

    namespace: str
    name: str
    creation_time: str
    bucket: str
    topics_dir: str
    topics: Sequence[str] | None
    pattern: str | None = None
    group: str
    sink_id: str
    endpoint: str | None = None
    brokers: str = ""
    observed_topics: Sequence[str] = ()

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"


FINALIZERS_KIND = "S3Sink/finalizers"
"""The kind of refusals of a sink's finalizers; `S3Sink` is its status."""


@dataclass(frozen=True, kw_only=True)
class Rejection:
    """What the API server refused last time, with its own words. `status` is the HTTP status."""

    kind: str
    name: str
    status: int
    reason: str
    message: str
    at_ms: int


@dataclass(frozen=True, kw_only=True)
class PodEvent:
    """The last event of a pod of this name that does not start, which is a warning."""

    pod: str
    reason: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Observed:
    """One sink and all that belongs to it, at one look."""

    sink: Json
    config_map: Json | None = None
    service_account: Json | None = None
    role_binding: Json | None = None
    driver: Json | None = None
    operation: Json | None = None
    executors: Sequence[Json] = ()
    report: Report | Unreachable | None = None
    competitors: Sequence[SinkResources] = ()
    rejections: Sequence[Rejection] = ()
    nodes: Mapping[str, bool | None] = field(default_factory=dict)
    pod_event: PodEvent | None = None


@dataclass(frozen=True, kw_only=True)
class Delete:
    """An object to delete, if it still has this uid. `grace_s`: None is the pod's own, 0 is without waiting for it."""

    kind: str
    name: str
    uid: str
    grace_s: int | None = None


@dataclass(frozen=True, kw_only=True)
class Resize:
    """A container's memory to change in place: request and limit, in bytes."""

    pod: str
    uid: str
    container: str
    memory: int


class EventType(StrEnum):
    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, kw_only=True)
class Event:
    """An event about the sink."""

    type: EventType
    reason: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What to do, in this order: finalizers that are new, status, applies, deletes, resizes, creates, events, and last
    of all the finalizers that are to go. The status comes before what it explains, so that a deletion is never left
    without its reason; each of the writes may be the last one: the next look goes on from there.
    """

    apply: Sequence[Json] = ()
    create: Sequence[Json] = ()
    delete: Sequence[Delete] = ()
    resize: Sequence[Resize] = ()
    finalizers: Sequence[str] | None = None
    status: Json | None = None
    events: Sequence[Event] = ()
    requeue_after_ms: int | None = None

    @property
    def has_writes(self) -> bool:
        """Whether anything is to be written."""
        return self.changes_objects or bool(self.events) or self.status is not None

    @property
    def changes_objects(self) -> bool:
        """Whether anything but status and events is to be written."""
        return any((self.apply, self.create, self.delete, self.resize)) or self.finalizers is not None


class FailureCategory(StrEnum):
    """Who can do something about a failure."""

    USER = "User"
    """A person: settings, credentials, data. Tried again all the same, for what is mended elsewhere."""
    INFRASTRUCTURE = "Infrastructure"
    """Nobody: nodes, network, memory. It is tried again."""
    SCHEDULING = "Scheduling"
    """The cluster: room, quota, admission. What Kubernetes itself keeps trying is left to it."""


class Operation(StrEnum):
    """What a task pod is for."""

    PUBLISH = "Publish"
    DISCARD = "Discard"
    RESET = "Reset"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the operator was started with.

    `node_lost_ms`: how long a pod on a lost node, or one that does not end, is left before it is deleted by force.
    `poll_ms`: how soon a driver that starts is asked again, `watch_ms`: one that runs, of which progress alone is told
    after `progress_ms`; `refused_ms`: how soon a refused write is tried again;
    `resize_ms`: how long a node may put off a change of memory before the driver is restarted for it.
    `started_ms`, `rollout_ms`: when the operator began, and over how long from then on it restarts drivers that have
    another image of its own. `deletion_ms`: how long deletionPolicy may hold a deleted sink. `task_ms`: how long
    a request's pod may run before it is ended and tried again. `resize`: whether the API
    server offers pods/resize. `user`: the uid and gid of sinks' pods; None leaves them to the cluster, which assigns
    its own on OpenShift. `requests`: what the job's image carries out in a task pod.
    """

    image: str
    cluster_id: str
    driver_cluster_role: str = "s3sink-driver"
    report_port: int = 8042
    termination_grace_s: int = 60
    node_lost_timeout_ms: int = 5 * 60_000
    deletion_timeout_ms: int = 10 * 60_000
    operation_timeout_ms: int = 6 * 3_600_000
    start_timeout_ms: int = 5 * 60_000
    progress_interval_ms: int = 30_000
    status_poll_ms: int = 4_000
    start_poll_ms: int = 2_000
    rejected_retry_ms: int = 60_000
    resize_timeout_ms: int = 5 * 60_000
    start_time_ms: int = 0
    rollout_ms: int = 0
    ephemeral_storage: str = "20Gi"
    supports_resize: bool = False
    image_pull_policy: str = "IfNotPresent"
    run_as_user: int | None = 10001
    requests: frozenset[Operation] = frozenset(Operation)


def to_ms(stamp: str | None) -> int | None:
    """Milliseconds of one of Kubernetes' times; None for none, and for what is no time."""
    if not stamp:
        return None
    try:
        return int(datetime.fromisoformat(stamp).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def to_timestamp(ms: int) -> str:
    """A time as Kubernetes writes it, in whole seconds; what lies outside of 1970 to 9999 is told as its edge."""
    return datetime.fromtimestamp(min(max(ms // 1000, 0), _LAST_S), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_controlled(obj: Json, uid: str) -> bool:
    """Whether the object's controller has this uid."""
    owners = obj.get("metadata", {}).get("ownerReferences") or ()
    return any(owner.get("controller") and owner.get("uid") == uid for owner in owners)


def uid_of(obj: Json) -> str:
    return str(obj["metadata"].get("uid", ""))


def is_terminating(obj: Json) -> bool:
    """Whether somebody has deleted the object, and it is still there."""
    return "deletionTimestamp" in obj.get("metadata", {})


def annotation(obj: Json, name: str) -> str | None:
    found = (obj.get("metadata", {}).get("annotations") or {}).get(name)
    return None if found is None else str(found)


def desired_state(sink: Json) -> tuple[State, str]:
    """The state that is wanted, and what says so: the annotation, else the spec. What is no state says Running."""
    asked = annotation(sink, names.STATE_ANNOTATION)
    if asked in list(State):
        return State(asked), f"the annotation {names.STATE_ANNOTATION}"
    spec = sink.get("spec")
    written = spec.get("state", State.RUNNING.value) if isinstance(spec, dict) else State.RUNNING.value
    return State(written) if written in list(State) else State.RUNNING, "spec.state"


def label(obj: Json, name: str) -> str | None:
    found = (obj.get("metadata", {}).get("labels") or {}).get(name)
    return None if found is None else str(found)


def attempt_number(pod: Json, name: str) -> int:
    """The number in the pod's label; 0 where there is none that can be read."""
    text = label(pod, name) or ""
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(MAX_ATTEMPT)) else 0
    return number if number <= MAX_ATTEMPT else 0
