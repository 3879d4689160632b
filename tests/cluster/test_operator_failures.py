"""Drivers that fail, and pods that do not start or do not end: what the operator says and does on a real API server.

The harness plays the kubelet's part, and the nodes'.
"""

from __future__ import annotations

from functools import partial

import pytest

from devtools.faults.kube_proxy import KubeFaults, Reject, call
from devtools.kube.client import Json
from devtools.processes import wait_until
from sink_job.api.errors import OwnershipConflict
from sink_job.api.report import Failure, FinalReport, RunState
from sink_job.api.units.quantities import parse_size
from tests.support.operator_fixture import (
    CHILD,
    DRIVER,
    Operated,
    StartOperator,
    condition,
    is_ready,
    manifest,
    reason_is,
    report,
)

pytestmark = pytest.mark.cluster


def ended(code: int, reason: str, message: str) -> str:
    """What a driver leaves as its termination message."""
    failure = Failure(reason=reason, message=message, exit_code=code)
    return FinalReport(failure=failure).termination_message()


@pytest.mark.parametrize(
    ("code", "reason"), [(2, "InvalidSpec"), (5, "DataLoss"), (6, "ObjectConflict"), (7, "ConfigurationError")]
)
def test_a_driver_with_a_user_failure_is_reported_and_waits(sink: Operated, code: int, reason: str) -> None:
    said = ended(code, reason, "the bucket is not there")
    sink.harness.at_start(DRIVER, lambda pod: sink.harness.fail(pod, code, said))
    sink.apply()
    ready = sink.wait_reason(reason)
    assert "the bucket is not there. Failed once; next attempt at 2" in ready["message"]
    found = sink.sink
    assert condition(found, "Stalled")["status"] == "True"
    assert found["status"]["retry"]["failures"] == 1
    assert found["status"]["attempts"][0]["exitCode"] == code
    assert sink.driver["status"]["phase"] == "Failed"  # kept for its log


def test_an_edit_ends_the_wait_after_a_failure(sink: Operated) -> None:
    sink.harness.at_start(DRIVER, lambda pod: sink.harness.fail(pod, 7), sink.starts)
    sink.apply()
    before = sink.driver if sink.wait_reason("ConfigurationError") else {}
    sink.apply(rotation={"flushSize": 200})
    sink.next_driver(before)
    assert "retry" not in sink.wait_ready()["status"]


def test_each_attempt_that_fails_after_its_report_has_one_warning_and_is_never_unreachable(sink: Operated) -> None:
    """The report, the back-off and the attempt before have the same reason."""
    failure = Failure(reason="BucketNotFound", message="no bucket archive", exit_code=7)
    sink.harness.at_start(DRIVER, lambda pod: sink.runs(pod, report(RunState.FAILED, failure=failure)))
    sink.apply()
    for attempt in (1, 2):
        if attempt > 1:
            sink.annotate(restart="1")
        sink.wait(partial(_reports_failure, attempt), "its report")
        sink.harness.silence(DRIVER)
        sink.annotate(look=f"again {attempt}")
        sink.harness.fail(DRIVER, 7, ended(7, failure.reason, failure.message))
        sink.wait(lambda found: found["status"].get("retry"), "the back-off")
        wait_until(partial(_has_warnings, sink, attempt), "a warning for each attempt", seconds=60)
        assert set(_warnings(sink)) == {failure.reason}
    assert _warnings(sink) == ["BucketNotFound", "BucketNotFound"]


def _reports_failure(attempt: int, sink: Json) -> bool:
    attempts = sink.get("status", {}).get("attempts") or [{}]
    runs = attempts[0].get("number") == attempt and "endTime" not in attempts[0]
    return runs and reason_is("BucketNotFound")(sink)


def _has_warnings(sink: Operated, count: int) -> bool:
    return len(_warnings(sink)) >= count


def _warnings(sink: Operated) -> list[str]:
    """The reasons of all warnings about the sink."""
    return [each["reason"] for each in sink.events() if each["type"] == "Warning"]


def test_a_driver_with_a_transient_failure_is_restarted_at_once(sink: Operated) -> None:
    said = ended(75, "TransientError", "Kafka did not answer")
    sink.harness.at_start(DRIVER, lambda pod: sink.harness.fail(pod, 75, said), sink.starts)
    sink.apply()
    sink.wait_ready()
    first = sink.status["attempts"][1]
    assert (first["reason"], first["exitCode"], first["number"]) == ("TransientError", 75, 1)
    assert sink.status["retry"]["failures"] == 1


