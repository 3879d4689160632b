"""Changes of memory without a restart: executors and drivers that are resized, and executors that are replaced."""

from __future__ import annotations

from dataclasses import replace

import pytest

from s3sink_operator.objects.pods import memory_limit
from s3sink_operator.sizing.memory_sizing import IN_PLACE
from s3sink_operator.types import Json, Rejection, RolloutGate, Settings, to_timestamp
from sink_job.api.units.quantities import GI, MI, format_size, parse_size
from tests.operator.fake_cluster import MINUTE, SETTINGS, Cluster, actions, running

RESIZABLE = replace(SETTINGS, supports_resize=True)
SMALL, LARGE = 6, 96
EXECUTORS = ["flights-1-exec-1", "flights-1-exec-2"]


def report_load(cluster: Cluster, active: int, *, applied: int | None = None, follows: bool = True) -> None:
    cluster.report_load(active, remainder=20 * MI, applied=applied, follows=follows)


def with_executors(settings: Settings = RESIZABLE) -> Cluster:
    """A sink with two executors that have what was allocated, and few active topic-partitions."""
    cluster = running(executor={"mode": "Cluster", "instances": 2})
    cluster.settings = settings
    cluster.executors = [cluster.executor(number, memory=cluster.allocation.memory) for number in (1, 2)]
    report_load(cluster, SMALL)
    cluster.converge()
    cluster.log.clear()
    return cluster


def grown(settings: Settings = RESIZABLE) -> Cluster:
    """That sink with many active topic-partitions, for which its driver has applied the memory."""
    cluster = with_executors(settings)
    report_load(cluster, LARGE)
    cluster.converge()
    report_load(cluster, LARGE)
    return cluster


def sizes(cluster: Cluster) -> set[int | None]:
    return {memory_limit(each) for each in cluster.executors or ()}


def idle(cluster: Cluster, active: int = SMALL) -> None:
    """Time passes until less memory has sufficed for long enough."""
    size = cluster.allocation.memory
    for pause in (MINUTE, RESIZABLE.shrink_after_ms):  # the first status may be written late
        report_load(cluster, active, applied=size)
        cluster.converge()
        cluster.wait(pause)
    report_load(cluster, active, applied=size)


def says(cluster: Cluster, kind: str, reason: str, *, actual: int | None = None) -> None:
    """The node answers a resize of the first executor with a condition."""
    answer = {"type": kind, "status": "True", "reason": reason, "lastTransitionTime": to_timestamp(cluster.now)}
    assert cluster.executors
    status = cluster.executors[0]["status"]
    status["conditions"] = [answer]
    if actual is not None:
        resources = {"limits": {"memory": format_size(actual)}}
        status["containerStatuses"] = [{"name": "s3sink", "resources": resources}]


def rejection(status: int, cluster: Cluster, name: str = EXECUTORS[0]) -> Rejection:
    return Rejection(kind="pods/resize", name=name, status=status, reason="", message="no", at_ms=cluster.now)


def test_executors_grow_in_place_and_the_driver_is_kept() -> None:
    cluster = with_executors()
    before = cluster.allocation.memory
    report_load(cluster, LARGE, applied=before)
    cluster.converge()
    assert actions(cluster) == ["apply ConfigMap", *(f"resize {name}" for name in EXECUTORS)]
    assert sizes(cluster) == {cluster.allocation.memory}
    assert cluster.allocation.memory > before
    assert parse_size(cluster.status["memory"]["current"]) == cluster.allocation.memory
    assert cluster.events == [("Normal", "MemoryResized")]
    assert cluster.ready == ("True", "Running")


def test_executors_shrink_only_after_the_driver_has_applied_the_new_size() -> None:
    cluster = grown()
    large = cluster.allocation.memory
    cluster.log.clear()
    idle(cluster)
    cluster.converge()
    assert actions(cluster) == ["apply ConfigMap"]
    small = cluster.allocation.memory
    assert small < large
    assert sizes(cluster) == {large}
    report_load(cluster, SMALL)
    cluster.converge()
    assert sizes(cluster) == {small}
    assert actions(cluster) == ["apply ConfigMap", *(f"resize {name}" for name in EXECUTORS)]


def test_memory_follows_the_active_topic_partitions_many_times_a_day_without_a_restart() -> None:
    cluster = with_executors()
    for _ in range(2 * IN_PLACE.changes):
        report_load(cluster, LARGE)
        cluster.converge()
        idle(cluster)
        cluster.converge()
        report_load(cluster, SMALL)
        cluster.converge()
    assert not [each for each in actions(cluster) if each.startswith(("delete", "create"))]
    assert len(cluster.status["memory"]["changeTimes"]) == IN_PLACE.changes + 1
    assert sizes(cluster) == {cluster.allocation.memory}


