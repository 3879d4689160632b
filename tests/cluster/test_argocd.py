"""Argo CD's own health check on statuses that a real operator wrote to a real API server."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from devtools.kube.client import Json
from devtools.processes import wait_until
from sink_job.api.report import RunState
from tests.support.argocd import ArgoCd
from tests.support.operator_fixture import DRIVER, SINK, Operated, condition, report

pytestmark = pytest.mark.cluster
PAST = "2026-01-05T10:00:00Z"


def failed(times: int) -> Callable[[Json], bool]:
    """Whether a sink has failed so many times in a row."""
    return lambda sink: (sink.get("status", {}).get("retry") or {}).get("failures") == times


def test_a_sink_is_healthy_and_degraded_after_three_failures_of_the_infrastructure_in_a_row(
    sink: Operated, argocd: ArgoCd
) -> None:
    sink.started()
    assert argocd.health(sink.sink)["status"] == "Healthy"

    def starting(pod: str) -> None:
        sink.runs(pod, report(RunState.RECOVERING))

    sink.harness.at_start(DRIVER, starting)
    seen = []
    for number in (1, 2, 3):
        driver = sink.driver
        sink.harness.oom_kill(DRIVER)
        sink.wait(failed(number), f"failure {number}")
        seen.append(argocd.health(sink.sink)["status"])
        if number < 3:  # the pause of the back-off is over
            sink.kube.patch("S3Sink", SINK, {"status": {"retry": {"nextAttemptTime": PAST}}}, subresource="status")
            sink.next_driver(driver)
            sink.wait(lambda found: condition(found, "Ready")["reason"] == "Recovering", "recovering")
    assert seen == ["Progressing", "Progressing", "Degraded"]


def test_an_action_of_argo_cd_pauses_a_sink_which_is_suspended_then(sink: Operated, argocd: ArgoCd) -> None:
    sink.started()
    made = argocd.act(sink.sink, "pause")
    sink.kube.patch("S3Sink", SINK, {"metadata": {"annotations": made["metadata"]["annotations"]}})
    wait_until(lambda: argocd.health(sink.sink)["status"] == "Suspended", "suspended", seconds=60)
