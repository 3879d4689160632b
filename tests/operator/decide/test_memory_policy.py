"""What becomes of a sink's memory: growth, bounds, and kills for want of it."""

from __future__ import annotations

import pytest

from s3sink_operator import objects
from s3sink_operator.sizing.memory_sizing import MAX_DRIVER
from s3sink_operator.types import REPLACEMENT_KIND, Rejection, Settings, to_timestamp
from sink_job.api.errors import OutOfMemory
from sink_job.api.report import MemoryReport
from sink_job.api.units.quantities import parse_size
from tests.operator.fake_cluster import MINUTE, SETTINGS, START, Cluster, actions, report, running

HUNGRY = MemoryReport(open_objects=20, max_open_objects=20, buffered_bytes=900 << 20)


def limit(cluster: Cluster) -> str:
    assert cluster.driver
    return str(cluster.driver["spec"]["containers"][0]["resources"]["limits"]["memory"])


def test_a_sink_that_needs_more_memory_is_restarted_with_more() -> None:
    cluster = running()
    before = limit(cluster)
    cluster.report = report(memory=HUNGRY)
    cluster.reconcile()
    assert cluster.status["memory"]["lastChange"]["reason"].startswith("grow: ")
    desired = cluster.status["memory"]["lastChange"]["to"]
    cluster.converge()
    assert limit(cluster) == desired != before
    cluster.run(memory=HUNGRY)
    cluster.converge()
    assert cluster.ready == ("True", "Running")
    assert cluster.status["memory"]["current"] == desired


def test_the_status_has_the_active_topic_partitions_and_the_reason_names_them() -> None:
    cluster = running(executor={"mode": "Local", "cores": 2})
    cluster.report = report(memory=MemoryReport(slots=2, active_partitions=48, remainder_bytes=20 << 20))
    cluster.reconcile()
    memory = cluster.status["memory"]
    assert memory["lastChange"]["reason"].endswith("; 48 active topic-partitions, 24 per slot")
    assert memory["inputs"] | {"activePartitions": 48, "remainderBytes": 20 << 20, "executors": 1} == memory["inputs"]


def test_executors_share_the_active_topic_partitions() -> None:
    cluster = running(executor={"mode": "Cluster", "instances": 3, "cores": 2})
    cluster.report = report(memory=MemoryReport(slots=6, active_partitions=48, remainder_bytes=20 << 20))
    cluster.reconcile()
    assert cluster.status["memory"]["lastChange"]["reason"].endswith("; 48 active topic-partitions, 8 per slot")


def test_the_next_driver_starts_with_the_memory_for_the_active_topic_partitions() -> None:
    cluster = running()
    cluster.report = report(memory=MemoryReport(slots=1, active_partitions=48, remainder_bytes=20 << 20))
    cluster.converge()
    grown = limit(cluster)
    cluster.remove("Pod", "flights-s3sink-driver")
    cluster.reconcile()
    assert limit(cluster) == grown


def test_memory_grows_in_place_where_the_cluster_can() -> None:
    cluster = running()
    cluster.settings = Settings(image=SETTINGS.image, cluster_id=SETTINGS.cluster_id, supports_resize=True)
    cluster.report = report(memory=HUNGRY)
    cluster.converge()
    assert actions(cluster) == ["apply ConfigMap", "resize"]
    assert ("Normal", "MemoryResized") in cluster.events
    assert limit(cluster) == cluster.status["memory"]["current"]


def test_the_mode_recommend_changes_nothing() -> None:
    cluster = running(executor={"mode": "Local", "memory": {"mode": "Recommend"}})
    cluster.report = report(memory=HUNGRY)
    cluster.wait(MINUTE)
    cluster.converge()
    assert not actions(cluster)
    assert cluster.status["memory"]["recommended"] != cluster.status["memory"]["current"]


def test_a_maximum_that_is_too_little_is_a_condition() -> None:
    cluster = running(executor={"mode": "Local", "memory": {"max": "1536Mi"}})
    cluster.run(memory=HUNGRY)
    cluster.wait(MINUTE)
    cluster.converge_with_kubelet()
    cluster.run(memory=HUNGRY)
    cluster.converge()
    assert cluster.condition("MemoryCapped")["status"] == "True"
    assert cluster.ready == ("True", "Running")


def test_an_oom_kill_raises_the_memory_of_the_next_driver() -> None:
    cluster = running()
    before = limit(cluster)
    cluster.fail(exit_code=137, reason="OOMKilled")
    cluster.converge_with_kubelet()
    assert limit(cluster) != before
    assert cluster.status["memory"]["minimum"] == limit(cluster)


