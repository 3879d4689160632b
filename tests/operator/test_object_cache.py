"""What the watches have told."""

from __future__ import annotations

from s3sink_operator.object_cache import SinkKey, Store
from s3sink_operator.types import Json

KEY = SinkKey("lake", "flights")


def pod(name: str = "flights-s3sink-driver", *, uid: str = "1", version: str = "10", component: str = "driver") -> Json:
    labels = {"s3sink.io/sink": "flights", "app.kubernetes.io/component": component}
    meta = {"namespace": "lake", "name": name, "uid": uid, "resourceVersion": version, "labels": labels}
    return {"kind": "Pod", "metadata": meta}


def test_a_child_belongs_to_the_sink_of_its_label() -> None:
    assert Store().put(pod()) == KEY


def test_an_object_without_the_label_belongs_to_no_sink() -> None:
    assert Store().put({"kind": "ConfigMap", "metadata": {"namespace": "lake", "name": "x"}}) is None


def test_an_older_state_that_comes_late_does_not_replace_a_newer_one() -> None:
    store = Store()
    store.put(pod(version="10"))
    store.put(pod(version="9"))
    assert store.get("Pod", "lake", "flights-s3sink-driver") == pod(version="10")


def test_another_object_of_the_same_name_replaces_the_one_before() -> None:
    store = Store()
    store.put(pod(uid="1", version="10"))
    store.put(pod(uid="2", version="9"))
    assert store.get("Pod", "lake", "flights-s3sink-driver") == pod(uid="2", version="9")


def test_a_late_word_of_a_deletion_does_not_drop_the_object_that_came_after() -> None:
    store = Store()
    store.put(pod(uid="2"))
    assert store.drop(pod(uid="1")) == KEY
    assert store.get("Pod", "lake", "flights-s3sink-driver") == pod(uid="2")


def test_an_answer_that_comes_after_the_word_of_a_deletion_brings_nothing_back() -> None:
    store = Store()
    store.put(pod())
    store.drop(pod())
    store.learn(pod(version="11"))
    assert store.get("Pod", "lake", "flights-s3sink-driver") is None


def test_an_object_that_a_watch_tells_of_again_is_there_again() -> None:
    store = Store()
    store.drop(pod())
    store.put(pod())
    store.learn(pod(version="11"))
    assert store.get("Pod", "lake", "flights-s3sink-driver") == pod(version="11")


def test_what_was_told_while_it_was_asked_for_is_not_forgotten() -> None:
    store = Store()
    store.put(pod())
    store.forget("Pod", "lake", "flights-s3sink-driver", None)
    assert store.get("Pod", "lake", "flights-s3sink-driver") == pod()


def test_what_was_not_there_when_it_was_asked_for_is_forgotten() -> None:
    store = Store()
    store.put(pod())
    known = store.get("Pod", "lake", "flights-s3sink-driver")
    store.forget("Pod", "lake", "flights-s3sink-driver", known)
    assert store.get("Pod", "lake", "flights-s3sink-driver") is None


def test_the_executors_of_a_sink_are_told_from_its_driver_and_from_others() -> None:
    store = Store()
    store.put(pod())
    store.put(pod("flights-1-exec-1", component="executor"))
    other = pod("other-exec-1", component="executor")
    other["metadata"]["labels"]["s3sink.io/sink"] = "other"
    store.put(other)
    assert [each["metadata"]["name"] for each in store.executors(KEY)] == ["flights-1-exec-1"]


def test_executors_that_are_gone_or_another_sinks_now_are_not_told() -> None:
    store = Store()
    for name in ("flights-1-exec-1", "flights-1-exec-2"):
        store.put(pod(name, component="executor", uid=name))
    store.drop(pod("flights-1-exec-1", component="executor", uid="flights-1-exec-1"))
    moved = pod("flights-1-exec-2", component="executor", uid="flights-1-exec-2", version="11")
    moved["metadata"]["labels"]["s3sink.io/sink"] = "other"
    store.put(moved)
    assert not store.executors(KEY)


def test_sinks_that_changed_are_told_once() -> None:
    store = Store()
    meta = {"namespace": "lake", "name": "flights", "uid": "1", "resourceVersion": "1"}
    store.put({"kind": "S3Sink", "metadata": meta})
    assert store.take_changed() == {KEY}
    assert not store.take_changed()
    store.drop({"kind": "S3Sink", "metadata": meta})
    assert store.take_changed() == {KEY}


def test_sinks_that_yield_to_an_older_one_are_told_while_they_do() -> None:
    store = Store()
    meta = {"namespace": "lake", "name": "flights", "uid": "1", "resourceVersion": "1"}
    conflict = {"type": "Ready", "status": "False", "reason": "Conflict"}
    store.put({"kind": "S3Sink", "metadata": meta, "status": {"conditions": [conflict]}})
    assert store.yielding() == [KEY]
    store.put({"kind": "S3Sink", "metadata": meta | {"resourceVersion": "2"}, "status": {}})
    assert not store.yielding()
