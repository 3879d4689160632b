"""The types that the layers of the operator share: the observed state of one sink, and the decision about it.

All are immutable values. Kubernetes objects are JSON as the API server returns it. Times are milliseconds since the
epoch, sizes bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

from s3sink_operator import names
from s3sink_operator.config.sink_defaults import NO_DEFAULTS, SinkDefaults
from s3sink_operator.reasons import Reason
from sink_job.api.enums import DesiredState
from sink_job.api.report import Report
from sink_job.api.sections.job_sections import KeySettings
from sink_job.api.spec import GROUP, KIND, VERSION, Sink

Json = dict[str, Any]

MAX_ATTEMPT: Final = 10**15
"""A larger number in a label was not written by the operator."""
_LAST_S: Final = 253_402_300_799  # last second of the year 9999


@dataclass(frozen=True, kw_only=True)
class Unreachable:
    """A driver that did not answer. Its state is unknown, which is never a reason to delete it.

    `reason`: that of the condition Ready. `persistent`: several consecutive polls failed. `overdue`: so many that a
    driver that reported its end should have ended, too.
    """

    message: str
    persistent: bool = True
    overdue: bool = True
    reason: str = Reason.REPORT_UNREACHABLE


@dataclass(frozen=True, kw_only=True)
class SinkResources:
    """The resources that a sink owns exclusively. `observed_topics`: known topics that its pattern matches. `held` and
    `held_since`: the digest and the time in `status.claim`, empty without one. `dead_letters`: the directory of its
    dead-letter objects. `key_names`: with `s3.prefixes` or `topicInPath: false`."""

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
    held: str = ""
    held_since: str = ""
    dead_letters: str | None = None
    key_names: KeySettings | None = None

    @cached_property
    def digest(self) -> str:
        """A digest of the resources that the spec sets."""
        topics = None if self.topics is None else sorted(self.topics)
        place = [self.endpoint, self.bucket, self.topics_dir, self.sink_id]
        dead_letters = [] if self.dead_letters is None else [self.dead_letters]
        names = [] if self.key_names is None else [self.key_names.model_dump_json()]
        text = json.dumps([*place, topics, self.pattern, self.group, self.brokers, *dead_letters, *names])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def place(self) -> tuple[str | None, str, str]:
        """Where the objects are: endpoint, bucket and directory."""
        return self.endpoint, self.bucket, self.topics_dir

    @property
    def known_topics(self) -> Sequence[str]:
        """The topics of the spec, or those that its pattern was observed to match."""
        return self.topics if self.topics is not None else self.observed_topics


FINALIZERS_KIND = "S3Sink/finalizers"
"""The kind of rejections of a sink's finalizers. Those of its status have the kind `S3Sink`."""

REPLACEMENT_KIND = "Pod/replacement"
"""The kind of rejections of a driver pod that would replace a running one."""


@dataclass(frozen=True, kw_only=True)
class Rejection:
    """A write that the API server rejected. `status`: HTTP status; `message`: of the API server."""

    kind: str
    name: str
    status: int
    reason: str
    message: str
    at_ms: int


class OwnerState(StrEnum):
    """Whether the owner that an OwnershipConflict names still exists."""

    GONE = "Gone"
    """An S3Sink of this cluster that does not exist any more, and has no pods."""
    EXISTS = "Exists"
    """An S3Sink of this cluster that exists, or whose pods still do."""
    UNKNOWN = "Unknown"
    """An owner of another cluster, or in a namespace that the operator may not read."""


@dataclass(frozen=True, kw_only=True)
class ObservedOwner:
    """The owner that the last OwnershipConflict names. `identity`: cluster/namespace/name/sinkId."""

    identity: str
    state: OwnerState


@dataclass(frozen=True, kw_only=True)
class PodEvent:
    """The last event of a pod that does not start, if it is a warning."""

    pod: str
    reason: str
    message: str


@dataclass(frozen=True, kw_only=True)
class ParsedSpec:
    """The parsed spec of a sink, with the defaults of the operator. `sink` is None if the spec is invalid, for the
    reason in `error`. `reason`: the reason of the conditions then. `written`: the sink without these defaults, None if
    it is the same."""

    sink: Sink | None
    error: str = ""
    reason: str = Reason.INVALID_SPEC
    written: Sink | None = None


@dataclass(frozen=True, kw_only=True)
class ParsedReset:
    """The parsed reset request of the annotation: the sink with the request in its spec, or an `error`."""

    nonce: str | None = None
    sink: Sink | None = None
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class RolloutGate:
    """Whether the rollout of new operator defaults may restart the driver of this sink now.

    `halted_by`: the sinks and reasons that halt the rollout; None while it is not halted.
    """

    is_open: bool = True
    halted_by: str | None = None


