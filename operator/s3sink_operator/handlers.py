"""Kopf's watches fill the store and the queue. Nothing else of Kopf is used: handlers of changes and timers would write
finalizers and annotations of their own into objects that Git owns.

Index handlers run for all that is there before any event handler runs, so nothing is decided on half of a list.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

import kopf
from kubernetes.aio.client import ApiClient

from s3sink_operator import names
from s3sink_operator.object_cache import ObjectCache, SinkKey, sink_of
from s3sink_operator.types import Json
from s3sink_operator.workqueue import PRIORITY, WorkQueue
from sink_job.api.spec import GROUP, VERSION

_CHILDREN: Final = (
    ("", "v1", "pods", "Pod"),
    ("", "v1", "configmaps", "ConfigMap"),
    ("", "v1", "serviceaccounts", "ServiceAccount"),
    ("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding"),
)
_WATCH_TIMEOUT_S = 70.0


def build_registry(
    client: ApiClient, store: ObjectCache, queue: WorkQueue[SinkKey], *, nodes: bool
) -> kopf.OperatorRegistry:
    """The handlers. `client` says who we are. `nodes`: also watch nodes, to tell a lost one, where the operator may."""
    found = kopf.OperatorRegistry()
    kopf.on.login(registry=found, id="login")(_login_as(client))
    watched = [(GROUP, VERSION, names.PLURAL, "S3Sink"), *_CHILDREN]
    if nodes:
        watched.append(("", "v1", "nodes", "Node"))
    for group, version, plural, kind in watched:
        kopf.index(group, version, plural, id=f"keep-{plural}", registry=found)(_index_handler(store, queue, kind))
        kopf.on.event(group, version, plural, id=f"see-{plural}", registry=found)(_event_handler(store, queue, kind))
    return found


def kopf_settings(selector: str | None) -> kopf.OperatorSettings:
    """Kopf without its own marks on objects; children are told by a label, at the server. `selector`: of S3Sinks."""
    found = kopf.OperatorSettings()
    found.posting.enabled = False
    found.peering.standalone = True
    found.watching.inactivity_timeout = _WATCH_TIMEOUT_S
    found.scanning.disabled = True  # the kinds are known, and nothing says that CRDs may be watched
    ours = f"{names.MANAGED_BY_LABEL}={names.FIELD_MANAGER}"
    executors = f"{names.SINK_LABEL}"
    for _, _, plural, _ in _CHILDREN:
        found.watching.label_selectors[plural] = executors if plural == "pods" else ours
    if selector:
        found.watching.label_selectors[names.PLURAL] = selector
    return found


def _login_as(client: ApiClient) -> Callable[..., Awaitable[kopf.ConnectionInfo]]:
    """As the client of our own calls; asked again when the API server does not take the token any more."""

    async def login(**_: Any) -> kopf.ConnectionInfo:
        config, headers = client.configuration, dict[str, str]()
        await client.update_params_for_auth(headers, [], ["BearerToken"], "/", "GET", None)
        scheme, _space, token = headers.get("authorization", "").partition(" ")
        return kopf.ConnectionInfo(
            server=config.host,
            ca_path=config.ssl_ca_cert,
            ca_data=config.ca_cert_data,
            insecure=not config.verify_ssl,
            scheme=scheme or None,
            token=token or None,
            certificate_path=config.cert_file,
            private_key_path=config.key_file,
            proxy_url=config.proxy,
        )

    return login


# Handlers are coroutines: Kopf calls plain functions in threads, which store and queue are not made for.
def _index_handler(store: ObjectCache, queue: WorkQueue[SinkKey], kind: str) -> Callable[..., Awaitable[None]]:
    """Comes first for each object of a list: what is there at the start is one look for each sink, and of a list that
    follows a break only what has changed meanwhile."""

    async def keep(body: kopf.Body, **_: Any) -> None:
        obj = _json(body, kind)
        meta = obj["metadata"]
        known = store.get(kind, meta.get("namespace", ""), meta["name"])
        sink = store.on_event(obj)
        if sink is not None and (known is None or known["metadata"]["resourceVersion"] != meta["resourceVersion"]):
            queue.add(sink)

    return keep


def _event_handler(store: ObjectCache, queue: WorkQueue[SinkKey], kind: str) -> Callable[..., Awaitable[None]]:
    generations: dict[SinkKey, int] = {}

    async def see(event: kopf.RawEvent, body: kopf.Body, **_: Any) -> None:
        obj = _json(body, kind)
        is_gone = event["type"] == "DELETED"
        sink = store.on_delete(obj) if is_gone else store.on_event(obj)
        if kind == "Node":
            for key in _with_pods_on(store, obj["metadata"]["name"]):
                store.bump(key)
                queue.add(key)
        if sink is None:
            return
        if event["type"] is not None:  # of a list: see _keeper
            # What became of a pod is told before more of them are made.
            queue.add(sink, PRIORITY if kind == "Pod" else 0.0)
        if kind == "S3Sink":
            before = generations.pop(sink, 0)
            if not is_gone:
                generations[sink] = obj["metadata"].get("generation", 0)
            if generations.get(sink) != before:
                for key in store.conflicted():  # they may run now
                    queue.add(key)

    return see


def _with_pods_on(store: ObjectCache, node: str) -> Iterator[SinkKey]:
    pods = (pod for pod in store.all("Pod") if pod.get("spec", {}).get("nodeName") == node)
    yield from {sink for sink in map(sink_of, pods) if sink}


def _json(body: kopf.Body, kind: str) -> Json:
    return {**body, "kind": kind}