def test_a_worker_that_was_killed_raises_what_the_next_driver_gets_as_the_drivers_own_kill_does() -> None:
    cluster = running()
    before = limit(cluster)
    cluster.fail(OutOfMemory("a Python worker of Spark was killed"))
    cluster.converge_with_kubelet()
    assert limit(cluster) != before
    assert cluster.status["memory"]["minimum"] == limit(cluster)


def executor_size(cluster: Cluster) -> int:
    assert cluster.driver
    return objects.sized_memory(cluster.driver) or 0


def driver_size(cluster: Cluster) -> int:
    assert cluster.driver
    return objects.memory_limit(cluster.driver) or 0


def test_an_executor_that_was_killed_gets_half_as_much_again_and_its_driver_stays_as_it_is() -> None:
    cluster = running(executor={"mode": "Cluster"})
    driver, executor = limit(cluster), executor_size(cluster)
    cluster.fail(OutOfMemory("an executor was killed"))
    cluster.converge_with_kubelet()
    assert (limit(cluster), executor_size(cluster) >= executor * 3 // 2) == (driver, True)


def test_a_driver_beside_executors_that_was_killed_gets_half_as_much_again_and_they_stay_as_they_are() -> None:
    cluster = running(executor={"mode": "Cluster"})
    driver, executor = driver_size(cluster), executor_size(cluster)
    cluster.fail(exit_code=137, reason="OOMKilled")
    cluster.converge_with_kubelet()
    assert driver_size(cluster) >= driver * 3 // 2
    assert executor_size(cluster) == executor


def test_a_repeatedly_oom_killed_driver_grows_to_a_reported_limit() -> None:
    cluster = running(executor={"mode": "Cluster"})
    for _ in range(12):
        cluster.fail(exit_code=137, reason="OOMKilled")
        cluster.converge()
        cluster.wait(70 * MINUTE)
        cluster.converge_with_kubelet()
    assert driver_size(cluster) == MAX_DRIVER
    assert "spec.driver.memory" in cluster.condition("DriverMemoryCapped")["message"]
    cluster.edit(driver={"memory": "20Gi"})
    cluster.converge_with_kubelet()
    assert not cluster.condition("DriverMemoryCapped")


RESIZED = Settings(image=SETTINGS.image, cluster_id=SETTINGS.cluster_id, supports_resize=True)


def resized(kind: str, reason: str) -> Cluster:
    """A sink that was given more in place, which its node answers with a condition."""
    cluster = running()
    cluster.settings = RESIZED
    cluster.report = report(memory=HUNGRY)
    cluster.converge()
    assert cluster.driver
    said = {"type": kind, "status": "True", "reason": reason, "message": "no room", "lastTransitionTime": STAMP}
    cluster.driver["status"]["conditions"] = [said]
    return cluster


STAMP = to_timestamp(START)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        pytest.param("PodResizePending", "Infeasible", id="is too small for it"),
        pytest.param("PodResizeInProgress", "Error", id="failed at it"),
    ],
)
def test_a_driver_is_restarted_for_more_memory_where_its_node(kind: str, reason: str) -> None:
    cluster = resized(kind, reason)
    desired = limit(cluster)
    cluster.converge()
    assert cluster.status["attempts"][0]["reason"] == "MemoryChanged"
    assert "no room" in cluster.status["attempts"][0]["message"]
    assert limit(cluster) == desired
    assert len(cluster.status["memory"]["changeTimes"]) == 1


def test_a_node_that_puts_more_memory_off_is_given_a_while() -> None:
    cluster = resized("PodResizePending", "Deferred")
    assert cluster.converge() == 0
    cluster.wait(RESIZED.resize_timeout_ms)
    cluster.converge()
    assert cluster.status["attempts"][0]["reason"] == "MemoryChanged"


def test_more_memory_that_is_under_way_is_waited_for() -> None:
    cluster = resized("PodResizeInProgress", "")
    assert cluster.converge() == 0


