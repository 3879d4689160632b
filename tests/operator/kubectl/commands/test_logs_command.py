"""`kubectl s3sink logs`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sink_job.api.errors import BucketNotFound
from tests.operator.fake_cluster import Cluster, running, stopping
from tests.operator.kubectl.commands.command_line import parse, run
from tests.operator.kubectl.fake_kubectl import fake

DRIVER, OPERATION = "flights-s3sink-driver", "flights-s3sink-operation"


def test_the_log_is_that_of_the_sinks_container_with_the_exit_code_of_kubectl() -> None:
    kubectl = replace(fake(running()), exit_code=5)
    assert run(kubectl, "logs", "flights", "-f", "--tail", "7", "--since", "5m") == 5
    assert kubectl.calls == [("logs", DRIVER, "-c", "s3sink", "--follow", "--tail=7", "--since=5m")]


def test_the_log_of_the_operation_pod() -> None:
    kubectl = fake(stopping())
    assert run(kubectl, "logs", "flights", "--operation") == 0
    assert kubectl.calls == [("logs", OPERATION, "-c", "s3sink")]


@pytest.mark.parametrize(("words", "lines"), [((), "--tail=-1"), (("--tail", "3"), "--tail=3")])
def test_the_logs_of_the_executors_are_whole_unless_lines_are_requested(words: tuple[str, ...], lines: str) -> None:
    kubectl = fake(running())
    assert run(kubectl, "logs", "flights", "--executors", *words) == 0
    ((_, _, selector, *flags),) = kubectl.calls
    assert "s3sink.io/sink=flights" in selector
    assert "executor" in selector
    assert flags == ["--prefix", "--max-log-requests=100", lines]


def test_a_terminating_driver_is_named_before_its_log(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = running()
    assert cluster.driver
    cluster.driver["metadata"]["deletionTimestamp"] = "2025-10-09T08:53:20Z"
    kubectl = fake(cluster)
    assert run(kubectl, "logs", "flights") == 0
    assert capsys.readouterr().err == f"the pod {DRIVER} is terminating\n"
    assert len(kubectl.calls) == 1


def paused() -> Cluster:
    cluster = running()
    cluster.edit(state="Paused")
    cluster.converge_with_kubelet()
    return cluster


@pytest.mark.parametrize(
    ("cluster", "words", "said"),
    [
        (paused, (), f"pod {DRIVER} not found; Paused: "),
        (running, ("--operation",), f"pod {OPERATION} not found; Running: "),
        (Cluster, (), f"pod {DRIVER} not found; no operator has reconciled"),
    ],
    ids=["paused", "no operation", "no operator"],
)
def test_a_pod_that_does_not_exist_is_reported_with_the_state_of_the_sink(
    capsys: pytest.CaptureFixture[str], cluster: type[Cluster], words: tuple[str, ...], said: str
) -> None:
    kubectl = fake(cluster())
    assert run(kubectl, "logs", "flights", *words) == 1
    assert f"kubectl s3sink: flights: {said}" in capsys.readouterr().err
    assert kubectl.calls == []


def test_the_end_of_the_previous_attempt_is_shown_from_the_status(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = running()
    cluster.fail(BucketNotFound("there is no bucket archive"))
    cluster.converge()
    kubectl = fake(cluster)
    assert run(kubectl, "logs", "flights", "--previous") == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("attempt 1 ended at 2025-10-09T08:53:20Z, exit code ")
    assert ": BucketNotFound: there is no bucket archive" in shown.out
    assert "log collector" in shown.err
    assert kubectl.calls == []


def test_without_an_ended_attempt_there_is_none_to_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(fake(running()), "logs", "flights", "--previous") == 1
    assert capsys.readouterr().err == "kubectl s3sink: flights: no attempt has ended\n"


@pytest.mark.parametrize("words", [("-p", "--executors"), ("--executors", "--operation"), ("-p", "--operation")])
def test_one_log_is_shown_at_a_time(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse("logs", "flights", *words)
    assert ended.value.code == 2
    assert "not allowed with argument" in capsys.readouterr().err