def test_a_pass_that_is_interrupted_after_the_allocation_is_continued_by_the_next_one() -> None:
    cluster = with_executors()
    report_load(cluster, LARGE)
    cluster.reconcile(2)
    assert actions(cluster) == ["apply ConfigMap"]
    cluster.converge()
    assert sizes(cluster) == {cluster.allocation.memory}
    assert len(cluster.status["memory"]["changeTimes"]) == 1


def test_an_executor_that_its_node_cannot_resize_is_replaced() -> None:
    cluster = grown()
    cluster.log.clear()
    says(cluster, "PodResizePending", "Infeasible")
    cluster.converge()
    assert actions(cluster) == [f"delete {EXECUTORS[0]}"]


def test_an_executor_is_replaced_only_after_the_driver_gives_new_ones_the_new_size() -> None:
    cluster = with_executors()
    before = cluster.allocation.memory
    report_load(cluster, LARGE, applied=before)
    cluster.converge()
    cluster.log.clear()
    says(cluster, "PodResizePending", "Infeasible")
    cluster.converge()
    assert not actions(cluster)


def test_a_deferred_resize_of_an_executor_is_waited_for_some_minutes() -> None:
    cluster = grown()
    cluster.log.clear()
    says(cluster, "PodResizePending", "Deferred")
    cluster.converge()
    assert not actions(cluster)
    cluster.wait(RESIZABLE.resize_timeout_ms)
    cluster.converge()
    assert actions(cluster) == [f"delete {EXECUTORS[0]}"]


def test_an_executor_that_still_uses_more_than_its_new_size_is_kept() -> None:
    cluster = grown()
    large = cluster.allocation.memory
    idle(cluster)
    cluster.converge()
    report_load(cluster, SMALL)
    cluster.converge()
    cluster.log.clear()
    says(cluster, "PodResizeInProgress", "Error", actual=large)
    cluster.wait(60 * MINUTE)
    cluster.converge()
    assert not actions(cluster)


def test_without_resizes_executors_are_replaced_one_after_the_other() -> None:
    cluster = grown(SETTINGS)
    assert actions(cluster) == ["apply ConfigMap"]
    cluster.converge()
    assert actions(cluster) == ["apply ConfigMap", f"delete {EXECUTORS[0]}"]
    cluster.executors = [*(cluster.executors or ()), cluster.executor(3, memory=cluster.allocation.memory)]
    cluster.converge()
    assert actions(cluster) == ["apply ConfigMap", *(f"delete {name}" for name in EXECUTORS)]


def test_executors_whose_resize_is_invalid_are_replaced() -> None:
    cluster = with_executors()
    cluster.rejections = [rejection(422, cluster)]
    report_load(cluster, LARGE)
    cluster.converge()
    report_load(cluster, LARGE)
    cluster.converge()
    assert actions(cluster) == ["apply ConfigMap", f"resize {EXECUTORS[1]}", f"delete {EXECUTORS[0]}"]


def test_executors_whose_resize_exceeds_a_quota_are_kept_and_resized_later() -> None:
    cluster = with_executors()
    cluster.rejections = [rejection(403, cluster)]
    report_load(cluster, LARGE)
    cluster.converge()
    report_load(cluster, LARGE)
    cluster.converge()
    assert actions(cluster) == ["apply ConfigMap", f"resize {EXECUTORS[1]}"]
    assert cluster.condition("WriteRejected")["status"] == "True"
    cluster.wait(RESIZABLE.rejected_retry_ms)
    cluster.converge()
    assert actions(cluster)[-1] == f"resize {EXECUTORS[0]}"


def test_a_rejected_resize_of_an_executor_that_is_gone_is_no_condition() -> None:
    cluster = with_executors()
    cluster.rejections = [rejection(422, cluster, "flights-1-exec-9")]
    cluster.converge()
    assert not cluster.condition("WriteRejected")


def test_a_driver_that_does_not_report_what_it_has_applied_is_restarted() -> None:
    cluster = with_executors()
    report_load(cluster, LARGE, follows=False)
    cluster.reconcile()
    assert cluster.status["attempts"][0]["reason"] == "MemoryChanged"


def test_an_edited_maximum_changes_running_executors() -> None:
    cluster = grown()
    cluster.log.clear()
    cluster.edit(executor={"mode": "Cluster", "instances": 2, "memory": {"max": "1Gi"}})
    cluster.converge()
    assert actions(cluster) == ["apply ConfigMap"]
    report_load(cluster, LARGE)
    cluster.converge()
    assert sizes(cluster) == {1 * GI}
    assert cluster.status["memory"]["lastChange"]["reason"] == "shrink: spec.executor.memory is Auto, 512Mi to 1Gi"
    assert cluster.condition("MemoryCapped")["status"] == "True"
    cluster.edit(executor={"mode": "Cluster", "instances": 2, "memory": {"min": "4Gi"}})
    cluster.converge()
    assert sizes(cluster) == {4 * GI}
    assert not [each for each in actions(cluster) if each.startswith(("delete", "create"))]


