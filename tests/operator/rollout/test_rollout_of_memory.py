"""Changed defaults of the memory: where containers cannot be resized, sinks follow in turns, as in every rollout."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from s3sink_operator.config.sink_defaults import SinkDefaults
from s3sink_operator.objects.pods import memory_limit
from s3sink_operator.types import to_timestamp
from sink_job.api.report import MemoryReport
from sink_job.api.units.quantities import GI
from tests.operator.fake_cluster import report
from tests.operator.rollout.fleet import OLD, Fleet

CLUSTER = {"executor": {"mode": "Cluster", "instances": 1}}


def at_least(size: str) -> SinkDefaults:
    return SinkDefaults.model_validate({"executor": {"memory": {"min": size}}}, by_alias=True, by_name=False)


def sizes(fleet: Fleet) -> list[int | None]:
    """The memory of each driver in bytes."""
    return [memory_limit(cluster.driver) for cluster in fleet.sinks.values() if cluster.driver is not None]


def follow(fleet: Fleet) -> None:
    """Lets all drivers apply their allocation."""
    for cluster in fleet.sinks.values():
        if cluster.driver is None or cluster.driver["status"]["phase"] != "Running":
            continue
        memory = MemoryReport(slots=1, part_size=25 << 20, applied_bytes=cluster.allocation.memory)
        cluster.report = report(name=cluster.name, sink_id=f"data.{cluster.name}", now=fleet.now, memory=memory)


def infeasible(fleet: Fleet) -> None:
    """No node can resize a pod."""
    stamp = to_timestamp(fleet.now)
    said = {"type": "PodResizePending", "status": "True", "reason": "Infeasible", "lastTransitionTime": stamp}
    for cluster in fleet.sinks.values():
        for pod in [cluster.driver, *(cluster.executors or ())]:
            if pod is not None:
                pod["status"]["conditions"] = [said]


def with_followers(**spec: Any) -> Fleet:
    """Sinks whose containers can be resized by the API server, and whose drivers apply their allocation."""
    fleet = Fleet(4, **spec)
    fleet.settings = replace(fleet.settings, supports_resize=True)
    for cluster in fleet.sinks.values():
        if "executor" in spec:
            cluster.executors = [cluster.executor(1, memory=cluster.allocation.memory)]
    follow(fleet)
    fleet.run()
    return fleet


def test_changed_default_memory_restarts_one_sink_in_local_mode_after_the_other() -> None:
    fleet = Fleet(4)
    fleet.start_operator(OLD, at_least("4Gi"))
    fleet.run()
    assert sorted(map(str, sizes(fleet))) == sorted([str(4 * GI), *[str(1408 << 20)] * 3])
    assert len(fleet.with_condition("RolloutPending")) == 3
    fleet.run(minutes=10)
    assert sizes(fleet) == [4 * GI] * 4
    assert fleet.worst == 1
    assert not fleet.with_condition("RolloutPending")


def test_default_memory_with_which_no_driver_starts_takes_down_one_sink() -> None:
    fleet = Fleet(4)
    fleet.broken = set(fleet.sinks)
    fleet.start_operator(OLD, at_least("8Gi"))
    fleet.run(minutes=30)
    assert len(fleet.not_ready()) == 1
    halted = fleet.with_condition("RolloutHalted")
    assert len(halted) == 3
    message = fleet.sinks[halted[0]].condition("RolloutPending")["message"]
    assert "spec.executor.memory" in message


def test_a_rollback_of_default_memory_recovers_at_once() -> None:
    fleet = Fleet(4)
    fleet.broken = set(fleet.sinks)
    fleet.start_operator(OLD, at_least("8Gi"))
    fleet.run(minutes=5)
    fleet.broken = set()
    fleet.start_operator(OLD)
    fleet.run(minutes=3)
    assert not fleet.not_ready()
    assert not fleet.with_condition("RolloutPending")


def test_an_edited_maximum_of_the_memory_does_not_wait_for_a_turn() -> None:
    fleet = Fleet(4)
    fleet.broken = {"sink-0000"}
    fleet.start_operator(OLD, at_least("4Gi"))
    fleet.run(minutes=5)
    name = fleet.with_condition("RolloutPending")[0]
    fleet.start_operator(OLD)
    fleet.sinks[name].edit(executor={"mode": "Local", "memory": {"min": "3Gi"}})
    fleet.run()
    driver = fleet.sinks[name].driver
    assert driver
    assert memory_limit(driver) == 3 * GI
    assert "rollout" not in fleet.sinks[name].status


@pytest.mark.parametrize("spec", [{}, CLUSTER], ids=["Local", "Cluster"])
def test_default_memory_for_which_no_node_has_room_takes_down_one_sink(spec: dict[str, Any]) -> None:
    """The allocation changes at once. Pods that their nodes cannot resize are replaced in turns."""
    fleet = with_followers(**spec)
    fleet.broken = set(fleet.sinks)
    fleet.start_operator(OLD, at_least("8Gi"))
    for _ in range(30):
        fleet.run()
        follow(fleet)
        infeasible(fleet)
        fleet.now += 10_000
    fleet.run()
    assert len(fleet.not_ready()) == 1
    assert len(fleet.with_condition("RolloutPending")) == 3


def test_executors_that_are_replaced_for_changed_defaults_follow_one_sink_after_the_other() -> None:
    fleet = with_followers(**CLUSTER)
    fleet.start_operator(OLD, at_least("4Gi"))
    fleet.settings = replace(fleet.settings, supports_resize=False)
    worst = 0
    for _ in range(60):
        fleet.run()
        follow(fleet)
        worst = max(worst, len(fleet.not_ready()))
        for cluster in fleet.sinks.values():
            if not cluster.executors and cluster.driver is not None:
                cluster.executors = [cluster.executor(2, memory=cluster.allocation.memory)]
        fleet.now += 10_000
    found = {memory_limit(pod) for cluster in fleet.sinks.values() for pod in cluster.executors or ()}
    assert found == {4 * GI}
    assert worst == 1
