"""What a command that changes a sink prints and returns, with and without --wait."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from s3sink_operator import names
from s3sink_operator.kubectl.client import KubectlError
from s3sink_operator.kubectl.commands import run_action
from s3sink_operator.kubectl.commands.run_action import new_nonce
from s3sink_operator.types import Json, annotation
from sink_job.api.errors import BucketNotFound
from tests.operator.fake_cluster import Cluster, running
from tests.operator.kubectl.commands.command_line import parse, run
from tests.operator.kubectl.fake_kubectl import FakeKubectl, fake

Clock = Callable[[Callable[[], object]], None]


@pytest.fixture
def between_polls(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Lets a function run instead of each pause of half a second."""

    def install(step: Callable[[], object]) -> None:
        now = [0.0]

        def sleep(seconds: float) -> None:
            now[0] += seconds
            step()

        monkeypatch.setattr(run_action, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))

    return install


def operated(cluster: Cluster) -> Callable[[], object]:
    """One pass of the operator and of the kubelet."""
    return lambda: (cluster.reconcile(), cluster.kubelet())


def test_without_wait_the_annotations_are_written_and_the_action_is_described(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster = running()
    assert run(fake(cluster), "pause", "flights") == 0
    assert capsys.readouterr().out == "flights is pausing; open objects stay open\n"
    assert annotation(cluster.sink, names.STATE_ANNOTATION) == "Paused"


def test_without_wait_the_json_is_the_request(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(fake(running()), "pause", "flights", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "name": "flights",
        "action": "pause",
        "annotations": {names.STATE_ANNOTATION: "Paused"},
    }


def test_a_completed_action_is_reported_with_the_steps_on_standard_error(
    between_polls: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = running()
    between_polls(operated(cluster))
    assert run(fake(cluster), "stop", "flights", "--wait") == 0
    shown = capsys.readouterr()
    assert shown.out == "flights: stop completed\n"
    first, *steps = shown.err.splitlines()
    assert first == "flights is stopping; open objects are published first"
    assert steps
    assert all(step.startswith("  ") for step in steps)


def test_a_completed_action_as_json_has_the_status(between_polls: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = running()
    between_polls(operated(cluster))
    assert run(fake(cluster), "pause", "flights", "--wait", "-o", "json") == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["action"], data["done"], data["message"]) == ("pause", True, "")
    assert data["status"]["desiredState"] == "Paused"


@pytest.mark.parametrize("output", ["table", "json"])
def test_a_timeout_ends_with_3_and_names_the_last_condition(
    between_polls: Clock, capsys: pytest.CaptureFixture[str], output: str
) -> None:
    between_polls(lambda: None)
    assert run(fake(running()), "pause", "flights", "--wait", "--timeout", "2s", "-o", output) == 3
    shown = capsys.readouterr()
    message = "not done after 2 s; Running: copying 1 topic-partition"
    assert f"kubectl s3sink: flights: {message}\n" in shown.err
    if output == "json":
        data = json.loads(shown.out)
        assert (data["done"], data["message"]) == (False, message)
    else:
        assert shown.out == ""


def test_a_failure_that_requires_user_action_ends_with_4(
    between_polls: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = running()

    def step() -> None:
        cluster.reconcile()
        cluster.kubelet()
        if cluster.driver is not None and cluster.driver["status"]["phase"] == "Running":
            cluster.fail(BucketNotFound("there is no bucket archive"))

    between_polls(step)
    assert run(fake(cluster), "restart", "flights", "--wait") == 4
    assert "there is no bucket archive" in capsys.readouterr().err


class Interrupted(FakeKubectl):
    """An API server that answers the first polls with this error."""

    error = KubectlError("", "connection refused")
    failures = 3

    def find(self, kind: str, name: str) -> Json | None:
        if Interrupted.failures:
            Interrupted.failures -= 1
            raise self.error
        return super().find(kind, name)


def test_an_api_server_that_is_not_reached_for_a_moment_does_not_end_the_wait(
    between_polls: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = running()
    monkeypatch.setattr(Interrupted, "failures", 3)
    between_polls(operated(cluster))
    assert run(Interrupted(cluster=cluster), "pause", "flights", "--wait") == 0
    assert Interrupted.failures == 0


def test_an_error_that_a_retry_does_not_change_ends_the_wait(
    between_polls: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Interrupted, "error", KubectlError("Forbidden", "no get on pods"))
    monkeypatch.setattr(Interrupted, "failures", 1)
    between_polls(lambda: None)
    with pytest.raises(KubectlError, match="no get on pods"):
        run(Interrupted(cluster=running()), "pause", "flights", "--wait")


@pytest.mark.parametrize("text", ["soon", "5", "", "-1m", "5 minutes"])
def test_a_timeout_that_is_no_duration_ends_with_2_and_a_hint(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse("pause", "flights", f"--timeout={text}")
    assert ended.value.code == 2
    assert "argument --timeout: is not a duration: " in capsys.readouterr().err


def test_no_two_nonces_are_the_same_and_later_ones_are_greater() -> None:
    nonces: list[str] = []
    while len(set(nonces)) < 3:
        nonces.append(new_nonce())
    assert nonces == sorted(nonces)