def test_a_restart_ends_the_wait_after_an_infrastructure_failure(sink: Operated) -> None:
    said = ended(75, "TransientError", "Kafka did not answer")
    sink.harness.at_start(DRIVER, *[lambda pod: sink.harness.fail(pod, 75, said)] * 2, sink.starts)
    sink.apply()
    waiting = sink.wait(lambda found: found.get("status", {}).get("retry", {}).get("failures") == 2, "a back-off")
    assert "To retry now: kubectl s3sink restart flights" in condition(waiting, "Ready")["message"]
    sink.annotate(restart="now")
    sink.wait_ready()


def ownership_conflict(sink: Operated, pod: str, name: str) -> None:
    """The driver ends: the S3Sink `name` of this cluster owns the topic."""
    container = sink.kube.get("Pod", pod)["spec"]["containers"][0]
    cluster = next(each["value"] for each in container["env"] if each["name"] == "S3SINK_CLUSTER")
    namespace = sink.kube.namespace
    error = OwnershipConflict("the topic belongs to another sink", f"{cluster}/{namespace}/{name}/{namespace}.{name}")
    failure = FinalReport(failure=Failure.of(error))
    sink.harness.fail(pod, error.exit_code, failure.termination_message())


def take_over_arguments(sink: Operated) -> list[str]:
    return [each for each in sink.driver["spec"]["containers"][0]["args"] if "take-over" in each]


def test_what_a_deleted_sink_owned_is_taken_over_without_a_user(sink: Operated) -> None:
    sink.harness.at_start(DRIVER, lambda pod: ownership_conflict(sink, pod, "old"), sink.starts)
    sink.apply()
    sink.wait_ready()
    namespace = sink.kube.namespace
    assert [each.endswith(f"/{namespace}/old/{namespace}.old") for each in take_over_arguments(sink)] == [True]


def test_what_an_existing_sink_owns_is_taken_over_after_its_deletion_or_by_annotation(sink: Operated) -> None:
    sink.kube.apply(manifest("old", state="Paused", s3={"bucket": "another", "region": "eu-central-1"}))
    sink.harness.at_start(DRIVER, lambda pod: ownership_conflict(sink, pod, "old"), sink.starts)
    sink.apply()
    message = sink.wait_reason("OwnershipConflict")["message"]
    assert f"Or delete S3Sink {sink.kube.namespace}/old: this sink takes over" in message
    assert take_over_arguments(sink) == []
    sink.annotate(**{"take-over": sink.status["retry"]["owner"]})
    sink.wait_ready()
    assert len(take_over_arguments(sink)) == 1


def test_an_oom_killed_driver_gets_more_memory(sink: Operated) -> None:
    sizes: list[int] = []

    def too_small_at_first(pod: str) -> None:
        limits = sink.kube.get("Pod", pod)["spec"]["containers"][0]["resources"]["limits"]
        sizes.append(parse_size(limits["memory"]))
        sink.starts(pod) if len(sizes) > 1 else sink.harness.oom_kill(pod)

    sink.harness.at_start(DRIVER, too_small_at_first)
    sink.apply()
    sink.wait_ready()
    assert sizes[1] > sizes[0] * 1.3
    assert sink.status["attempts"][1]["reason"] == "OOMKilled"


def test_a_driver_that_exits_with_0_is_restarted(sink: Operated) -> None:
    sink.harness.at_start(DRIVER, sink.harness.succeed, sink.starts)
    sink.apply()
    sink.wait_ready()
    assert sink.status["attempts"][1]["reason"] == "UnexpectedExit"


def test_an_evicted_driver_is_restarted(sink: Operated) -> None:
    sink.started()
    sink.harness.evict(DRIVER)
    sink.wait(lambda found: found["status"]["attempts"][0]["number"] == 2 and is_ready(found), "the next attempt")
    assert sink.status["attempts"][1]["reason"] == "Evicted"