@dataclass(frozen=True, kw_only=True)
class Observed:
    """One sink and all objects that belong to it, in one reconcile pass.

    `reset`: the request in the annotation, None without the annotation. `skip_error`: why the skip annotation is
    ignored; empty if it is not. `report`: None without a driver to ask.
    `competitors`: resources of other sinks that may overlap. `compares_topics`: whether its topics are compared with
    those of others; False if its namespace has too many. `namespace_terminating`: the namespace is being deleted; only
    observed with deletionPolicy Publish, when the driver ends. `nodes`: whether each node is ready, None if it is gone.
    `is_retry`: the last pass did not complete its writes.
    """

    sink: Json
    spec: ParsedSpec
    reset: ParsedReset | None = None
    skip_error: str = ""
    config_map: Json | None = None
    service_account: Json | None = None
    role_binding: Json | None = None
    driver: Json | None = None
    operation: Json | None = None
    executors: Sequence[Json] = ()
    report: Report | Unreachable | None = None
    competitors: Sequence[SinkResources] = ()
    compares_topics: bool = True
    rejections: Sequence[Rejection] = ()
    namespace_terminating: bool = False
    nodes: Mapping[str, bool | None] = field(default_factory=dict)
    owner: ObservedOwner | None = None
    pod_event: PodEvent | None = None
    rollout: RolloutGate = RolloutGate()
    is_retry: bool = False


@dataclass(frozen=True, kw_only=True)
class Delete:
    """An object to delete if it still has this uid. `grace_s`: grace period in s, None for that of the pod."""

    kind: str
    name: str
    uid: str
    grace_s: int | None = None


@dataclass(frozen=True, kw_only=True)
class Resize:
    """An in-place change of the memory request and limit of a container, in bytes."""

    pod: str
    uid: str
    container: str
    memory: int


@dataclass(frozen=True, kw_only=True)
class Replacement:
    """A pod that replaces a running one of its name. `growth`: bytes of memory that it has more than that."""

    pod: Json
    growth: int


class EventType(StrEnum):
    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, kw_only=True)
class Event:
    """A Kubernetes event about the sink."""

    type: EventType
    reason: str
    message: str


@dataclass(frozen=True, kw_only=True)
class ObjectWrites:
    """The writes of one reconcile pass besides the status and events.

    `finalizers`: of the sink; None leaves them unchanged. `replacement`: a pod that the API server has to accept before
    the first write, if the running one is deleted for it. `starts_rollout`: the rollout of new operator defaults
    restarts this driver.
    """

    apply: Sequence[Json] = ()
    create: Sequence[Json] = ()
    delete: Sequence[Delete] = ()
    resize: Sequence[Resize] = ()
    finalizers: Sequence[str] | None = None
    replacement: Replacement | None = None
    starts_rollout: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing is written."""
        return not any((self.apply, self.create, self.delete, self.resize)) and self.finalizers is None


NO_WRITES: Final = ObjectWrites()


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The writes of one reconcile pass, in this order: added finalizers, status, applies, deletes, resizes, creates,
    events, removed finalizers. The status precedes the changes that it explains, so a deletion never loses its reason.
    Each write may be the last one: the next pass continues from there.

    `status`: None leaves it unchanged. `requeue_after_ms`: the next pass at the latest.
    """

    writes: ObjectWrites = NO_WRITES
    status: Json | None = None
    events: Sequence[Event] = ()
    requeue_after_ms: int | None = None

    @property
    def has_writes(self) -> bool:
        """Whether the decision has writes."""
        return not self.writes.is_empty or bool(self.events) or self.status is not None


class FailureCategory(StrEnum):
    """Category of a failure: who can resolve it."""

    USER = "User"
    """The user: settings, credentials, data. Retried, since the cause may be fixed outside of the cluster."""
    INFRASTRUCTURE = "Infrastructure"
    """No action required: nodes, network, memory. Retried."""
    SCHEDULING = "Scheduling"
    """The cluster administrator: capacity, quota, admission. Retried by Kubernetes or the operator."""


