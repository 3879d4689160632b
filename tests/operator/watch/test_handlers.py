"""What the watches put into the object cache and the work queue, event by event as Kopf gives them."""

from __future__ import annotations

import asyncio
import copy
import json
import time
from typing import Any, cast

import kopf
import pytest

from s3sink_operator.types import Json
from s3sink_operator.watch.handlers import event_handler, index_handler
from s3sink_operator.watch.object_cache import ObjectCache, SinkKey
from s3sink_operator.watch.workqueue import WorkQueue

KEY = SinkKey("data", "flights")
POD: Json = {
    "metadata": {
        "name": "flights-s3sink-driver",
        "namespace": "data",
        "uid": "1",
        "resourceVersion": "10",
        "labels": {"s3sink.io/sink": "flights"},
        "managedFields": [{"manager": "kubelet"}],
    },
    "status": {"phase": "Running"},
}


class Watch:
    """The handlers of pods, with their cache and their queue."""

    def __init__(self) -> None:
        self.cache = ObjectCache()
        self.queue: WorkQueue[SinkKey] = WorkQueue(time.monotonic)
        self._index = index_handler(self.cache, self.queue, "Pod")
        self._event = event_handler(self.cache, self.queue, "Pod")

    def lists(self, obj: Json) -> None:
        asyncio.run(self.call(self._index, body=copy.deepcopy(obj)))

    def reports(self, kind: str | None, obj: Json) -> None:
        asyncio.run(self.call(self._event, event={"type": kind, "object": copy.deepcopy(obj)}))

    @staticmethod
    async def call(handler: Any, **given: Any) -> None:
        await handler(**given)

    @property
    def cached(self) -> Json | None:
        return self.cache.get("Pod", "data", "flights-s3sink-driver")

    def done(self) -> None:
        """The pass of the sink has run."""
        asyncio.run(self._done())

    async def _done(self) -> None:
        self.queue.done(await self.queue.take())


@pytest.fixture
def watch() -> Watch:
    return Watch()


def pod(version: str) -> Json:
    found = copy.deepcopy(POD)
    found["metadata"]["resourceVersion"] = version
    return found


def test_the_record_of_field_managers_is_not_cached(watch: Watch) -> None:
    watch.reports("ADDED", POD)
    meta = {name: value for name, value in POD["metadata"].items() if name != "managedFields"}
    assert watch.cached == {"kind": "Pod", "metadata": meta, "status": {"phase": "Running"}}


def test_the_copy_of_a_manifest_in_an_annotation_of_kubectl_is_not_cached(watch: Watch) -> None:
    found = pod("11")
    found["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "kept": "b"}
    watch.reports("ADDED", found)
    assert watch.cached is not None
    assert watch.cached["metadata"]["annotations"] == {"kept": "b"}


def test_equal_texts_of_two_objects_are_cached_once(watch: Watch) -> None:
    watch.reports("ADDED", {**POD, "spec": {"nodeName": "".join(["node", "-1"])}})
    first = watch.cached
    watch.reports("MODIFIED", {**pod("11"), "spec": {"nodeName": "".join(["node-", "1"])}})
    second = watch.cached
    assert first is not None
    assert second is not None
    assert first is not second
    assert first["spec"]["nodeName"] is second["spec"]["nodeName"]


def test_a_listed_object_is_queued_once_and_its_event_of_the_list_not_again(watch: Watch) -> None:
    watch.lists(POD)
    assert len(watch.queue) == 1
    watch.done()
    watch.reports(None, POD)
    assert len(watch.queue) == 0


def test_what_kopf_keeps_of_a_listed_object_is_emptied_and_does_not_replace_the_cached_one(watch: Watch) -> None:
    """Kopf keeps each listed object until all lists are complete: 10,000 sinks of 1,000 topics took 1.2 GB."""
    body = {**copy.deepcopy(POD), "spec": {"nodeName": "node-1"}}
    body["metadata"]["annotations"] = {"kept": "x" * 1_000}
    asyncio.run(watch.call(index_handler(watch.cache, watch.queue, "Pod"), body=kopf.Body(cast("Any", body))))
    assert len(json.dumps(body)) < 300
    cached = watch.cached
    event = {"type": None, "object": body}
    asyncio.run(watch.call(event_handler(watch.cache, watch.queue, "Pod"), event=event))
    assert watch.cached is cached
    assert cached is not None
    assert (cached["spec"], cached["metadata"]["annotations"]) == ({"nodeName": "node-1"}, {"kept": "x" * 1_000})
    assert "s3sink.io/released" not in cached["metadata"]


@pytest.mark.parametrize("kind", [None, "ADDED", "MODIFIED", "DELETED"])
def test_what_kopf_keeps_of_an_event_is_emptied(watch: Watch, kind: str | None) -> None:
    body = {**copy.deepcopy(POD), "spec": {"nodeName": "node-1"}}
    asyncio.run(watch.call(event_handler(watch.cache, watch.queue, "Pod"), event={"type": kind, "object": body}))
    assert (body["spec"], body["status"]) == ({}, {})
    assert kind == "DELETED" or (watch.cached or {})["spec"] == {"nodeName": "node-1"}


def test_an_object_that_changed_while_the_watch_was_interrupted_is_queued(watch: Watch) -> None:
    watch.lists(POD)
    watch.done()
    watch.reports(None, pod("11"))
    assert len(watch.queue) == 1


def test_an_edit_queues_the_sinks_of_its_namespace_that_lose_a_conflict_and_no_others() -> None:
    """A sink never loses a conflict with one of another namespace, so 5,000 losers of a tenant cost others nothing."""
    cache, queue = ObjectCache(), WorkQueue[SinkKey](time.monotonic)
    on_event = event_handler(cache, queue, "S3Sink")

    def sink(namespace: str, name: str, reason: str) -> Json:
        meta = {"namespace": namespace, "name": name, "uid": name, "resourceVersion": "1", "generation": 1}
        return {"metadata": meta, "status": {"conditions": [{"type": "Ready", "reason": reason}]}}

    async def queued_by_an_edit() -> set[SinkKey]:
        for number, loser in enumerate((sink("lake", "loser", "Conflict"), sink("other", "loser", "Conflict"))):
            await on_event(event={"type": None, "object": loser})
            await asyncio.wait_for(queue.take(), 1)
            queue.done(SinkKey(loser["metadata"]["namespace"], "loser"))
            assert len(queue) == 0, number
        await on_event(event={"type": "MODIFIED", "object": sink("lake", "winner", "Running")})
        return {await asyncio.wait_for(queue.take(), 1) for _ in range(len(queue))}

    assert asyncio.run(queued_by_an_edit()) == {SinkKey("lake", "winner"), SinkKey("lake", "loser")}


def test_a_deleted_object_is_removed_and_queued(watch: Watch) -> None:
    watch.lists(POD)
    watch.done()
    watch.reports("DELETED", pod("12"))
    assert watch.cached is None
    assert len(watch.queue) == 1


@pytest.mark.parametrize("levels", [200, 300])
def test_an_object_that_is_nested_too_deeply_is_cached_and_queued(watch: Watch, levels: int) -> None:
    watch.reports("ADDED", {**POD, "spec": json.loads('{"a":' * levels + "{}" + "}" * levels)})
    assert watch.cached is not None
    assert len(watch.queue) == 1