def swinging(cluster: Cluster, opened: int) -> int:
    """How often the status is written in ten minutes in which every other pass observes a sink that holds little."""
    cluster.converge_with_kubelet()
    cluster.log.clear()
    for number in range(40):
        cluster.wait(MINUTE // 4)
        held = (4 << 30) if number % 2 else (1 << 20)
        cluster.load = MemoryReport(
            slots=1, open_objects=opened, max_open_objects=opened, part_size=25 << 20, buffered_bytes=held
        )
        if cluster.report is not None:
            cluster.report = report(now=cluster.now, memory=cluster.load)
        cluster.reconcile()
        cluster.kubelet()
    return cluster.log.count("status")


def test_memory_around_its_maximum_is_written_at_the_interval_of_progress() -> None:
    cluster = running(executor={"mode": "Local", "memory": {"max": "2Gi"}})
    assert swinging(cluster, opened=200) <= 22
    assert cluster.condition("MemoryCapped")["status"] == "True"
    cluster.report = report(now=cluster.now)
    cluster.wait(10 * MINUTE)
    cluster.converge()
    assert not cluster.condition("MemoryCapped")


def test_memory_below_the_current_size_is_written_at_the_interval_of_progress() -> None:
    cluster = running(executor={"mode": "Local", "memory": {"max": "8Gi"}})
    cluster.load = MemoryReport(
        slots=1, open_objects=300, max_open_objects=300, part_size=25 << 20, buffered_bytes=4 << 30
    )
    cluster.report = report(memory=cluster.load)
    assert swinging(cluster, opened=200) <= 30


def rejected(cluster: Cluster, kind: str, status: int = 403) -> Rejection:
    message = "pods is forbidden: exceeded quota: small, requested: limits.memory=2Gi, used: limits.memory=1Gi"
    name = "flights-s3sink-driver"
    return Rejection(kind=kind, name=name, status=status, reason="Forbidden", message=message, at_ms=cluster.now)


def test_a_restart_for_more_memory_depends_on_a_dry_run_of_the_larger_pod() -> None:
    cluster = running()
    before = parse_size(limit(cluster))
    cluster.report = report(memory=HUNGRY)
    found = cluster.decide().writes.replacement
    assert found
    assert objects.memory_limit(found.pod) == before + found.growth
    assert found.growth > 0


def test_a_driver_whose_larger_successor_is_rejected_keeps_running_and_its_memory() -> None:
    cluster = running()
    before = limit(cluster)
    cluster.report = report(memory=HUNGRY)
    cluster.rejections = [rejected(cluster, REPLACEMENT_KIND)]
    cluster.converge()
    assert actions(cluster) == []
    assert cluster.ready == ("True", "Running")
    assert limit(cluster) == before
    assert "lastChange" not in cluster.status["memory"]
    condition = cluster.condition("WriteRejected")
    assert condition["reason"] == "QuotaExceeded"
    assert "would replace the running flights-s3sink-driver exceeds the quota" in condition["message"]
    assert cluster.events.count(("Warning", "WriteRejected")) == 1


def test_the_larger_pod_is_tried_again_after_a_while() -> None:
    cluster = running()
    cluster.report = report(memory=HUNGRY)
    cluster.rejections = [rejected(cluster, REPLACEMENT_KIND)]
    cluster.converge()
    assert cluster.decide().writes.replacement is None
    cluster.wait(SETTINGS.rejected_retry_ms)
    assert cluster.decide().writes.replacement
    assert cluster.decide().writes.delete


def test_a_rejected_successor_that_is_no_longer_needed_is_no_condition() -> None:
    cluster = running()
    cluster.report = report(memory=HUNGRY)
    cluster.rejections = [rejected(cluster, REPLACEMENT_KIND)]
    cluster.converge()
    cluster.report = report()
    cluster.converge()
    assert not cluster.condition("WriteRejected")


def test_a_driver_that_is_rejected_after_all_is_created_with_the_previous_memory() -> None:
    cluster = running()
    before = limit(cluster)
    cluster.report = report(memory=HUNGRY)
    cluster.reconcile()
    cluster.rejections = [rejected(cluster, "Pod")]
    cluster.converge()
    assert cluster.ready == ("False", "QuotaExceeded")
    cluster.wait(MINUTE * 10)
    cluster.converge()
    assert limit(cluster) == before


def test_a_rejected_driver_never_gets_less_memory_than_the_minimum() -> None:
    cluster = running()
    cluster.report = report(memory=HUNGRY)
    cluster.reconcile()
    cluster.rejections = [rejected(cluster, "Pod")]
    cluster.edit(executor={"mode": "Local", "memory": {"min": "3Gi", "max": "4Gi"}})
    cluster.wait(MINUTE * 10)
    cluster.converge()
    assert parse_size(limit(cluster)) >= parse_size("3Gi")
