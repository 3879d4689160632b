"""Argo CD's health check beside the operator's own decisions: a status that is really written means what is meant."""

from __future__ import annotations

from typing import Any

import pytest

from s3sink_operator import names
from sink_job.api.errors import BucketNotFound, TransientError
from sink_job.api.report import RunState
from tests.argocd.test_customization import ACTIONS, FOLDER, run
from tests.operator.fake_cluster import Cluster, attempt, document, running


def health(cluster: Cluster) -> str:
    return str(run(FOLDER / "health.lua", cluster.sink)["status"])


def act(cluster: Cluster, action: str) -> None:
    """What Argo CD does: the script's object in place of the sink."""
    changed: Any = run(ACTIONS / action / "action.lua", cluster.sink)["metadata"].get("annotations", {})
    cluster.sink["metadata"]["annotations"] = changed


def test_a_new_sink_progresses_until_it_is_healthy() -> None:
    cluster = Cluster()
    assert health(cluster) == "Progressing"
    cluster.converge()
    assert health(cluster) == "Progressing"
    cluster.converge_with_kubelet()
    assert health(cluster) == "Healthy"


def test_an_edit_is_not_healthy_before_the_operator_observes_it() -> None:
    cluster = running()
    cluster.edit(rotation={"flushSize": 7})
    assert health(cluster) == "Progressing"
    cluster.converge_with_kubelet()
    assert health(cluster) == "Healthy"


@pytest.mark.parametrize(("action", "desired"), [("pause", "Paused"), ("stop", "Stopped")])
def test_a_sink_that_is_paused_or_stopped_by_an_action_is_suspended_until_it_is_resumed(
    action: str, desired: str
) -> None:
    cluster = running()
    act(cluster, action)
    cluster.converge_with_kubelet()
    assert cluster.status["desiredState"] == desired
    assert health(cluster) == "Suspended"
    act(cluster, "resume")
    cluster.converge_with_kubelet()
    assert health(cluster) == "Healthy"


def test_the_action_restart_makes_another_attempt() -> None:
    cluster = running()
    before = cluster.driver["metadata"]["labels"][names.ATTEMPT_LABEL] if cluster.driver else None
    act(cluster, "restart")
    cluster.converge_with_kubelet()
    assert cluster.driver is not None
    assert cluster.driver["metadata"]["labels"][names.ATTEMPT_LABEL] != before
    assert health(cluster) == "Healthy"


def test_a_failure_that_requires_user_action_is_degraded() -> None:
    cluster = running()
    cluster.fail(BucketNotFound("there is no bucket archive"))
    cluster.converge()
    assert health(cluster) == "Degraded"


def test_a_failure_that_is_worth_another_try_progresses() -> None:
    cluster = running()
    cluster.fail(TransientError("Kafka did not answer"))
    cluster.converge()
    assert health(cluster) == "Progressing"


def test_the_third_failure_in_a_row_is_degraded_until_the_sink_is_ready() -> None:
    cluster = running()
    found = []
    for _ in range(3):
        failed = attempt(cluster)
        cluster.fail(TransientError("Kafka did not answer"))
        cluster.converge()
        found.append(health(cluster))
        while attempt(cluster) == failed:
            cluster.wait(60_000)
            cluster.converge()
        cluster.run(RunState.RECOVERING)
        cluster.converge()
        found.append(health(cluster))
    assert found == ["Progressing", "Progressing", "Progressing", "Progressing", "Degraded", "Degraded"]
    cluster.run()
    cluster.converge()
    assert health(cluster) == "Healthy"


def test_a_spec_that_cannot_be_read_is_degraded() -> None:
    cluster = Cluster(document(partitioner={"type": "Time", "timezone": "Nowhere/Land", "duration": "1h"}))
    cluster.converge()
    assert health(cluster) == "Degraded"