def test_a_scaled_sink_keeps_its_driver_which_reads_the_new_number() -> None:
    cluster = with_executors()
    cluster.edit(executor={"mode": "Cluster", "instances": 5})
    cluster.converge()
    assert actions(cluster) == ["apply ConfigMap"]
    assert cluster.allocation.executors == 5
    assert "2 of 5 executors are running" in cluster.condition("Ready")["message"]
    assert cluster.status["observedGeneration"] == 2


def test_a_driver_that_waits_for_its_turn_in_a_rollout_follows_a_new_number_of_executors() -> None:
    cluster = with_executors()
    cluster.settings = replace(RESIZABLE, image="job:2")
    cluster.rollout = RolloutGate(is_open=False)
    cluster.edit(executor={"mode": "Cluster", "instances": 5})
    cluster.converge()
    assert actions(cluster) == ["apply ConfigMap"]
    config = cluster.get("ConfigMap", "flights-s3sink") or {}
    assert SETTINGS.image in config["data"]["spark.properties"]


def in_one_pod() -> Cluster:
    """A sink in Local mode with many active topic-partitions."""
    cluster = running()
    cluster.settings = RESIZABLE
    report_load(cluster, LARGE)
    cluster.converge()
    report_load(cluster, LARGE)
    cluster.converge()
    cluster.log.clear()
    return cluster


def limit(cluster: Cluster) -> int | None:
    return memory_limit(cluster.driver or Json())


def test_a_sink_in_local_mode_shrinks_in_place_after_its_tasks() -> None:
    cluster = in_one_pod()
    large = limit(cluster)
    idle(cluster)
    cluster.converge()
    assert (actions(cluster), limit(cluster)) == (["apply ConfigMap"], large)
    report_load(cluster, SMALL)
    cluster.converge()
    assert actions(cluster) == ["apply ConfigMap", "resize"]
    assert limit(cluster) == cluster.allocation.memory


def test_a_sink_in_local_mode_whose_resize_exceeds_a_quota_keeps_running() -> None:
    cluster = running()
    cluster.settings = RESIZABLE
    cluster.rejections = [rejection(403, cluster, "flights-s3sink-driver")]
    report_load(cluster, LARGE)
    cluster.converge()
    assert actions(cluster) == ["apply ConfigMap"]
    assert cluster.ready == ("True", "Running")


DENIALS = [
    "pods \"p\" is forbidden: ValidatingAdmissionPolicy 'limit' with binding 'limit' denied request: too much",
    'admission webhook "limit.example.com" denied the request: too much',
]


@pytest.mark.parametrize("message", DENIALS, ids=["policy", "webhook"])
def test_a_sink_in_local_mode_whose_resize_a_policy_denies_keeps_running(message: str) -> None:
    """With status 422, as for a pod that cannot be resized. The policy would deny the next pod, too."""
    cluster = running()
    cluster.settings = RESIZABLE
    cluster.rejections = [replace(rejection(422, cluster, "flights-s3sink-driver"), message=message)]
    report_load(cluster, LARGE)
    cluster.converge()
    assert actions(cluster) == ["apply ConfigMap"]
    assert cluster.ready == ("True", "Running")
    assert cluster.condition("WriteRejected")["status"] == "True"


@pytest.mark.parametrize("message", DENIALS, ids=["policy", "webhook"])
def test_executors_whose_resize_a_policy_denies_are_kept(message: str) -> None:
    cluster = with_executors()
    cluster.rejections = [replace(rejection(422, cluster, name), message=message) for name in EXECUTORS]
    for _ in range(2):
        report_load(cluster, LARGE)
        cluster.converge()
    assert actions(cluster) == ["apply ConfigMap"]


@pytest.mark.parametrize("late", [False, True])
def test_where_the_api_server_decreases_no_limits_a_restart_for_less_memory_waits_for_an_hour(late: bool) -> None:
    """Kubernetes 1.33."""
    cluster = in_one_pod()
    idle(cluster)
    cluster.converge()
    report_load(cluster, SMALL)
    cluster.rejections = [rejection(422, cluster, "flights-s3sink-driver")]
    cluster.wait(61 * MINUTE if late else MINUTE)
    report_load(cluster, SMALL)
    cluster.reconcile()
    restarted = cluster.status["attempts"][0].get("reason") == "MemoryChanged"
    assert restarted is late
