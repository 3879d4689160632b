"""What the object cache keeps, and what the S3Sinks of one namespace may cost."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

from s3sink_operator.observe.observer import Observer
from s3sink_operator.observe.owner_check import OwnerChecker
from s3sink_operator.observe.pod_events import PodEventReader
from s3sink_operator.observe.spec_cache import parse
from s3sink_operator.observe.template_check import TemplateChecker
from s3sink_operator.types import Json, Observed
from s3sink_operator.watch.cached_objects import OMITTED, compacted, omitted_message
from s3sink_operator.watch.object_cache import ObjectCache, SinkKey
from tests.operator.fake_cluster import SETTINGS, Cluster, actions, document, running

LIMIT = 100_000


def sink(name: str, topics: int, *, version: int = 1, namespace: str = "data", **spec: Any) -> Json:
    kafka = {"bootstrapServers": "kafka:9092", "topics": [f"topic-{number}" for number in range(topics)]}
    found = document(name, uid=f"uid-{name}", kafka=kafka, **spec)
    found["metadata"] |= {"namespace": namespace, "resourceVersion": str(version), "generation": version}
    return found


def sizes(store: ObjectCache) -> list[int]:
    return [len(json.dumps(each)) for each in store.all("S3Sink")]


def omitted(store: ObjectCache) -> list[str]:
    return [each["metadata"]["name"] for each in store.all("S3Sink") if OMITTED in each]


def test_the_manifests_of_one_namespace_are_limited() -> None:
    """10,000 sinks of 1,000 topics each took 1 GB, twice the limit of the operator's memory."""
    store = ObjectCache(LIMIT)
    for number in range(200):
        store.on_event(sink(f"sink-{number}", 500))
    whole = [size for size in sizes(store) if size > 5_000]
    assert 1 <= len(whole) <= 3
    assert max(size for size in sizes(store) if size not in whole) < 700
    store.on_event(sink("flights", 5, namespace="other"))
    assert "flights" not in omitted(store)


def test_a_cached_sink_stays_cached_when_others_are_added_and_its_status_is_written() -> None:
    store = ObjectCache(LIMIT)
    first = sink("first", 500)
    store.on_event(first)
    for number in range(5):
        store.on_event(sink(f"sink-{number}", 500))
    store.on_event({**sink("first", 500, version=2), "status": {"phase": "Running"}})
    assert "first" not in omitted(store)
    assert "sink-4" in omitted(store)


def test_values_count_beside_their_text() -> None:
    texts = compacted(sink("a", 1, executor={"podTemplate": {"x": "y" * 4_000}}))[1]
    values = compacted(sink("a", 1, executor={"podTemplate": {"x": [[]] * 2_000}}))[1]
    assert values > 20 * texts


def test_responses_are_cached_as_events_are() -> None:
    """Each resync reads all sinks: their copies in kubectl's annotation came back with it."""
    found = sink("flights", 1)
    found["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "kept": "b"}
    store = ObjectCache()
    store.on_response(found)
    cached = store.get("S3Sink", "data", "flights")
    assert cached is not None
    assert cached["metadata"]["annotations"] == {"kept": "b"}


def above_limit(name: str = "flights", **spec: Any) -> Json:
    """A sink as it is cached without its spec."""
    store = ObjectCache(1)
    store.on_event(sink(name, 500, **spec))
    found = store.get("S3Sink", "data", name)
    assert found is not None
    assert OMITTED in found
    return found


def test_a_sink_above_the_limit_has_its_reason_and_its_driver_continues() -> None:
    cluster = running()
    cluster.sink |= {"spec": above_limit()["spec"], OMITTED: {"size": 123_456, "limit": 64 << 20}}
    cluster.reconcile()
    ready = cluster.condition("Ready")
    assert (ready["status"], ready["reason"]) == ("False", "NamespaceTooLarge")
    assert ready["message"] == (
        "the S3Sinks of the namespace data exceed the memory that the operator has for a namespace, 64Mi, so it does "
        "not read this one, which takes 120Ki. Delete S3Sinks, shorten them, such as by topicsPattern instead of "
        "topics, use several namespaces, or increase --namespace-memory of the operator; the driver continues with the "
        "previous settings"
    )
    assert cluster.driver is not None
    assert not actions(cluster)
    assert cluster.reconcile() == 0


def test_a_new_sink_above_the_limit_gets_no_driver() -> None:
    cluster = Cluster(sink=above_limit())
    cluster.converge_with_kubelet()
    assert cluster.ready == ("False", "NamespaceTooLarge")
    assert cluster.driver is None


def test_a_sink_above_the_limit_keeps_its_state_and_its_finalizer() -> None:
    cluster = running(deletionPolicy="Publish")
    finalizers = cluster.sink["metadata"]["finalizers"]
    cluster.sink |= {
        "spec": above_limit(deletionPolicy="Publish", state="Paused")["spec"],
        OMITTED: {"size": 1, "limit": 1},
    }
    cluster.converge_with_kubelet()
    assert cluster.sink["metadata"]["finalizers"] == finalizers
    assert cluster.driver is None


def test_a_sink_with_its_spec_again_is_parsed_again() -> None:
    cluster = Observed(sink=above_limit(), spec=parse(above_limit()).spec)
    assert omitted_message(cluster.sink) == cluster.spec.error
    store = ObjectCache(LIMIT)
    watching, api = observer(store, {})
    store.on_event(sink("big", 1_200))
    store.on_event(sink("small", 300))
    assert omitted(store) == ["small"]
    assert observed(watching, "small").spec.sink is None
    assert not api.reads
    store.on_delete(sink("big", 1_200))
    api.objects["small"] = sink("small", 300)
    assert observed(watching, "small").spec.sink is not None
    assert api.reads == ["small"]
    assert not omitted(store)


def test_a_deleted_sink_above_the_limit_is_read_for_its_deletion() -> None:
    deleted = sink("flights", 500, deletionPolicy="Publish")
    deleted["metadata"] |= {"deletionTimestamp": "2025-11-01T00:00:00Z", "finalizers": ["s3sink.io/deletion-policy"]}
    store = ObjectCache(1)
    watching, api = observer(store, {"flights": deleted})
    store.on_event(deleted)
    found = observed(watching, "flights")
    assert found.spec.sink is not None
    assert found.sink["spec"]["deletionPolicy"] == "Publish"
    assert omitted(store) == ["flights"]
    assert api.reads == ["flights"]


class Reads:
    """An API server that answers reads of sinks."""

    def __init__(self, objects: dict[str, Json]) -> None:
        self.objects = objects
        self.reads: list[str] = []

    async def get(self, kind: str, namespace: str, name: str) -> Json | None:
        assert kind == "S3Sink"
        self.reads.append(name)
        return self.objects.get(name)


def observer(store: ObjectCache, objects: dict[str, Json]) -> tuple[Observer, Reads]:
    reads = Reads(objects)
    api = cast("Any", reads)
    none = cast("Any", None)
    templates, owners = TemplateChecker(none, SETTINGS), OwnerChecker(none, "c1")
    return Observer(api, store, none, PodEventReader(none), templates, owners), reads


def observed(watching: Observer, name: str) -> Observed:
    found = asyncio.run(watching.observe(SinkKey("data", name), refresh=frozenset()))
    assert found is not None
    return found
