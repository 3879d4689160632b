"""The memory and the number of executors: what a sink has, and what the next driver starts with.

A number that follows activity changes through the allocation, without a restart, and never in the spec.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest

from s3sink_operator import objects
from s3sink_operator.config.sink_defaults import SinkDefaults
from s3sink_operator.decide.context import Context
from s3sink_operator.kubectl import view
from s3sink_operator.status.status_model import MemoryInputs
from s3sink_operator.types import Json, Rejection, RolloutGate, Unreachable, to_timestamp
from sink_job.api.parser import parse_sink
from sink_job.api.report import MemoryReport
from sink_job.api.spec import Sink
from sink_job.api.units.quantities import GI, MI, format_size
from tests.operator.fake_cluster import MINUTE, SETTINGS, Cluster, actions, document, report, running

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


# -- the facts themselves ------------------------------------------------------------------------------------------


def context(cluster: Cluster) -> Context:
    return Context(cluster.observe(), cluster.settings, cluster.now)


def test_the_current_memory_is_the_allocation_and_before_there_is_one_the_size_of_the_driver() -> None:
    cluster = running(executor={"mode": "Cluster"})
    memory = context(cluster).memory
    assert memory.current == cluster.allocation.memory
    cluster.remove("ConfigMap", "flights-s3sink")
    assert cluster.driver is not None
    assert context(cluster).memory.allocation is None
    assert context(cluster).memory.current == objects.sized_memory(cluster.driver)
    cluster.remove("Pod", "flights-s3sink-driver")
    assert context(cluster).memory.current is None


def test_the_load_is_that_of_the_report_or_else_the_last_one_of_the_status() -> None:
    cluster = running()
    cluster.report = report(
        memory=MemoryReport(max_open_objects=3, buffered_bytes=5, spilled_bytes=7, active_partitions=9)
    )
    expected = MemoryInputs(open_objects=3, held_bytes=12, active_partitions=9, remainder_bytes=0)
    assert context(cluster).memory.load == expected
    cluster.wait(MINUTE)
    cluster.converge()
    cluster.report = Unreachable(message="no answer")
    known = context(cluster).memory.load
    assert (known.open_objects, known.held_bytes, known.active_partitions) == (3, 12, 9)
    cluster.sink["status"] = {}
    assert context(cluster).memory.load == MemoryInputs()


def test_held_bytes_are_limited_to_the_largest_integer_of_the_api_server() -> None:
    cluster = running()
    most = 2**63 - 1
    cluster.report = report(memory=MemoryReport(buffered_bytes=most, spilled_bytes=most))
    assert context(cluster).memory.load.held_bytes == most


def with_bounds(**bounds: str) -> Json:
    return {"mode": "Cluster", "memory": bounds}


def test_bounds_that_differ_from_those_of_the_allocation_are_edited() -> None:
    cluster = running(executor=with_bounds(max="4Gi"))
    assert not context(cluster).memory.has_edited_bounds
    cluster.edit(executor=with_bounds(max="6Gi"))
    assert context(cluster).memory.has_edited_bounds
    cluster.remove("ConfigMap", "flights-s3sink")
    assert not context(cluster).memory.has_edited_bounds, "the bounds of the driver are not known"


def test_an_edit_of_the_memory_is_that_of_the_user_and_changed_defaults_are_not() -> None:
    cluster = running(executor=with_bounds(max="4Gi"))
    cluster.edit(executor=with_bounds(max="6Gi"))
    assert not context(cluster).memory.has_changed_by_defaults
    cluster = running(executor={"mode": "Cluster"})
    defaults = SinkDefaults.model_validate({"executor": {"memory": {"max": "2Gi"}}}, by_alias=True, by_name=False)
    cluster.settings = replace(SETTINGS, sink_defaults=defaults)
    assert context(cluster).memory.has_edited_bounds
    assert context(cluster).memory.has_changed_by_defaults


@pytest.mark.parametrize(
    ("reason", "text"),
    [(None, "Spark is creating the others"), ("Unschedulable", "0/3 nodes are available: no memory")],
)
def test_the_reason_why_executors_are_missing_is_that_of_the_first_that_does_not_start(
    reason: str | None, text: str
) -> None:
    cluster = running(executor={"mode": "Cluster", "instances": 3})
    pending = cluster.executor(2, phase="Pending")
    if reason is not None:
        scheduled = {"type": "PodScheduled", "status": "False", "reason": reason, "message": text}
        pending["status"]["conditions"] = [scheduled]
    cluster.executors = [cluster.executor(1), pending]
    state = context(cluster).scaling.executors
    assert (state.running, state.desired, state.is_incomplete) == (1, 3, True)
    assert state.message().startswith("1 of 3 executors are running: ")
    assert text in state.message()


def test_all_executors_are_complete_and_more_than_all_too() -> None:
    cluster = running(executor={"mode": "Cluster", "instances": 2})
    assert not context(cluster).scaling.executors.is_incomplete
    cluster.executors = [cluster.executor(number) for number in (1, 2, 3)]
    assert not context(cluster).scaling.executors.is_incomplete


@pytest.mark.parametrize("instances", [1, 4])
def test_in_local_mode_the_driver_pod_is_the_one_executor(instances: int) -> None:
    cluster = running(executor={"mode": "Local", "instances": instances})
    ctx = context(cluster)
    assert (ctx.scaling.desired, ctx.scaling.plan) == (1, None)
    assert ctx.sizing.driver_size == ctx.sizing.start_size


def test_a_fixed_size_of_the_driver_is_not_changed_by_kills_and_never_capped() -> None:
    cluster = running(executor={"mode": "Cluster"}, driver={"memory": "3Gi"})
    cluster.sink["status"]["memory"]["driverMinimum"] = "16Gi"
    cluster.sink["status"]["memory"]["minimumTime"] = to_timestamp(cluster.now)
    ctx = context(cluster)
    assert ctx.sizing.driver_size == 3 * GI
    assert not ctx.sizing.is_driver_capped
    cluster.edit(driver=None)
    assert context(cluster).sizing.is_driver_capped
    assert context(cluster).sizing.driver_size == 16 * GI


def test_the_driver_has_memory_for_the_topic_partitions_of_the_previous_one() -> None:
    cluster = running(executor={"mode": "Cluster"})
    small = context(cluster).sizing.driver_size
    for assigned, is_larger in ((1000, False), (100_000, True), (-5, False)):
        cluster.sink["status"]["progress"]["partitions"] = {"assigned": assigned}
        assert (context(cluster).sizing.driver_size > small) is is_larger


@pytest.mark.parametrize("kind", ["Pod", "ConfigMap"])
def test_after_a_rejected_driver_the_next_one_in_local_mode_has_the_last_smaller_size(kind: str) -> None:
    cluster = running()
    before = context(cluster).sizing.start_size
    cluster.sink["status"]["memory"] |= {"current": format_size(before), "minimum": format_size(2 * before)}
    cluster.sink["status"]["memory"]["minimumTime"] = to_timestamp(cluster.now)
    assert context(cluster).sizing.start_size >= 2 * before
    name = "flights-s3sink-driver"
    cluster.rejections = [Rejection(kind=kind, name=name, status=403, reason="", message="no", at_ms=cluster.now)]
    assert (context(cluster).sizing.start_size == before) is (kind == "Pod")
