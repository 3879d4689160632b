"""Offset resets, and open objects at a deletion, on a real API server; the harness runs the operation pods."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from devtools.kube.client import Json
from devtools.processes import wait_until
from s3sink_operator import names
from sink_job.api.errors import ExistingObjects, SinkError, TopicRecreated
from sink_job.api.report import (
    Failure,
    FinalReport,
    HangingTransactionReport,
    ResetReport,
    StartReport,
    TableReport,
    TableSums,
)
from tests.support.operator_fixture import DRIVER, SINK, TASK, Operated, condition, report

pytestmark = pytest.mark.cluster

Step = Callable[[str], object]
REPORT = ResetReport(
    generation=2,
    record=42,
    topics_dir="topics/generation=2",
    copied_again=100,
    partitions=[StartReport(topic="flights", partition=0, previous=100, start=0)],
)
RESET: Json = {"reset": {"nonce": "n1", "to": "Earliest", "onExisting": "NewPrefix"}}


class Tasks:
    """The operation pods of one sink: their operations, and how each of them ends (by default successfully)."""

    def __init__(self, sink: Operated) -> None:
        self.sink = sink
        self.asked: list[str] = []
        self.ends: dict[str, Step] = {"Reset": self._well}
        sink.harness.at_start(TASK, self._start)

    def fails(self, kind: str, error: SinkError) -> None:
        """From now on tasks of this kind end with `error`."""
        message = FinalReport(failure=Failure.of(error)).termination_message()
        self.ends[kind] = lambda pod: self.sink.harness.fail(pod, error.exit_code, message)

    def succeeds(self, kind: str) -> None:
        self.ends[kind] = self._well

    def _well(self, pod: str) -> None:
        self.sink.harness.succeed(pod, REPORT.termination_message())

    def _start(self, pod: str) -> None:
        asked = self.sink.kube.get("Pod", pod)["metadata"]["annotations"]["s3sink.io/operation"]
        self.asked.append(asked)
        self.ends.get(asked.partition(":")[0], self.sink.harness.succeed)(pod)


@pytest.fixture
def tasks(sink: Operated) -> Tasks:
    return Tasks(sink)


def offsets(sink: Json) -> Json:
    return dict(sink.get("status", {}).get("offsetReset") or {})


# -- offsets -----------------------------------------------------------------------------------------------------------


def test_an_offset_reset_waits_until_the_sink_is_stopped(sink: Operated, tasks: Tasks) -> None:
    sink.started()
    sink.apply(offsets=RESET)
    found = sink.wait(lambda found: condition(found, "OffsetsReset"), "the condition OffsetsReset")
    assert condition(found, "OffsetsReset")["reason"] == "WaitingForStopped"
    assert tasks.asked == []


def test_offsets_of_a_stopped_sink_are_reset_after_open_objects_are_published(sink: Operated, tasks: Tasks) -> None:
    sink.started()
    sink.apply(state="Stopped", offsets=RESET)
    result = offsets(sink.wait(lambda found: offsets(found).get("nonce") == "n1", "the reset"))
    assert tasks.asked == ["Publish", "Reset:n1"]
    assert (result["phase"], result["generation"], result["topicsDir"]) == ("Completed", 2, "topics/generation=2")
    assert result["recopiedOffsets"] == 100
    assert result["partitions"] == [{"topic": "flights", "partition": 0, "offset": 0}]
    wait_until(lambda: any(each["reason"] == "OffsetsReset" for each in sink.events()), "an event of it", seconds=60)


def test_a_reset_runs_once_and_the_sink_runs_again(sink: Operated, tasks: Tasks) -> None:
    sink.started()
    sink.apply(state="Stopped", offsets=RESET)
    sink.wait(lambda found: offsets(found).get("nonce") == "n1", "the reset")
    sink.apply(offsets=RESET)
    sink.wait_ready()
    sink.apply(state="Stopped", offsets=RESET)
    sink.wait_reason("Stopped")
    assert tasks.asked.count("Reset:n1") == 1


def test_a_failed_reset_is_reported_and_an_edit_fixes_it(sink: Operated, tasks: Tasks) -> None:
    tasks.fails("Reset", ExistingObjects("3 objects hold records at or above the new offsets"))
    sink.started()
    sink.apply(state="Stopped", offsets={"reset": {"nonce": "n1", "to": "Earliest"}})
    found = sink.wait(
        lambda found: condition(found, "OffsetsReset").get("reason") == ExistingObjects.reason,
        "the condition OffsetsReset",
    )
    assert "3 objects hold records" in condition(found, "OffsetsReset")["message"]
    tasks.succeeds("Reset")
    sink.apply(state="Stopped", offsets=RESET)
    found = sink.wait(lambda found: offsets(found).get("nonce") == "n1", "the reset")
    sink.wait_reason("Stopped")
    assert not condition(sink.sink, "OffsetsReset")


def test_offsets_of_a_re_created_topic_are_reset_without_a_publish(sink: Operated, tasks: Tasks) -> None:
    tasks.fails("Publish", TopicRecreated("topic flights was deleted and created again"))
    sink.started()
    sink.apply(state="Stopped", offsets=RESET)
    sink.wait(lambda found: offsets(found).get("nonce") == "n1", "the reset")
    sink.wait_reason("Stopped")


# -- what is open at a deletion ----------------------------------------------------------------------------------------


def test_with_discard_open_objects_are_discarded_before_the_sink_is_removed(sink: Operated, tasks: Tasks) -> None:
    sink.started(deletionPolicy="Discard")
    sink.kube.delete("S3Sink", SINK)
    sink.wait_gone()
    assert tasks.asked == ["Discard"]


def test_a_failed_discard_is_reported_and_retain_removes_the_sink_at_once(sink: Operated, tasks: Tasks) -> None:
    tasks.fails("Discard", ExistingObjects("S3 says no"))
    sink.started(deletionPolicy="Discard")
    sink.kube.delete("S3Sink", SINK)
    found = sink.wait(lambda found: "S3 says no" in condition(found, "Ready").get("message", ""), "the failure")
    assert names.FINALIZER in found["metadata"]["finalizers"]
    sink.kube.patch("S3Sink", SINK, {"spec": {"deletionPolicy": "Retain"}})
    sink.wait_gone()


# -- conditions from the report of the job -----------------------------------------------------------------------------


def test_a_hanging_transaction_is_a_condition_while_it_is_open(sink: Operated) -> None:
    sink.started()
    hanging = HangingTransactionReport(topic="flights", partition=0, offset=17, end=40, since=1_760_000_000_000)
    sink.harness.report(DRIVER, report(hanging_transactions=[hanging]))
    found = sink.wait(lambda found: condition(found, "HangingTransaction"), "HangingTransaction", seconds=60)
    assert "--topic flights --partition 0 --start-offset 17" in condition(found, "HangingTransaction")["message"]
    assert condition(found, "Ready")["status"] == "True"
    sink.harness.report(DRIVER, report())
    sink.wait(lambda found: not condition(found, "HangingTransaction"), "no HangingTransaction", seconds=60)


def test_a_table_that_was_replaced_is_a_condition_and_in_the_status_while_it_is(sink: Operated) -> None:
    sink.started()
    table = TableReport(table="lake.flights", topic="flights", generation=1, record=40, registered_at=10**12)
    lag = {"lag_objects": 3, "lag_ms": 61_000, "reason": "TableReplaced", "message": "another UUID"}
    failed = table.model_copy(update=lag)
    sink.harness.report(DRIVER, report(tables=[failed], table_sums=TableSums(tables=1, failing=1)))
    found = sink.wait(lambda found: condition(found, "TableReplaced"), "TableReplaced", seconds=60)
    assert "table lake.flights: another UUID" in condition(found, "TableReplaced")["message"]
    assert condition(found, "Ready")["status"] == "True"
    assert found["status"]["tables"] == [
        {
            "name": "lake.flights",
            "topic": "flights",
            "position": {"generation": 1, "record": 40},
            "lagObjects": 3,
            "lagSeconds": 61,
            "skippedObjects": 0,
            "lastCommitTime": "2001-09-09T01:46:40Z",
            "error": {"reason": "TableReplaced", "message": "another UUID"},
        }
    ]
    sink.harness.report(DRIVER, report(tables=[table], table_sums=TableSums(tables=1)))
    sink.wait(lambda found: not condition(found, "TableReplaced"), "no TableReplaced", seconds=60)


def test_a_re_created_topic_is_a_condition(sink: Operated) -> None:
    message = FinalReport(failure=Failure.of(TopicRecreated("topic flights was deleted and created again")))
    sink.harness.at_start(DRIVER, lambda pod: sink.harness.fail(pod, 7, message.termination_message()))
    sink.apply()
    found = sink.wait(lambda found: condition(found, "TopicRecreated"), "TopicRecreated")
    assert "topic flights" in condition(found, "TopicRecreated")["message"]
    assert condition(found, "Stalled")["status"] == "True"
