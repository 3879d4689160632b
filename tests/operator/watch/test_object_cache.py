"""The object cache, which the watches fill."""

from __future__ import annotations

from s3sink_operator.types import Json
from s3sink_operator.watch.object_cache import ObjectCache, SinkKey

KEY = SinkKey("lake", "flights")


def pod(name: str = "flights-s3sink-driver", *, uid: str = "1", version: str = "10", component: str = "driver") -> Json:
    labels = {"s3sink.io/sink": "flights", "app.kubernetes.io/component": component}
    meta = {"namespace": "lake", "name": name, "uid": uid, "resourceVersion": version, "labels": labels}
    return {"kind": "Pod", "metadata": meta}


def test_a_child_belongs_to_the_sink_of_its_label() -> None:
    assert ObjectCache().on_event(pod()) == KEY


def test_an_object_without_the_label_belongs_to_no_sink() -> None:
    assert ObjectCache().on_event({"kind": "ConfigMap", "metadata": {"namespace": "lake", "name": "x"}}) is None


def test_an_older_state_that_comes_late_does_not_replace_a_newer_one() -> None:
    store = ObjectCache()
    store.on_event(pod(version="10"))
    store.on_event(pod(version="9"))
    assert store.get("Pod", "lake", "flights-s3sink-driver") == pod(version="10")


def test_another_object_of_the_same_name_replaces_the_one_before() -> None:
    store = ObjectCache()
    store.on_event(pod(uid="1", version="10"))
    store.on_event(pod(uid="2", version="9"))
    assert store.get("Pod", "lake", "flights-s3sink-driver") == pod(uid="2", version="9")


def test_a_late_deletion_event_does_not_remove_the_next_object() -> None:
    store = ObjectCache()
    store.on_event(pod(uid="2"))
    assert store.on_delete(pod(uid="1")) == KEY
    assert store.get("Pod", "lake", "flights-s3sink-driver") == pod(uid="2")


def test_a_response_after_a_deletion_event_is_not_cached() -> None:
    store = ObjectCache()
    store.on_event(pod())
    store.on_delete(pod())
    store.on_response(pod(version="11"))
    assert store.get("Pod", "lake", "flights-s3sink-driver") is None


def test_an_object_that_a_watch_reports_again_is_cached_again() -> None:
    store = ObjectCache()
    store.on_delete(pod())
    store.on_event(pod())
    store.on_response(pod(version="11"))
    assert store.get("Pod", "lake", "flights-s3sink-driver") == pod(version="11")


def test_an_object_that_an_event_changed_during_a_request_is_kept() -> None:
    store = ObjectCache()
    store.on_event(pod())
    store.on_not_found("Pod", "lake", "flights-s3sink-driver", None)
    assert store.get("Pod", "lake", "flights-s3sink-driver") == pod()


def test_an_object_that_a_request_did_not_find_is_removed() -> None:
    store = ObjectCache()
    store.on_event(pod())
    known = store.get("Pod", "lake", "flights-s3sink-driver")
    store.on_not_found("Pod", "lake", "flights-s3sink-driver", known)
    assert store.get("Pod", "lake", "flights-s3sink-driver") is None


def test_executors_of_a_sink_are_distinguished_from_other_pods() -> None:
    store = ObjectCache()
    store.on_event(pod())
    store.on_event(pod("flights-1-exec-1", component="executor"))
    other = pod("other-exec-1", component="executor")
    other["metadata"]["labels"]["s3sink.io/sink"] = "other"
    store.on_event(other)
    assert [each["metadata"]["name"] for each in store.executors(KEY)] == ["flights-1-exec-1"]


def test_deleted_or_relabelled_executors_are_not_listed() -> None:
    store = ObjectCache()
    for name in ("flights-1-exec-1", "flights-1-exec-2"):
        store.on_event(pod(name, component="executor", uid=name))
    store.on_delete(pod("flights-1-exec-1", component="executor", uid="flights-1-exec-1"))
    moved = pod("flights-1-exec-2", component="executor", uid="flights-1-exec-2", version="11")
    moved["metadata"]["labels"]["s3sink.io/sink"] = "other"
    store.on_event(moved)
    assert not store.executors(KEY)


def test_changed_sinks_are_returned_once() -> None:
    store = ObjectCache()
    meta = {"namespace": "lake", "name": "flights", "uid": "1", "resourceVersion": "1"}
    store.on_event({"kind": "S3Sink", "metadata": meta})
    assert (store.changed_count, store.take_changed()) == (1, KEY)
    assert (store.changed_count, store.take_changed()) == (0, None)
    store.on_delete({"kind": "S3Sink", "metadata": meta})
    assert store.take_changed() == KEY


def test_the_sink_that_changed_first_is_returned_first() -> None:
    store = ObjectCache()
    for version, name in enumerate(("a", "b", "a"), 1):
        meta = {"namespace": "lake", "name": name, "uid": name, "resourceVersion": str(version)}
        store.on_event({"kind": "S3Sink", "metadata": meta})
    assert [store.take_changed() for _ in range(2)] == [SinkKey("lake", "a"), SinkKey("lake", "b")]


def test_sinks_that_lose_a_conflict_are_listed_while_they_do() -> None:
    store = ObjectCache()
    meta = {"namespace": "lake", "name": "flights", "uid": "1", "resourceVersion": "1"}
    conflict = {"type": "Ready", "status": "False", "reason": "Conflict"}
    store.on_event({"kind": "S3Sink", "metadata": meta, "status": {"conditions": [conflict]}})
    assert store.conflicted("lake") == [KEY]
    assert not store.conflicted("other")
    store.on_event({"kind": "S3Sink", "metadata": meta | {"resourceVersion": "2"}, "status": {}})
    assert not store.conflicted("lake")
