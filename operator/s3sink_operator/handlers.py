"""The watches of Kopf fill the object cache and the work queue. Nothing else of Kopf is used: its change handlers and
timers would write finalizers and annotations into objects that Git owns.

Index handlers run for all existing objects before any event handler runs, so no decision is based on a partial list.
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
    """The handlers. `client`: credentials. `nodes`: whether to watch nodes, which detects lost ones."""
    found = kopf.OperatorRegistry()
    kopf.on.login(registry=found, id="login")(_login_as(client))
    watched = [(GROUP, VERSION, names.PLURAL, "S3Sink"), *_CHILDREN]
    if nodes:
        watched.append(("", "v1", "nodes", "Node"))
    for group, version, plural, kind in watched:
        kopf.index(group, version, plural, id=f"index-{plural}", registry=found)(_index_handler(store, queue, kind))
        kopf.on.event(group, version, plural, id=f"event-{plural}", registry=found)(_event_handler(store, queue, kind))
    return found


def kopf_settings(selector: str | None) -> kopf.OperatorSettings:
    """The settings of Kopf, without marks on objects; children are selected by label. `selector`: of S3Sinks."""
    found = kopf.OperatorSettings()
    found.posting.enabled = False
    found.peering.standalone = True
    found.watching.inactivity_timeout = _WATCH_TIMEOUT_S
    found.scanning.disabled = True  # the kinds are known, and the operator may not watch CRDs
    ours = f"{names.MANAGED_BY_LABEL}={names.FIELD_MANAGER}"
    executors = f"{names.SINK_LABEL}"
    for _, _, plural, _ in _CHILDREN:
        found.watching.label_selectors[plural] = executors if plural == "pods" else ours
    if selector:
        found.watching.label_selectors[names.PLURAL] = selector
    return found


def _login_as(client: ApiClient) -> Callable[..., Awaitable[kopf.ConnectionInfo]]:
    """The credentials of the operator's client. Called again when the API server rejects the token."""

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


# Handlers are coroutines: Kopf calls plain functions in threads, and cache and queue are not thread-safe.
def _index_handler(store: ObjectCache, queue: WorkQueue[SinkKey], kind: str) -> Callable[..., Awaitable[None]]:
    """Handles each object of a list before the events: at the start one pass for each sink, after an interruption only
    for changed objects."""

    async def index(body: kopf.Body, **_: Any) -> None:
        obj = _json(body, kind)
        meta = obj["metadata"]
        known = store.get(kind, meta.get("namespace", ""), meta["name"])
        sink = store.on_event(obj)
        if sink is not None and (known is None or known["metadata"]["resourceVersion"] != meta["resourceVersion"]):
            queue.add(sink)

    return index


def _event_handler(store: ObjectCache, queue: WorkQueue[SinkKey], kind: str) -> Callable[..., Awaitable[None]]:
    generations: dict[SinkKey, int] = {}

    async def on_event(event: kopf.RawEvent, body: kopf.Body, **_: Any) -> None:
        store.listed = True  # Kopf calls event handlers when all indexes are complete
        obj = _json(body, kind)
        is_gone = event["type"] == "DELETED"
        sink = store.on_delete(obj) if is_gone else store.on_event(obj)
        if kind == "Node":
            for key in _with_pods_on(store, obj["metadata"]["name"]):
                store.bump(key)
                queue.add(key)
        if sink is None:
            return
        if event["type"] is not None:  # of a list: see _index_handler
            # The state of existing pods is reported before new ones are created.
            queue.add(sink, PRIORITY if kind == "Pod" else 0.0)
        if kind == "S3Sink":
            before = generations.pop(sink, 0)
            if not is_gone:
                generations[sink] = obj["metadata"].get("generation", 0)
            if generations.get(sink) != before:
                for key in store.conflicted():  # the conflict may be resolved
                    queue.add(key)

    return on_event


def _with_pods_on(store: ObjectCache, node: str) -> Iterator[SinkKey]:
    pods = (pod for pod in store.all("Pod") if pod.get("spec", {}).get("nodeName") == node)
    yield from {sink for sink in map(sink_of, pods) if sink}


def _json(body: kopf.Body, kind: str) -> Json:
    return {**body, "kind": kind}
