"""A new default image of the operator reaches drivers one after the other."""

from __future__ import annotations

from dataclasses import replace

from s3sink_operator.types import Settings
from tests.operator.fake_cluster import MINUTE, SETTINGS, Cluster, actions, running


def after_an_update(cluster: Cluster) -> Settings:
    """The settings of an operator that has just started, with another image."""
    return replace(SETTINGS, image="job:2", start_time_ms=cluster.now, rollout_ms=10 * MINUTE)


def updated() -> Cluster:
    cluster = running()
    cluster.settings = after_an_update(cluster)
    return cluster


def test_a_driver_keeps_running_until_its_turn_in_a_rollout() -> None:
    cluster = updated()
    cluster.settle()
    assert not actions(cluster)
    assert cluster.ready == ("True", "Running")
    assert "a restart for the new default image is scheduled" in cluster.condition("Ready")["message"]
    cluster.wait(10 * MINUTE)
    cluster.live()
    assert cluster.driver
    assert cluster.driver["spec"]["containers"][0]["image"] == "job:2"


def test_an_edit_brings_the_new_image_at_once() -> None:
    cluster = updated()
    cluster.edit(rotation={"flushSize": 5})
    cluster.live()
    assert cluster.driver
    assert cluster.driver["spec"]["containers"][0]["image"] == "job:2"


def test_a_driver_that_fails_gets_the_new_image_at_once() -> None:
    cluster = updated()
    cluster.fail(exit_code=7)
    cluster.live()
    assert cluster.driver
    assert cluster.driver["spec"]["containers"][0]["image"] == "job:2"


def test_turns_are_spread_over_the_rollout() -> None:
    moments = set()
    for number in range(20):
        cluster = running()
        cluster.sink["metadata"]["uid"] = f"sink-{number}"
        for thing in cluster.things.values():
            for owner in thing["metadata"].get("ownerReferences") or ():
                owner["uid"] = f"sink-{number}"
        cluster.settings = after_an_update(cluster)
        minute = 0
        while not cluster.decide().delete:
            cluster.wait(MINUTE)
            minute += 1
        moments.add(minute)
    assert max(moments) <= 10
    assert len(moments) >= 5


def test_an_image_of_the_sinks_own_does_not_wait_for_a_turn() -> None:
    cluster = updated()
    cluster.edit(image="mine:1")
    cluster.live()
    assert cluster.driver
    assert cluster.driver["spec"]["containers"][0]["image"] == "mine:1"
