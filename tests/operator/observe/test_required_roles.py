"""What is read from the API server before a decision is applied."""

from __future__ import annotations

from dataclasses import replace

from s3sink_operator.observe.observer import ALL_ROLES
from s3sink_operator.observe.required_roles import Role, required_roles
from s3sink_operator.types import Decision, Delete, Event, EventType, ObjectWrites, Observed, Unreachable
from tests.operator.fake_cluster import Cluster, running

STATUS = Decision(status={"conditions": []})
PODS = {Role.DRIVER, Role.OPERATION}
DELETION = Delete(kind="Pod", name="flights-s3sink-driver", uid="1")


def observed() -> Observed:
    """A sink in Local mode whose driver answers."""
    found = running().observe()
    assert found.report is not None
    return found


def test_nothing_is_read_for_a_status_while_the_driver_answers() -> None:
    """The status has the resourceVersion of the sink, and the answer proves that the driver runs."""
    assert required_roles(STATUS, observed()) == set()


def test_the_driver_is_read_for_a_status_if_it_does_not_answer() -> None:
    silent = replace(observed(), report=Unreachable(message="timeout"))
    assert required_roles(STATUS, silent) == {Role.DRIVER}


def test_the_sink_is_read_for_writes_without_a_status() -> None:
    event = Event(type=EventType.NORMAL, reason="Running", message="")
    assert Role.SINK in required_roles(Decision(writes=ObjectWrites(delete=[DELETION])), observed())
    assert Role.SINK in required_roles(Decision(events=[event]), observed())
    assert Role.SINK in required_roles(Decision(writes=ObjectWrites(finalizers=[])), observed())


def test_both_pods_are_read_before_a_driver_is_deleted() -> None:
    """Also if it answers: an outdated cache never deletes a driver."""
    assert required_roles(replace(STATUS, writes=ObjectWrites(delete=[DELETION])), observed()) == PODS


def test_a_child_is_read_before_it_is_applied() -> None:
    manifest = {"kind": "ConfigMap", "metadata": {"name": "flights-s3sink"}}
    assert required_roles(replace(STATUS, writes=ObjectWrites(apply=[manifest])), observed()) == PODS | {
        Role.CONFIG_MAP
    }


def test_the_children_of_a_new_sink_are_read_before_its_driver_is_created() -> None:
    """One of these names may be taken by an object without the labels that the watches select."""
    cluster = Cluster()
    assert required_roles(cluster.decide(), cluster.observe()) == ALL_ROLES


def test_a_cached_child_that_is_not_written_is_not_read() -> None:
    cluster = running()
    del cluster.objects["Pod", "flights-s3sink-driver"]
    seen = cluster.observe()
    pod = {"kind": "Pod", "metadata": {"name": "flights-s3sink-driver"}}
    assert required_roles(replace(STATUS, writes=ObjectWrites(create=[pod])), seen) == PODS | {Role.ROLE_BINDING}


def test_every_role_has_the_name_of_its_object() -> None:
    assert {(role.kind, role.object_name("flights")) for role in Role} == {
        ("S3Sink", "flights"),
        ("ConfigMap", "flights-s3sink"),
        ("ServiceAccount", "flights-s3sink"),
        ("RoleBinding", "flights-s3sink"),
        ("Pod", "flights-s3sink-driver"),
        ("Pod", "flights-s3sink-operation"),
    }
