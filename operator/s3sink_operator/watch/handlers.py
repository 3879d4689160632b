"""The watches of Kopf fill the object cache and the work queue. Nothing else of Kopf is used: its change handlers and
timers would write finalizers and annotations into objects that Git owns.

Index handlers run for all existing objects before any event handler runs, so no decision is based on a partial list.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final

import kopf
from kubernetes.aio.client import ApiClient

from s3sink_operator import names
from s3sink_operator.kube.kube_session import proxy_url_of
from s3sink_operator.types import Json
from s3sink_operator.watch.kopf_storage import NoDiffBaseStorage, NoProgressStorage
from s3sink_operator.watch.object_cache import ObjectCache, SinkKey, sink_of
from s3sink_operator.watch.workqueue import PRIORITY, WorkQueue
from sink_job.api.spec import GROUP, VERSION

_CHILDREN: Final = (
    ("", "v1", "pods", "Pod"),
    ("", "v1", "configmaps", "ConfigMap"),
    ("", "v1", "serviceaccounts", "ServiceAccount"),
    ("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding"),
)
_WATCH_TIMEOUT_S = 70.0
_LISTED_AT_ONCE: Final = 50
"""Objects of one response to a list. Each has up to 1.5 MB, whoever created it, and needs more when parsed."""
_RELEASED: Final = "s3sink.io/released"
"""A mark in the metadata of an object of Kopf whose content is in the cache."""


def build_registry(
    client: ApiClient, store: ObjectCache, queue: WorkQueue[SinkKey], *, nodes: bool
) -> kopf.OperatorRegistry:
    """The handlers. `client`: credentials. `nodes`: whether to watch nodes, which detects lost ones."""
    found = kopf.OperatorRegistry()

    def is_starting(**_: Any) -> bool:
        return not store.listed

    kopf.on.login(registry=found, id="login")(login_as(client))
    watched = [(GROUP, VERSION, names.PLURAL, "S3Sink"), *_CHILDREN]
    if nodes:
        watched.append(("", "v1", "nodes", "Node"))
    for group, version, plural, kind in watched:
        index = kopf.index(group, version, plural, id=f"index-{plural}", registry=found, when=is_starting)
        index(index_handler(store, queue, kind))
        kopf.on.event(group, version, plural, id=f"event-{plural}", registry=found)(event_handler(store, queue, kind))
    return found


def kopf_settings(selector: str | None) -> kopf.OperatorSettings:
    """The settings of Kopf, without marks on objects; children are selected by label. `selector`: of S3Sinks."""
    found = kopf.OperatorSettings()
    found.posting.enabled = False
    found.persistence.diffbase_storage = NoDiffBaseStorage()
    found.persistence.progress_storage = NoProgressStorage()
    found.peering.standalone = True
    found.watching.inactivity_timeout = _WATCH_TIMEOUT_S
    found.watching.chunk_size = _LISTED_AT_ONCE
    found.scanning.disabled = True  # the kinds are known, and the operator may not watch CRDs
    ours = f"{names.MANAGED_BY_LABEL}={names.FIELD_MANAGER}"
    executors = f"{names.SINK_LABEL}"
    for _, _, plural, _ in _CHILDREN:
        found.watching.label_selectors[plural] = executors if plural == "pods" else ours
    if selector:
        found.watching.label_selectors[names.PLURAL] = selector
    return found


def login_as(client: ApiClient) -> Callable[..., Awaitable[kopf.ConnectionInfo]]:
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
            proxy_url=proxy_url_of(config),
        )

    return login


# Handlers are coroutines: Kopf calls plain functions in threads, and cache and queue are not thread-safe.
def index_handler(store: ObjectCache, queue: WorkQueue[SinkKey], kind: str) -> Callable[..., Awaitable[None]]:
    """Handles each object of the first lists, before the events of these lists."""

    async def index(body: kopf.Body, **_: Any) -> None:
        _put(store, queue, {**body, "kind": kind})
        _release(body)

    return index


def event_handler(store: ObjectCache, queue: WorkQueue[SinkKey], kind: str) -> Callable[..., Awaitable[None]]:
    generations: dict[SinkKey, int] = {}

    async def on_event(event: kopf.RawEvent, **_: Any) -> None:
        store.listed = True  # Kopf calls event handlers when all indexes are complete
        obj: Json = {**event["object"], "kind": kind}
        is_gone = event["type"] == "DELETED"
        if _RELEASED in obj["metadata"]:  # an index handler had it
            sink = sink_of(obj)
        elif event["type"] is None:  # of a list
            sink = _put(store, queue, obj)
        else:
            sink = store.on_delete(obj) if is_gone else store.on_event(obj)
            if sink is not None:
                # The state of existing pods is reported before new ones are created.
                queue.add(sink, PRIORITY if kind == "Pod" else 0.0)
        if kind == "Node":
            for key in _with_pods_on(store, obj["metadata"]["name"]):
                store.bump(key)
                queue.add(key)
        if kind == "S3Sink" and sink is not None:
            before = generations.pop(sink, 0)
            if not is_gone:
                generations[sink] = obj["metadata"].get("generation", 0)
            if generations.get(sink) != before:
                for key in store.conflicted(sink.namespace):  # the conflict may be resolved
                    queue.add(key)
        _release(event["object"])

    return on_event


def _put(store: ObjectCache, queue: WorkQueue[SinkKey], obj: Json) -> SinkKey | None:
    """Caches an object of a list, and queues its sink if it is changed: at the start one pass for each sink, after an
    interruption only for changed objects."""
    meta = obj["metadata"]
    known = store.get(obj["kind"], meta.get("namespace", ""), meta["name"])
    sink = store.on_event(obj)
    if sink is not None and (known is None or known["metadata"]["resourceVersion"] != meta["resourceVersion"]):
        queue.add(sink)
    return sink


def _release(body: Mapping[str, Any]) -> None:
    """Empties an object of Kopf, which keeps each listed one until all lists are complete, and each other one for some
    seconds. The cache has a copy."""
    for name, content in body.items():
        if name == "metadata":
            content[_RELEASED] = True
            content.pop("managedFields", None)
            content.pop("annotations", None)
        elif isinstance(content, dict | list):
            content.clear()


def _with_pods_on(store: ObjectCache, node: str) -> Iterator[SinkKey]:
    pods = (pod for pod in store.all("Pod") if pod.get("spec", {}).get("nodeName") == node)
    yield from {sink for sink in map(sink_of, pods) if sink}
