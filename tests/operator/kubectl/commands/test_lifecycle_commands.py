"""`kubectl s3sink restart`, `pause`, `resume` and `stop`."""

from __future__ import annotations

import pytest

from s3sink_operator import names
from s3sink_operator.kubectl.actions import ActionNotAllowed
from s3sink_operator.types import annotation
from tests.operator.fake_cluster import running
from tests.operator.kubectl.commands.command_line import parse, run
from tests.operator.kubectl.fake_kubectl import fake


@pytest.mark.parametrize(
    ("command", "state", "said"),
    [
        ("pause", "Paused", "flights is pausing; open objects stay open\n"),
        ("stop", "Stopped", "flights is stopping; open objects are published first\n"),
    ],
)
def test_a_sink_is_halted_and_resumed_by_its_annotation(
    capsys: pytest.CaptureFixture[str], command: str, state: str, said: str
) -> None:
    cluster = running()
    assert run(fake(cluster), command, "flights") == 0
    assert capsys.readouterr().out == said
    assert annotation(cluster.sink, names.STATE_ANNOTATION) == state
    cluster.converge_with_kubelet()
    assert cluster.ready == ("False", state)
    assert run(fake(cluster), "resume", "flights") == 0
    assert capsys.readouterr().out == "flights is resuming\n"
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running")


def test_each_restart_is_another_one() -> None:
    cluster = running()
    requested = set()
    for _ in range(3):
        assert run(fake(cluster), "restart", "flights") == 0
        requested.add(annotation(cluster.sink, names.RESTART_ANNOTATION))
        cluster.converge_with_kubelet()
    assert len(requested) == 3
    assert cluster.driver is not None
    assert cluster.driver["metadata"]["labels"][names.ATTEMPT_LABEL] == "4"


def test_a_restart_without_a_driver_is_rejected_and_writes_nothing() -> None:
    cluster = running()
    cluster.annotate({names.STATE_ANNOTATION: "Paused"})
    with pytest.raises(ActionNotAllowed, match="there is no driver to restart; use resume to start it"):
        run(fake(cluster), "restart", "flights")
    assert annotation(cluster.sink, names.RESTART_ANNOTATION) is None


@pytest.mark.parametrize("command", ["restart", "pause", "resume", "stop"])
def test_no_command_changes_a_sink_that_is_being_deleted(command: str) -> None:
    kubectl = fake(running())
    kubectl.cluster.delete_sink()
    with pytest.raises(ActionNotAllowed, match="the sink is being deleted"):
        run(kubectl, command, "flights")
    assert "annotations" not in kubectl.cluster.sink["metadata"]


@pytest.mark.parametrize("command", ["restart", "pause", "resume", "stop"])
def test_the_commands_have_the_same_arguments(command: str) -> None:
    args = parse(command, "flights", "--wait", "--timeout", "90s", "-o", "json", "-n", "data")
    assert (args.name, args.wait, args.timeout, args.output, args.namespace) == ("flights", True, 90.0, "json", "data")
    assert parse(command, "flights").timeout == 300
