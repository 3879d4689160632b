"""Finds out whether the owner that an OwnershipConflict names still exists in this cluster."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from s3sink_operator import names
from s3sink_operator.failures import pod_failures
from s3sink_operator.kube.kube_api import ApiError, KubeApi, ResponseTooLarge
from s3sink_operator.status.status_model import S3SinkStatus
from s3sink_operator.types import Json, ObservedOwner, OwnerState, to_ms
from sink_job.api.errors import OwnershipConflict
from sink_job.api.owner import OwnerIdentity

_MAX_PODS: Final = 200
"""Pods of an owner that are read. A driver may name any owner, and anyone can create pods with its label."""


@dataclass
class OwnerChecker:
    """Reads the S3Sink of an owner and its pods from the API server. `cluster_id`: of this cluster."""

    api: KubeApi
    cluster_id: str

    async def owner(self, sink: Json, pods: list[Json]) -> ObservedOwner | None:
        """The owner that a terminated pod of `sink` names, or else its status; None without an OwnershipConflict.

        Raises ApiError for transient errors, OSError or TimeoutError without an answer.
        """
        identity = _named_owner(sink, pods)
        if identity is None:
            return None
        try:
            owner = OwnerIdentity.parse(identity)
        except ValueError:
            return ObservedOwner(identity=identity, state=OwnerState.UNKNOWN)
        return ObservedOwner(identity=identity, state=await self._state(owner, sink))

    async def _state(self, owner: OwnerIdentity, sink: Json) -> OwnerState:
        if owner.cluster != self.cluster_id or not (_is_name(owner.namespace) and _is_name(owner.name)):
            return OwnerState.UNKNOWN
        try:
            found = await self.api.get("S3Sink", owner.namespace, owner.name)
            pods = await self.api.list("Pod", owner.namespace, names.selector(owner.name), most=_MAX_PODS)
        except ResponseTooLarge:
            return OwnerState.EXISTS
        except ApiError as error:
            if error.is_transient:
                raise
            return OwnerState.UNKNOWN  # another namespace than those of the operator
        if found is not None and _sink_id(found) == owner.sink_id:
            return OwnerState.EXISTS
        meta = sink["metadata"]
        if len(pods) == _MAX_PODS:
            return OwnerState.EXISTS
        if (owner.namespace, owner.name) == (meta.get("namespace"), meta.get("name")):  # re-created: its pods are older
            created = to_ms(meta.get("creationTimestamp")) or 0
            pods = [pod for pod in pods if (to_ms(pod["metadata"].get("creationTimestamp")) or 0) < created]
        return OwnerState.EXISTS if pods else OwnerState.GONE


def _named_owner(sink: Json, pods: list[Json]) -> str | None:
    for pod in pods:
        report = pod_failures.final_report(pod)
        if report is not None and report.failure is not None:
            return report.failure.owner if report.failure.reason == OwnershipConflict.reason else None
    retry = S3SinkStatus.read(dict(sink.get("status") or {})).retry
    return retry.owner if retry is not None and retry.reason == OwnershipConflict.reason else None


def _is_name(text: str) -> bool:
    """Whether this can be the name of an object. A driver, or what runs in its place, can write any other text, which
    would change the path of a request."""
    return len(text) <= 253 and re.fullmatch(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?", text) is not None and ".." not in text


def _sink_id(sink: Json) -> str:
    spec, meta = sink.get("spec"), sink["metadata"]
    chosen = spec.get("sinkId") if isinstance(spec, dict) else None
    return str(chosen or f"{meta.get('namespace')}.{meta.get('name')}")
