"""Kopf's watches fill the store and the queue. Nothing else of Kopf is used: handlers of changes and timers would write
finalizers and annotations of their own into objects that Git owns.

Index handlers run for all that is there before any event handler runs, so nothing is decided on half of a list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import kopf

from s3sink_operator import names
from s3sink_operator.model import Json
from s3sink_operator.store import SinkKey, Store
from s3sink_operator.workqueue import WorkQueue
from sink_job.api.spec import GROUP, VERSION

_CHILDREN: Final = (
    ("", "v1", "pods", "Pod"),
    ("", "v1", "configmaps", "ConfigMap"),
    ("", "v1", "serviceaccounts", "ServiceAccount"),
    ("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding"),
)
_DEAD_WATCH_S = 70.0


def registry(store: Store, queue: WorkQueue[SinkKey], *, nodes: bool) -> kopf.OperatorRegistry:
    """The handlers. `nodes`: also watch nodes, to tell a lost one, where the operator may."""
    found = kopf.OperatorRegistry()
    watched = [(GROUP, VERSION, names.PLURAL, "S3Sink"), *_CHILDREN]
    if nodes:
        watched.append(("", "v1", "nodes", "Node"))
    for group, version, plural, kind in watched:
        kopf.index(group, version, plural, id=f"keep-{plural}", registry=found)(_keeper(store, kind))
        kopf.on.event(group, version, plural, id=f"see-{plural}", registry=found)(_seer(store, queue, kind))
    return found


def settings(selector: str | None) -> kopf.OperatorSettings:
    """Kopf without its own marks on objects; children are told by a label, at the server. `selector`: of S3Sinks."""
    found = kopf.OperatorSettings()
    found.posting.enabled = False
    found.peering.standalone = True
    found.watching.inactivity_timeout = _DEAD_WATCH_S
    ours = f"{names.MANAGED_BY}={names.FIELD_MANAGER}"
    executors = f"{names.SINK}"
    for _, _, plural, _ in _CHILDREN:
        found.watching.label_selectors[plural] = executors if plural == "pods" else ours
    if selector:
        found.watching.label_selectors[names.PLURAL] = selector
    return found


def _keeper(store: Store, kind: str) -> Callable[..., None]:
    def keep(body: kopf.Body, **_: Any) -> None:
        store.put(_json(body, kind))

    return keep


def _seer(store: Store, queue: WorkQueue[SinkKey], kind: str) -> Callable[..., None]:
    def see(event: kopf.RawEvent, body: kopf.Body, **_: Any) -> None:
        obj = _json(body, kind)
        sink = store.drop(obj) if event["type"] == "DELETED" else store.put(obj)
        for key in _concerned(store, obj, sink):
            queue.add(key)

    return see


def _concerned(store: Store, obj: Json, sink: SinkKey | None) -> Sequence[SinkKey]:
    """The sink of the object; of a node, those that have a pod there."""
    if obj["kind"] != "Node":
        return [sink] if sink else []
    name = obj["metadata"]["name"]
    pods = (pod for pod in store.all("Pod") if pod.get("spec", {}).get("nodeName") == name)
    labels = ((pod["metadata"]["namespace"], pod["metadata"].get("labels") or {}) for pod in pods)
    return sorted({SinkKey(namespace, each[names.SINK]) for namespace, each in labels if names.SINK in each})


def _json(body: kopf.Body, kind: str) -> Json:
    return {**body, "kind": kind}
