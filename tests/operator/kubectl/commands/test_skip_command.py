"""`kubectl s3sink skip`."""

from __future__ import annotations

import pytest

from s3sink_operator import names
from s3sink_operator.kubectl import actions
from s3sink_operator.kubectl.actions import ActionNotAllowed
from s3sink_operator.types import annotation
from sink_job.api.errors import DataError
from sink_job.api.parser import load_sink
from tests.operator.fake_cluster import Cluster, running
from tests.operator.kubectl.commands.command_line import parse, run
from tests.operator.kubectl.fake_kubectl import fake


def skipped(cluster: Cluster) -> str | None:
    return annotation(cluster.sink, names.SKIP_ANNOTATION)


def job_skips(cluster: Cluster) -> list[str]:
    """The records to skip in the manifest that the driver reads."""
    text = cluster.objects["ConfigMap", "flights-s3sink"]["data"]["sink.yaml"]
    return [str(each) for each in load_sink(text).spec.errors.skip]


def test_a_sink_that_has_stopped_at_a_record_continues_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = running()
    cluster.fail(DataError("flights", 0, 42, "the value is not JSON"))
    cluster.converge()
    assert cluster.ready == ("False", "DataError")
    assert run(fake(cluster), "skip", "flights", "flights-0@42") == 0
    assert capsys.readouterr().out == "flights will pass over flights-0@42; its driver restarts\n"
    assert skipped(cluster) == "flights-0@42"
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running")
    assert job_skips(cluster) == ["flights-0@42"]
    assert "skip" not in cluster.sink["spec"].get("errors", {})


def test_the_command_of_the_message_is_a_command_line() -> None:
    message = str(DataError("flights", 0, 42, "the value is not JSON", "flights -n data"))
    words = message.partition("kubectl s3sink ")[2].partition(",")[0].split()
    args = parse(*words)
    assert (args.name, args.namespace, args.records) == ("flights", "data", ["flights-0@42"])


def test_records_are_added_to_those_of_the_annotation() -> None:
    cluster = running()
    run(fake(cluster), "skip", "flights", "flights-0@42")
    run(fake(cluster), "skip", "flights", "flights-0@42", "flights-1@7")
    assert skipped(cluster) == "flights-0@42,flights-1@7"


def test_a_running_driver_restarts_and_waiting_is_over_when_the_new_one_is_ready() -> None:
    cluster = running()
    action = actions.skip(cluster.sink, ["flights-0@42"])
    cluster.annotate({name: value for name, value in action.annotations.items() if value is not None})
    assert not action.is_done(cluster.sink, cluster.driver)
    cluster.converge_with_kubelet()
    assert action.is_done(cluster.sink, cluster.driver)
    assert cluster.driver is not None
    assert cluster.driver["metadata"]["labels"][names.ATTEMPT_LABEL] == "2"


def test_waiting_ends_with_the_next_record_at_which_the_sink_stops() -> None:
    cluster = running()
    action = actions.skip(cluster.sink, ["flights-0@42"])
    cluster.annotate({name: value for name, value in action.annotations.items() if value is not None})
    cluster.converge_with_kubelet()
    assert action.failure_reason(cluster.sink) is None
    cluster.fail(DataError("flights", 0, 43, "the value is not JSON"))
    cluster.converge()
    assert "flights-0@43" in (action.failure_reason(cluster.sink) or "")


def test_moving_the_records_to_the_spec_restarts_nothing() -> None:
    cluster = running()
    run(fake(cluster), "skip", "flights", "flights-0@42")
    cluster.converge_with_kubelet()
    cluster.sink["metadata"]["annotations"].pop(names.SKIP_ANNOTATION)
    cluster.edit(errors={"skip": [{"topic": "flights", "partition": 0, "offset": 42}]})
    cluster.converge_with_kubelet()
    assert cluster.driver is not None
    assert cluster.driver["metadata"]["labels"][names.ATTEMPT_LABEL] == "2"


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (["flights"], "flights is not topic-partition@offset, such as flights-0@42"),
        (["other-0@1"], "the sink does not read the topic other: it is not in spec.kafka.topics"),
        (["flights-0@5"], "these records are listed already: nothing was changed"),
        (["flights-0@6"], "these records are listed already: nothing was changed"),
        ([f"flights-0@{n}" for n in range(2, 1_005)], "more than 1,000"),
    ],
)
def test_what_cannot_be_skipped_is_rejected_and_nothing_is_written(records: list[str], message: str) -> None:
    cluster = running(errors={"skip": [{"topic": "flights", "partition": 0, "offset": 6}]})
    cluster.annotate({names.SKIP_ANNOTATION: "flights-0@5"})
    with pytest.raises(ActionNotAllowed, match=message):
        run(fake(cluster), "skip", "flights", *records)
    assert skipped(cluster) == "flights-0@5"


def test_an_invalid_annotation_is_not_overwritten() -> None:
    cluster = running()
    cluster.annotate({names.SKIP_ANNOTATION: "flights"})
    with pytest.raises(ActionNotAllowed, match=r"the annotation s3sink\.io/skip is invalid: .*; remove it first"):
        run(fake(cluster), "skip", "flights", "flights-0@42")
