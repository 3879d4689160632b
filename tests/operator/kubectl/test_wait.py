"""Waiting until an action is completed, with one reconcile pass of the operator for each poll."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from s3sink_operator import names
from s3sink_operator.kubectl import actions
from s3sink_operator.kubectl.wait import WaitResult, wait_for
from s3sink_operator.types import Json, annotation
from sink_job.api.errors import BucketNotFound
from tests.operator.fake_cluster import Cluster, running


def waited(cluster: Cluster, action: actions.Action, polls: int = 12, silent: int = 0) -> tuple[WaitResult, str]:
    """The result of waiting for an action, with one reconcile pass of the operator for each poll. The first
    the first `silent` polls get no answer."""
    written = {key: value for key, value in action.annotations.items() if value is not None}
    for removed in action.annotations.keys() - written.keys():
        cluster.sink["metadata"]["annotations"].pop(removed, None)
    cluster.annotate(written)
    before = json.loads(json.dumps(cluster.sink))

    answers = iter([False] * silent)

    def poll() -> tuple[Json, Json | None] | None:
        return (cluster.sink, cluster.driver) if next(answers, True) else None

    def sleep(_: float) -> None:
        cluster.reconcile()
        cluster.kubelet()

    clock: Iterator[int] = iter(range(1000))
    said: list[str] = []
    outcome = wait_for(
        action, before, poll, timeout_s=polls, clock=lambda: next(clock), sleep=sleep, report=said.append
    )
    return outcome.result, outcome.message


def test_waiting_for_a_restart_ends_when_the_new_driver_is_ready() -> None:
    cluster = running()
    action = actions.restart(cluster.sink, "r1")
    assert waited(cluster, action) == (WaitResult.DONE, "")
    assert cluster.driver
    assert annotation(cluster.driver, "s3sink.io/restarted-for") == "r1"


@pytest.mark.parametrize("name", ["pause", "stop"])
def test_waiting_for_a_sink_to_halt_ends_when_no_driver_is_left(name: str) -> None:
    cluster = running()
    action = actions.pause(cluster.sink) if name == "pause" else actions.stop(cluster.sink)
    assert waited(cluster, action) == (WaitResult.DONE, "")
    assert cluster.driver is None
    assert waited(cluster, actions.resume(cluster.sink)) == (WaitResult.DONE, "")
    assert cluster.ready == ("True", "Running")


def test_waiting_ends_with_a_failure_that_requires_user_action() -> None:
    cluster = running()
    action = actions.restart(cluster.sink, "r1")
    cluster.annotate({names.RESTART_ANNOTATION: "r1"})
    before = json.loads(json.dumps(cluster.sink))
    cluster.converge()
    cluster.kubelet()
    cluster.fail(BucketNotFound("there is no bucket archive"))
    cluster.converge()
    outcome = wait_for(
        action,
        before,
        lambda: (cluster.sink, cluster.driver),
        timeout_s=9,
        clock=lambda: 0,
        sleep=lambda _: None,
        report=lambda _: None,
    )
    assert outcome.result is WaitResult.FAILED
    assert "there is no bucket archive" in outcome.message


def test_an_api_server_that_does_not_answer_for_a_moment_does_not_end_the_wait() -> None:
    cluster = running()
    assert waited(cluster, actions.restart(cluster.sink, "r1"), silent=3) == (WaitResult.DONE, "")


def test_an_api_server_that_never_answers_ends_the_wait_at_its_time() -> None:
    cluster, clock = running(), iter(range(100))
    outcome = wait_for(
        actions.restart(cluster.sink, "r1"),
        cluster.sink,
        lambda: None,
        timeout_s=5,
        clock=lambda: next(clock),
        sleep=lambda _: None,
        report=lambda _: None,
    )
    assert (outcome.result, outcome.message) == (
        WaitResult.TIMED_OUT,
        "unknown after 5 s: the API server does not answer",
    )


def test_what_had_failed_before_the_action_does_not_end_the_wait() -> None:
    cluster = running()
    cluster.fail(BucketNotFound("there is no bucket archive"))
    cluster.converge()
    assert waited(cluster, actions.restart(cluster.sink, "r1")) == (WaitResult.DONE, "")


def test_waiting_without_an_operator_times_out_with_the_last_condition() -> None:
    cluster = running()
    action = actions.pause(cluster.sink)
    clock = iter(range(100))
    outcome = wait_for(
        action,
        cluster.sink,
        lambda: (cluster.sink, cluster.driver),
        timeout_s=5,
        clock=lambda: next(clock),
        sleep=lambda _: None,
        report=lambda _: None,
    )
    assert outcome.result is WaitResult.TIMED_OUT
    assert outcome.message == "not done after 5 s; Running: copying 1 topic-partition"
