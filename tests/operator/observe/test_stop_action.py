"""What a driver does at SIGTERM, and what the operator does while a driver publishes in a terminating namespace."""

from __future__ import annotations

import pytest

from s3sink_operator.observe.stop_action import stop_action
from s3sink_operator.types import to_timestamp
from sink_job.api.enums import StopAction
from sink_job.api.report import FinalReport
from tests.operator.fake_cluster import Cluster, actions, running

TERMINATING = {"metadata": {"deletionTimestamp": to_timestamp(0)}}


@pytest.mark.parametrize(
    ("policy", "driver", "namespace_terminating", "action"),
    [
        ("Publish", {"metadata": {}}, False, StopAction.ASK),
        ("Publish", TERMINATING, False, StopAction.EXIT),
        ("Publish", TERMINATING, True, StopAction.PUBLISH),
        ("Retain", TERMINATING, True, StopAction.EXIT),
        ("Discard", TERMINATING, True, StopAction.EXIT),
        (None, {"metadata": {}}, False, StopAction.EXIT),
    ],
)
def test_only_a_driver_with_the_publish_policy_publishes_with_its_namespace(
    policy: str | None, driver: dict[str, object], namespace_terminating: bool, action: StopAction
) -> None:
    sink = {"spec": {"deletionPolicy": policy}}
    assert stop_action(sink, driver, namespace_terminating=namespace_terminating) is action


@pytest.fixture
def ending() -> Cluster:
    """A sink whose namespace is terminating: the driver pod is being deleted and publishes."""
    cluster = running(deletionPolicy="Publish")
    cluster.log.clear()
    assert cluster.driver is not None
    cluster.driver["metadata"]["deletionTimestamp"] = to_timestamp(cluster.now)
    cluster.namespace_terminating = True
    cluster.converge()
    return cluster


def publishes(cluster: Cluster, *, published: bool = True) -> None:
    """The driver ends, and its pod is removed."""
    assert cluster.driver is not None
    cluster.end(cluster.driver, exit_code=0, message=FinalReport(published=published).termination_message())
    cluster.converge()
    cluster.remove("Pod", cluster.driver["metadata"]["name"])
    cluster.converge()


def test_nothing_is_created_in_a_terminating_namespace(ending: Cluster) -> None:
    assert ending.ready == ("False", "NamespaceTerminating")
    publishes(ending)
    assert ending.ready == ("False", "NamespaceTerminating")
    assert actions(ending) == []


def test_a_deleted_sink_waits_for_the_driver_that_publishes(ending: Cluster) -> None:
    ending.delete_sink()
    ending.converge()
    assert not ending.is_removed
    publishes(ending)
    assert ending.is_removed
    assert ("Warning", "FinalizerRemoved") not in ending.events


def test_a_driver_that_could_not_publish_is_reported(ending: Cluster) -> None:
    publishes(ending, published=False)
    ending.delete_sink()
    ending.converge()
    assert ending.is_removed
    assert ("Warning", "FinalizerRemoved") in ending.events


def test_a_driver_that_hangs_holds_the_sink_for_ten_minutes_at_most(ending: Cluster) -> None:
    ending.delete_sink()
    ending.converge()
    ending.wait(10 * 60_000)
    ending.converge()
    assert ending.is_removed
