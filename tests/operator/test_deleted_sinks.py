"""Nothing stays of sinks, and of names of sinks in labels, that do not exist any more: anyone can create and delete
them for days."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from s3sink_operator.apply.applier import DecisionApplier
from s3sink_operator.observe.observer import Observer
from s3sink_operator.observe.owner_check import OwnerChecker
from s3sink_operator.observe.pod_events import PodEventReader
from s3sink_operator.observe.template_check import TemplateChecker
from s3sink_operator.reconcile import Reconciler
from s3sink_operator.rollout.rollout_tracker import RolloutTracker
from s3sink_operator.rollout.sink_rollout import MaxUnavailable
from s3sink_operator.types import Json
from s3sink_operator.watch.object_cache import ObjectCache, SinkKey
from tests.operator.fake_cluster import SETTINGS, START, document

NONE = cast("Any", None)


class NothingExists:
    """An API server without objects."""

    async def get(self, kind: str, namespace: str, name: str) -> Json | None:
        return None


def reconciler() -> Reconciler:
    store = ObjectCache()
    api = cast("Any", NothingExists())
    templates, owners = TemplateChecker(api, SETTINGS), OwnerChecker(api, "c1")
    observer = Observer(api, store, NONE, PodEventReader(api), templates, owners)
    rollout = RolloutTracker("", MaxUnavailable(value=1), store, lambda: START)
    return Reconciler(observer, DecisionApplier(api, store, lambda: START), SETTINGS, lambda: START, rollout)


def entries(node: object, depth: int = 3) -> int:
    """The entries of all mappings and sets below an object."""
    inner = list(getattr(node, "__dict__", {}).values()) if depth else []
    own = len(node) if isinstance(node, dict | set) else 0
    return own + sum(entries(each, depth - 1) for each in inner)


def labelled(name: str) -> Json:
    meta = {"namespace": "data", "name": name, "uid": name, "resourceVersion": "1", "labels": {"s3sink.io/sink": name}}
    return {"kind": "ConfigMap", "metadata": meta}


async def create_and_delete(running: Reconciler, obj: Json) -> None:
    cache, key = running.observer.cache, SinkKey("data", obj["metadata"]["name"])
    cache.on_event(obj)
    cache.on_delete(obj)
    assert await running.reconcile(key) is None
    assert running.rollout.due() == []


def test_nothing_stays_of_objects_with_names_of_sinks_that_do_not_exist() -> None:
    running = reconciler()

    async def passes(first: int, last: int) -> int:
        for number in range(first, last):
            obj = labelled(f"sink-{number}")
            obj["metadata"]["uid"] = "same"
            await create_and_delete(running, obj)
        return entries(running)

    assert asyncio.run(passes(0, 1)) == asyncio.run(passes(1, 50))


def test_nothing_stays_of_deleted_sinks_but_a_limited_number_of_uids() -> None:
    running = reconciler()

    async def passes(first: int, last: int) -> int:
        for number in range(first, last):
            sink = document(f"sink-{number}", uid="same")
            sink["metadata"]["resourceVersion"] = str(number)
            await create_and_delete(running, sink)
        return entries(running)

    assert asyncio.run(passes(0, 1)) == asyncio.run(passes(1, 50))


def test_the_version_of_a_sink_that_was_forgotten_is_not_that_of_its_successor() -> None:
    store, key = ObjectCache(), SinkKey("data", "one")
    store.on_event(labelled("one"))
    before = store.version(key)
    store.on_delete(labelled("one"))
    store.forget(key)
    assert store.version(key) == 0
    store.on_event(labelled("one"))
    assert store.version(key) > before