def test_a_driver_deleted_by_a_user_is_re_created(sink: Operated) -> None:
    before = sink.started()
    sink.kube.delete("Pod", DRIVER)
    sink.next_driver(before)
    sink.wait(lambda found: found["status"]["attempts"][0]["number"] == 2 and is_ready(found), "the next attempt")
    assert sink.status["attempts"][1]["reason"] in (
        "Deleted",
        "PodDisappeared",
    )  # it depends on whether its end was seen


def test_an_unschedulable_driver_is_reported_with_the_missing_resource(sink: Operated) -> None:
    sink.harness.at_start(DRIVER, sink.harness.unschedulable)
    sink.apply()
    assert "Insufficient memory" in sink.wait_reason("Unschedulable")["message"]
    sink.starts(DRIVER)
    sink.wait_ready()


def test_an_image_pull_failure_is_reported_and_left_to_the_kubelet(sink: Operated) -> None:
    message = "manifest unknown"
    sink.harness.at_start(DRIVER, lambda pod: sink.harness.waiting(pod, "ImagePullBackOff", message))
    sink.apply()
    assert message in sink.wait_reason("ImagePullFailed")["message"]
    assert condition(sink.sink, "Stalled")["status"] == "True"


def test_a_driver_that_does_not_answer_is_unknown_and_kept(sink: Operated) -> None:
    before = sink.started()
    sink.harness.silence(DRIVER)
    sink.annotate(look="again")
    assert sink.wait_reason("ReportUnreachable")["status"] == "Unknown"
    assert sink.driver["metadata"]["uid"] == before["metadata"]["uid"]
    sink.harness.report(DRIVER, report())
    sink.wait_ready()


def test_a_driver_on_a_lost_node_is_replaced_after_a_timeout(alone: Operated, start: StartOperator) -> None:
    start("--node-lost-timeout", "5s")  # the condition lasts longer than the pause of the wait
    before = alone.started()
    alone.harness.lose_node()
    alone.wait_reason("NodeLost")
    alone.next_driver(before)
    alone.wait_ready()


def test_a_driver_whose_node_is_gone_is_replaced(alone: Operated, start: StartOperator) -> None:
    start("--node-lost-timeout", "2s")
    before = alone.started()
    alone.harness.node("another")
    alone.harness.remove_node()
    alone.next_driver(before)
    alone.wait_ready()


def test_too_many_executor_failures_are_named_and_retried(sink: Operated) -> None:
    """Spark itself ends the driver then, without a word of the job's own."""
    sink.harness.at_start(DRIVER, lambda pod: sink.harness.fail(pod, 11), sink.starts)
    sink.apply()
    sink.wait_ready()
    first = sink.status["attempts"][1]
    assert (first["reason"], first["exitCode"]) == ("TooManyExecutorFailures", 11)
    assert "spec.executor.memory" in first["message"]


def test_a_driver_that_is_stuck_terminating_is_deleted_by_force(alone: Operated, start: StartOperator) -> None:
    """Once its own time to end is over, and as long again as a lost node is given."""
    start("--node-lost-timeout", "1s")
    alone.harness.stick(DRIVER)
    before = alone.started(driver={"podTemplate": {"spec": {"terminationGracePeriodSeconds": 1}}})
    alone.annotate(restart="1")
    if alone.driver["metadata"]["uid"] == before["metadata"]["uid"]:
        alone.kube.delete("Pod", DRIVER, grace_s=1)
    alone.next_driver(before)
    alone.wait_ready()


def test_a_start_whose_objects_cannot_be_created_is_reported_while_it_is_retried(
    alone: Operated, start: StartOperator, faults: KubeFaults
) -> None:
    faults.when(call("apply configmaps"), Reject(503), times=None)
    start()
    alone.apply()
    alone.wait_reason("Starting")
    assert alone.kube.find("Pod", DRIVER) is None


def test_a_child_whose_deletion_no_watch_reported_is_created_after_the_driver_is_rejected(
    alone: Operated, start: StartOperator, faults: KubeFaults
) -> None:
    start()
    before = alone.started()
    faults.freeze("serviceaccounts")
    alone.kube.delete("ServiceAccount", CHILD)
    alone.harness.fail(DRIVER, 75)
    assert "service account" in alone.wait_reason("AdmissionDenied")["message"]
    alone.annotate(restart="1")
    alone.next_driver(before)
    alone.wait_ready()
