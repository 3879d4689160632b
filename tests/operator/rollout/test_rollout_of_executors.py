"""Rollouts over sinks in Cluster mode that lack executors: what still copies is restarted only when its turn comes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.operator.fake_cluster import Cluster, report
from tests.operator.rollout.fleet import NEW, OLD, Fleet, updated

REJECTION = "pods is forbidden: exceeded quota: compute"
DENIAL = "pods is forbidden: User cannot create resource pods"
NO_NODE = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available: 3 Insufficient cpu."}
NO_IMAGE = {"name": "s3sink", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}


def in_cluster_mode(count: int = 4, instances: int = 2) -> Fleet:
    return Fleet(count, executor={"mode": "Cluster", "instances": instances})


def lacks_executors(cluster: Cluster, running: int, now: int, **reported: Any) -> None:
    """Leaves the sink this many executors. `reported`: what the driver reports about the others."""
    cluster.executors = [cluster.executor(number) for number in range(1, running + 1)]
    cluster.report = report(name=cluster.name, sink_id=f"data.{cluster.name}", now=now, **reported)


def lacking(fleet: Fleet, running: int, **reported: Any) -> Fleet:
    for cluster in fleet.sinks.values():
        lacks_executors(cluster, running, fleet.now, **reported)
    fleet.run()
    return fleet


@pytest.mark.parametrize("reported", [{"executor_rejection": REJECTION}, {"executor_denial": DENIAL}])
def test_a_bad_quota_and_a_broken_image_take_down_one_sink(reported: dict[str, str]) -> None:
    fleet = lacking(in_cluster_mode(), 1, **reported)
    assert len(fleet.not_ready()) == 4
    fleet.broken = {NEW}
    fleet.start_operator(NEW)
    fleet.run(minutes=30)
    assert Counter(fleet.images().values()) == {OLD: 3, NEW: 1}
    assert len(fleet.with_condition("RolloutPending")) == 3


def test_a_restarted_sink_whose_executors_are_rejected_is_in_progress_for_ten_minutes() -> None:
    fleet = in_cluster_mode(2)
    fleet.start_operator(NEW)
    while updated(fleet) == 0:
        fleet.step()
    (name,) = [name for name, image in fleet.images().items() if image == NEW]
    fleet.run()
    lacks_executors(fleet.sinks[name], 0, fleet.now, executor_rejection=REJECTION)
    fleet.run(minutes=9)
    assert fleet.state.halted_by is None
    fleet.run(minutes=2)
    assert fleet.state.halted_by == f"not Ready after their restart: data/{name} (ExecutorsRejected)"


def test_sinks_that_lacked_executors_before_a_rollout_do_not_halt_it() -> None:
    """They count as available in the state in which they were."""
    fleet = lacking(in_cluster_mode(3), 1, executor_rejection=REJECTION)
    fleet.start_operator(NEW)
    for _ in range(40):
        fleet.run()
        for cluster in fleet.sinks.values():
            if cluster.driver is not None and cluster.driver["status"]["phase"] == "Running":
                lacks_executors(cluster, 1, fleet.now, executor_rejection=REJECTION)
        fleet.now += 10_000
    assert set(fleet.images().values()) == {NEW}
    assert fleet.state.halted_by is None


def test_a_sink_that_lost_executors_to_new_defaults_halts_the_rollout() -> None:
    fleet = in_cluster_mode(3)
    fleet.start_operator(NEW)
    for _ in range(80):
        fleet.run()
        for name, image in fleet.images().items():
            if image == NEW:
                lacks_executors(fleet.sinks[name], 1, fleet.now, executor_rejection=REJECTION)
        fleet.now += 10_000
    assert updated(fleet) == 1
    assert "ExecutorsRejected" in str(fleet.state.halted_by)


@pytest.mark.parametrize("status", [None, {"phase": "Pending"}, {"phase": "Pending", "conditions": [NO_NODE]}])
def test_a_sink_that_has_just_lost_its_only_executor_keeps_its_driver(status: dict[str, Any] | None) -> None:
    """A node that is drained, or an executor that is replaced: with its image it recovers, with a broken one not."""
    fleet = in_cluster_mode(instances=1)
    fleet.broken = {NEW}
    fleet.start_operator(NEW)
    fleet.run(minutes=2)
    name = fleet.with_condition("RolloutPending")[0]
    cluster = fleet.sinks[name]
    cluster.executors = [] if status is None else [cluster.executor(2, **status)]
    fleet.run(minutes=9)
    assert fleet.images()[name] == OLD
    cluster.executors = None
    fleet.run(minutes=5)
    assert cluster.ready == ("True", "Running")


def test_a_sink_without_an_executor_for_ten_minutes_gets_the_new_image() -> None:
    fleet = in_cluster_mode(1, instances=1)
    fleet.sinks["sink-0000"].executors = []
    fleet.run()
    fleet.start_operator(NEW)
    fleet.run(minutes=9)
    assert updated(fleet) == 0
    fleet.run(minutes=2)
    assert updated(fleet) == 1


def test_a_sink_whose_executors_cannot_pull_their_image_gets_the_new_one_at_once() -> None:
    fleet = in_cluster_mode(3)
    for cluster in fleet.sinks.values():
        cluster.executors = [cluster.executor(1, phase="Pending", containerStatuses=[NO_IMAGE])]
    fleet.run()
    fleet.start_operator(NEW)
    fleet.run()
    assert updated(fleet) == 3


def test_a_rollback_restarts_a_sink_at_once_whose_executors_did_not_start_after_the_rollout() -> None:
    fleet = in_cluster_mode(2)
    fleet.start_operator(NEW)
    fleet.step()
    (name,) = [name for name, cluster in fleet.sinks.items() if "rollout" in cluster.status]
    fleet.sinks[name].executors = []
    fleet.run(minutes=2)
    assert fleet.sinks[name].ready == ("False", "ExecutorsStarting")
    fleet.sinks[name].executors = None
    fleet.start_operator(OLD)
    fleet.run()
    assert set(fleet.images().values()) == {OLD}