class Operation(StrEnum):
    """The operation that an operation pod runs."""

    PUBLISH = "Publish"
    DISCARD = "Discard"
    RESET = "Reset"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of the operator. Fields in `_ms` are durations in milliseconds.

    `node_lost_timeout_ms`: after this time a pod on a lost node, or one that stays terminating, is deleted by force.
    `deletion_timeout_ms`: how long deletionPolicy may hold a deleted sink. `operation_timeout_ms`: after this time an
    operation pod is terminated and retried. `start_timeout_ms`: after this time a pending driver is reported.
    `progress_interval_ms`: minimum time between two writes of progress alone. `status_poll_ms`, `start_poll_ms`: how
    often a running and a starting driver are polled. `rejected_retry_ms`: when a rejected write is retried.
    `resize_timeout_ms`: how long a node may defer a resize before the pod is replaced. `shrink_after_ms`: how
    long less memory has to suffice before it is decreased in place. `rollout_pause_ms`: how long a driver restarted by
    a rollout must be Ready before it counts as available. `version`: of the operator. `supports_resize`: the API server
    has pods/resize. `run_as_user`: uid and gid of the sinks' pods; None lets the cluster assign them, as OpenShift
    does. `spill_size`: size limit of the volume for spilled data. `report_salt`: random text of this process, from
    which it derives the tokens of reports.
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
    status_poll_ms: int = 3_000
    start_poll_ms: int = 2_000
    rejected_retry_ms: int = 60_000
    resize_timeout_ms: int = 5 * 60_000
    shrink_after_ms: int = 10 * 60_000
    rollout_pause_ms: int = 0
    version: str = ""
    spill_size: str = "20Gi"
    sink_defaults: SinkDefaults = NO_DEFAULTS
    report_salt: str = field(default="", repr=False)
    supports_resize: bool = False
    image_pull_policy: str = "IfNotPresent"
    run_as_user: int | None = 10001


def to_ms(stamp: str | None) -> int | None:
    """Milliseconds since the epoch of a Kubernetes timestamp; None for no or invalid text."""
    if not stamp:
        return None
    try:
        return int(datetime.fromisoformat(stamp).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def to_timestamp(ms: int) -> str:
    """The Kubernetes timestamp of a time in ms, in whole seconds, clamped to the years 1970 to 9999."""
    return datetime.fromtimestamp(min(max(ms // 1000, 0), _LAST_S), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def without_managed_fields(obj: Json) -> Json:
    """The object without the record of its field managers, which is half of its size and which no decision needs."""
    meta = obj["metadata"]
    if "managedFields" not in meta:
        return obj
    return {**obj, "metadata": {name: value for name, value in meta.items() if name != "managedFields"}}


def is_controlled(obj: Json, uid: str) -> bool:
    """Whether the controller of the object has this uid."""
    owners = obj.get("metadata", {}).get("ownerReferences") or ()
    return any(owner.get("controller") and owner.get("uid") == uid for owner in owners)


def owner_reference(sink: Json) -> Json:
    """The owner reference of all children of a sink. `sink`: its object."""
    name = str(sink["metadata"]["name"])
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "name": name, "uid": uid_of(sink), "controller": True}


def uid_of(obj: Json) -> str:
    return str(obj["metadata"].get("uid", ""))


def is_terminating(obj: Json) -> bool:
    """Whether the object is deleted and still exists."""
    return "deletionTimestamp" in obj.get("metadata", {})


def annotation(obj: Json, name: str) -> str | None:
    found = (obj.get("metadata", {}).get("annotations") or {}).get(name)
    return None if found is None else str(found)


def one_line(text: str) -> str:
    """The text in one line, with escapes for characters that are not printable: anyone may have written it, and it is
    read on a terminal."""
    line = " ".join(text.split())
    if line.isprintable():
        return line
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in line)


def sanitize_reason(reason: str) -> str:
    """A reason as the CustomResourceDefinition allows it: some come from pods, which may send any text."""
    return re.sub(r"^[^A-Za-z]+|[^A-Za-z0-9_]", "", reason)[:128] or "Unknown"


def desired_state(sink: Json) -> tuple[DesiredState, str]:
    """The desired state and its source: the annotation, or else the spec. An invalid value counts as Running."""
    requested = annotation(sink, names.STATE_ANNOTATION)
    if requested in list(DesiredState):
        return DesiredState(requested), f"the annotation {names.STATE_ANNOTATION}"
    spec = sink.get("spec")
    written = spec.get("state", DesiredState.RUNNING.value) if isinstance(spec, dict) else DesiredState.RUNNING.value
    return DesiredState(written) if written in list(DesiredState) else DesiredState.RUNNING, "spec.state"


def label(obj: Json, name: str) -> str | None:
    found = (obj.get("metadata", {}).get("labels") or {}).get(name)
    return None if found is None else str(found)


def attempt_number(pod: Json, name: str) -> int:
    """The attempt number in a label of the pod; 0 without a valid number."""
    text = label(pod, name) or ""
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(MAX_ATTEMPT)) else 0
    return number if number <= MAX_ATTEMPT else 0
