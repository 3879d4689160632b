"""A number of executors that follows activity: through the allocation, without a restart, and never into the spec."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest

from s3sink_operator import objects
from s3sink_operator.kubectl import view
from s3sink_operator.types import Json, Rejection, RolloutGate, Unreachable
from sink_job.api.parser import parse_sink
from sink_job.api.spec import Sink
from sink_job.api.units.quantities import GI, MI
from tests.operator.fake_cluster import MINUTE, SETTINGS, Cluster, actions, document, running

RESIZABLE = replace(SETTINGS, supports_resize=True)
PERIOD = RESIZABLE.shrink_after_ms
FEW, MANY = 2, 40
"""Active topic-partitions for one executor, and for three with two cores."""


def auto(**scaling: int) -> Json:
    return {"mode": "Cluster", "cores": 2, "scaling": {"mode": "Auto", **scaling}}


def parsed(executor: Json) -> Sink:
    return parse_sink(document(executor=executor))


def report_load(cluster: Cluster, active: int, *, applied: int | None = None, follows: bool = True) -> None:
    cluster.report_load(active, remainder=MI, applied=applied, follows=follows)


def scaled(active: int = FEW, **scaling: int) -> Cluster:
    """A running sink with these active topic-partitions."""
    cluster = running(executor=auto(**scaling))
    cluster.settings = RESIZABLE
    report_load(cluster, active)
    cluster.converge()
    cluster.log.clear()
    cluster.events.clear()
    return cluster


def stay(cluster: Cluster, active: int, *, minutes: int, applied: int | None = None) -> None:
    """The driver reports these active topic-partitions for so long."""
    for _ in range(minutes):
        cluster.wait(MINUTE)
        report_load(cluster, active, applied=applied)
        cluster.converge()


def test_a_sink_starts_with_the_minimum_and_the_status_has_the_number() -> None:
    cluster = scaled(minInstances=2)
    assert cluster.allocation.executors == cluster.status["scaling"]["desired"] == cluster.status["replicas"] == 2
    assert "lastChange" not in cluster.status["scaling"]


def test_more_active_topic_partitions_add_executors_through_the_allocation_and_the_driver_is_kept() -> None:
    cluster = scaled()
    before = copy.deepcopy(cluster.sink["spec"])
    report_load(cluster, MANY)
    cluster.converge()
    assert actions(cluster) == ["apply ConfigMap"]
    assert cluster.allocation.executors == 3
    assert cluster.sink["spec"] == before
    config = cluster.get("ConfigMap", "flights-s3sink") or {}
    assert "spark.executor.instances=3\n" in config["data"]["spark.properties"]
    assert cluster.ready == ("True", "Running")
    assert cluster.status["replicas"] == 3


def test_a_change_is_an_event_and_the_last_change_of_the_status() -> None:
    cluster = scaled()
    report_load(cluster, MANY)
    cluster.converge()
    assert cluster.events == [("Normal", "ExecutorsScaled")]
    scaling = cluster.status["scaling"]
    change = scaling["lastChange"]
    assert (scaling["desired"], change["from"], change["to"]) == (3, 1, 3)
    assert change["reason"] == "grow: 3 executors required, 1 before; 40 active topic-partitions, 16 for each executor"
    stay(cluster, MANY, minutes=30)
    assert cluster.status["scaling"] == scaling
    assert len(cluster.events) == 1


def test_the_plug_in_shows_the_number_and_its_last_change() -> None:
    cluster = scaled()
    report_load(cluster, MANY)
    cluster.converge()
    shown = view.detail(cluster.sink, cluster.now)
    assert "Executors:     3 of 3 running, by active topic-partitions; changed 0s ago: 1 to 3, grow: " in shown


def test_ready_names_the_executors_that_do_not_run_yet() -> None:
    cluster = scaled()
    cluster.executors = [cluster.executor(1)]
    report_load(cluster, MANY)
    cluster.converge()
    assert cluster.ready == ("True", "Running")
    assert "1 of 3 executors are running" in cluster.condition("Ready")["message"]


def test_executors_are_given_back_after_the_period_and_not_before() -> None:
    cluster = scaled(MANY)
    assert cluster.allocation.executors == 3
    stay(cluster, FEW, minutes=10)
    assert cluster.allocation.executors == 3
    assert cluster.status["scaling"]["lowMost"] == 1
    stay(cluster, FEW, minutes=1)
    assert cluster.allocation.executors == cluster.status["replicas"] == 1
    assert cluster.status["scaling"]["lastChange"]["reason"].startswith("shrink: 1 executor sufficient for 10m")
    assert not [each for each in actions(cluster) if each.startswith(("delete", "create"))]


def test_activity_that_returns_begins_the_period_again() -> None:
    cluster = scaled(MANY)
    for _ in range(4):
        stay(cluster, FEW, minutes=9)
        stay(cluster, MANY, minutes=1)
    assert cluster.allocation.executors == 3
    assert not cluster.events


def test_the_number_never_shrinks_before_the_driver_has_applied_a_change_of_the_memory() -> None:
    cluster = scaled(MANY)
    stay(cluster, FEW, minutes=30, applied=cluster.allocation.memory - 64 * MI)
    assert cluster.allocation.executors == 3
    report_load(cluster, FEW)
    cluster.converge()
    assert cluster.allocation.executors == 1


def test_the_number_never_shrinks_while_containers_are_resized() -> None:
    cluster = scaled(MANY)
    stay(cluster, FEW, minutes=9)
    small = cluster.allocation.memory - 64 * MI
    cluster.executors = [cluster.executor(number, memory=small) for number in (1, 2, 3)]
    cluster.wait(2 * MINUTE)
    report_load(cluster, FEW)
    cluster.reconcile()
    assert actions(cluster) == [f"resize flights-1-exec-{number}" for number in (1, 2, 3)]
    assert cluster.allocation.executors == 3
    cluster.converge()
    assert cluster.allocation.executors == 1


def test_executors_that_find_no_node_are_given_back() -> None:
    cluster = scaled()
    cluster.executors = [cluster.executor(1)]
    stay(cluster, MANY, minutes=1)
    stay(cluster, FEW, minutes=11)
    assert cluster.allocation.executors == 1
    assert cluster.condition("Ready")["message"] == "copying 1 topic-partition"


def test_executors_that_a_quota_keeps_small_do_not_keep_the_number() -> None:
    cluster = scaled(MANY)
    small = cluster.allocation.memory - 64 * MI
    cluster.executors = [cluster.executor(number, memory=small) for number in (1, 2, 3)]
    later = cluster.now + 2 * PERIOD
    cluster.rejections = [
        Rejection(kind="pods/resize", name=f"flights-1-exec-{each}", status=403, reason="", message="no", at_ms=later)
        for each in (1, 2, 3)
    ]
    stay(cluster, FEW, minutes=11)
    assert cluster.allocation.executors == 1


def test_more_executors_share_the_topic_partitions_so_each_needs_less_memory() -> None:
    cluster = scaled()
    report_load(cluster, MANY)
    cluster.converge()
    assert cluster.status["memory"]["inputs"]["executors"] == 3


def test_edited_bounds_apply_at_once() -> None:
    cluster = scaled(MANY)
    cluster.edit(executor=auto(maxInstances=2))
    cluster.converge()
    assert cluster.allocation.executors == 2
    cluster.edit(executor=auto(minInstances=5))
    cluster.converge()
    assert cluster.allocation.executors == 5
    assert cluster.status["scaling"]["lastChange"]["reason"] == (
        "grow: spec.executor.scaling is 5 to 8, 16 active topic-partitions each; 5 executors required, 2 before"
    )
    assert not [each for each in actions(cluster) if each.startswith(("delete", "create"))]


def test_a_fixed_number_begins_to_follow_activity_at_once() -> None:
    cluster = running(executor={"mode": "Cluster", "cores": 2, "instances": 4})
    cluster.settings = RESIZABLE
    report_load(cluster, FEW)
    cluster.converge()
    assert "scaling" not in cluster.status
    cluster.edit(executor=auto())
    cluster.converge()
    assert cluster.allocation.executors == 1
    assert actions(cluster)[-1] == "apply ConfigMap"


def test_a_fixed_number_replaces_one_that_followed_activity() -> None:
    cluster = scaled(MANY)
    cluster.edit(executor={"mode": "Cluster", "cores": 2, "instances": 4})
    cluster.converge()
    assert cluster.allocation.executors == 4
    assert "scaling" not in cluster.status
    assert actions(cluster) == ["apply ConfigMap"]


def test_scaling_is_no_setting_of_the_driver() -> None:
    hashes = {objects.spec_hash(parsed(each), SETTINGS) for each in (auto(), auto(maxInstances=3))}
    hashes.add(objects.spec_hash(parsed({"mode": "Cluster", "cores": 2, "instances": 3}), SETTINGS))
    assert len(hashes) == 1


@pytest.mark.parametrize("writes", range(5))
def test_a_pass_that_is_interrupted_is_continued_by_the_next_one(writes: int) -> None:
    cluster = scaled()
    report_load(cluster, MANY)
    cluster.reconcile(writes)
    cluster.converge()
    assert cluster.allocation.executors == cluster.status["scaling"]["desired"] == 3
    stay(cluster, FEW, minutes=10)
    cluster.wait(MINUTE)
    report_load(cluster, FEW)
    cluster.reconcile(writes)
    cluster.converge()
    assert cluster.allocation.executors == cluster.status["scaling"]["desired"] == 1


def test_after_the_loss_of_the_status_the_number_is_the_required_one() -> None:
    cluster = scaled(MANY)
    cluster.sink["status"] = {}
    report_load(cluster, FEW)
    cluster.converge()
    assert cluster.allocation.executors == cluster.status["scaling"]["desired"] == 1
    assert cluster.status["scaling"]["lastChange"]["from"] == 3


def test_a_driver_that_does_not_answer_keeps_its_number() -> None:
    cluster = scaled(MANY)
    cluster.report = Unreachable(message="no answer", persistent=True)
    for _ in range(30):
        cluster.wait(MINUTE)
        cluster.converge()
    assert cluster.allocation.executors == 3


def test_a_driver_that_does_not_follow_its_allocation_keeps_its_number() -> None:
    cluster = scaled()
    report_load(cluster, MANY, follows=False)
    cluster.converge()
    assert cluster.allocation.executors == 1


def test_the_next_driver_starts_with_the_executors_for_the_activity() -> None:
    cluster = scaled(MANY)
    cluster.remove("Pod", "flights-s3sink-driver")
    cluster.reconcile()
    assert cluster.allocation.executors == cluster.status["scaling"]["desired"] == 3


def test_a_driver_that_waits_for_its_turn_in_a_rollout_gets_more_executors() -> None:
    cluster = scaled()
    cluster.settings = replace(RESIZABLE, image="job:2")
    cluster.rollout = RolloutGate(is_open=False)
    report_load(cluster, MANY)
    cluster.converge()
    assert cluster.allocation.executors == 3
    assert actions(cluster) == ["apply ConfigMap"]


def test_the_objects_have_the_number_of_the_operator_and_without_one_that_of_the_spec() -> None:
    sink = parsed({"mode": "Cluster", "instances": 4})
    for executors, expected in ((None, 4), (7, 7)):
        made = objects.spark_properties(sink, SETTINGS, attempt=1, memory=2 * GI, executors=executors)
        assert made["spark.executor.instances"] == str(expected)
