"""The conditions of the status: which ones there are, and their messages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from s3sink_operator import names
from s3sink_operator.decide import conditions
from s3sink_operator.decide.context import Context
from s3sink_operator.decide.policy_result import PolicyResult
from s3sink_operator.sizing.memory_sizing import SizingPlan, SizingState
from s3sink_operator.status.status_model import ConditionStatus
from s3sink_operator.status.status_update import Condition
from s3sink_operator.types import REPLACEMENT_KIND, Json, ObjectWrites, Rejection, Replacement, to_timestamp
from sink_job.api.errors import TopicRecreated
from sink_job.api.report import HangingTransactionReport, SkipReport, SkipsReport, TableReport, Totals
from tests.operator.fake_cluster import MINUTE, START, Cluster, report, running

RUNNING = PolicyResult(ready=ConditionStatus.TRUE, reason="Running", message="copying", phase="Running")


def composed(cluster: Cluster, result: PolicyResult = RUNNING) -> dict[str, Condition]:
    """The conditions by their type."""
    ctx = Context(cluster.observe(), cluster.settings, cluster.now)
    found = conditions.compose(ctx, result, ctx.history)
    assert len({each.type for each in found}) == len(found)
    return {each.type: each for each in found}


def rejection(cluster: Cluster, kind: str, name: str, *, message: str = "no", age: int = 0) -> Rejection:
    at = cluster.now - age
    return Rejection(kind=kind, name=name, status=403, reason="Forbidden", message=message, at_ms=at)


def test_a_running_sink_has_the_three_conditions_of_each_sink_and_no_other() -> None:
    found = composed(running())
    assert {name: (each.status, each.reason, each.message) for name, each in found.items()} == {
        "Ready": ("True", "Running", "copying"),
        "Reconciling": ("False", "AsExpected", ""),
        "Stalled": ("False", "AsExpected", ""),
    }


@pytest.mark.parametrize(("kind", "field"), [("Reconciling", "reconciling"), ("Stalled", "stalled")])
def test_the_conditions_of_kstatus_have_the_reason_and_message_of_ready(kind: str, field: str) -> None:
    changes: dict[str, Any] = {field: True}
    result = replace(RUNNING, **changes, reason="Starting", message="waiting")
    found = composed(running(), result)[kind]
    assert (found.status, found.reason, found.message) == ("True", "Starting", "waiting")


@pytest.mark.parametrize(
    ("count", "named", "rest"), [(1, 1, ""), (3, 3, ""), (4, 3, "; and 1 more"), (9, 3, "; and 6 more")]
)
def test_of_many_hanging_transactions_three_are_named(count: int, named: int, rest: str) -> None:
    cluster = running()
    hanging = [
        HangingTransactionReport(topic="flights", partition=n, offset=10 + n, end=40, since=START) for n in range(count)
    ]
    cluster.run(hanging_transactions=hanging)
    message = composed(cluster)["HangingTransaction"].message
    assert [n for n in range(count) if f"flights-{n} from offset {10 + n}" in message] == list(range(named))
    assert ("more." in message) == bool(rest)
    assert rest in message
    assert "--partition 0 --start-offset 10" in message


def test_a_data_failure_hides_the_count_of_lost_offsets() -> None:
    cluster = running()
    cluster.fail(TopicRecreated("topic flights was deleted and created again"))
    cluster.converge()
    cluster.wait(10 * MINUTE)
    cluster.converge_with_kubelet()
    cluster.report = report(totals=Totals(lost=12))
    assert {"TopicRecreated", "DataLoss"} & composed(cluster).keys() == {"TopicRecreated"}


def plan(*, capped: bool) -> PolicyResult:
    return replace(RUNNING, sizing=SizingPlan(size=1, recommended=2, state=SizingState(), capped=capped))


def test_capped_memory_stays_a_condition_for_ten_minutes() -> None:
    """The required memory may be near the maximum, and each change would be an event."""
    cluster = running()
    found = composed(cluster, plan(capped=True))["MemoryCapped"]
    assert "exceeds spec.executor.memory.max, 8Gi" in found.message
    written = {"type": "MemoryCapped", "status": "True", "reason": "MemoryCapped", "message": ""}
    cluster.sink["status"]["conditions"].append(written | {"lastTransitionTime": to_timestamp(cluster.now)})
    for ms, is_capped in ((0, True), (10 * MINUTE - 1, True), (10 * MINUTE, False), (-MINUTE, False)):
        ctx = Context(cluster.observe(), cluster.settings, cluster.now + ms)
        found_types = {each.type for each in conditions.compose(ctx, plan(capped=False), ctx.history)}
        assert ("MemoryCapped" in found_types) is is_capped, ms


def test_without_a_plan_of_this_pass_nothing_is_known_about_capped_memory() -> None:
    assert "MemoryCapped" not in composed(running())


@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        ({names.STATE_ANNOTATION: "paused"}, ["is 'paused', not one of Running, Paused, Stopped: spec.state applies"]),
        ({names.RECONCILE_PAUSED_ANNOTATION: ""}, ["is ''", "the operator is not paused"]),
        ({names.TAKE_OVER_ANNOTATION: "old"}, ["is not cluster/namespace/name/sinkId: it is ignored"]),
        ({names.STATE_ANNOTATION: "x", names.TAKE_OVER_ANNOTATION: ""}, ["spec.state applies; the annotation"]),
        ({names.STATE_ANNOTATION: "x" * 41}, ["is '" + "x" * 40 + "…'"]),
    ],
)
def test_ignored_annotations_are_named_in_one_condition(annotations: dict[str, str], words: list[str]) -> None:
    cluster = running()
    cluster.annotate(annotations)
    found = composed(cluster)["InvalidAnnotation"]
    for each in words:
        assert each in found.message


@pytest.mark.parametrize("value", [*conditions.TRUE, "false", "False", "FALSE"])
def test_each_spelling_of_a_boolean_annotation_is_valid(value: str) -> None:
    cluster = running()
    cluster.annotate({names.RECONCILE_PAUSED_ANNOTATION: value, names.STATE_ANNOTATION: "Running"})
    cluster.annotate({names.TAKE_OVER_ANNOTATION: "c1/data/old/data.old"})
    assert "InvalidAnnotation" not in composed(cluster)


def write_rejected(cluster: Cluster, *rejections: Rejection, result: PolicyResult = RUNNING) -> str | None:
    """The message about the rejected write that is reported."""
    cluster.rejections = rejections
    found = conditions.write_rejected(Context(cluster.observe(), cluster.settings, cluster.now), result)
    return None if found is None else found.message


def test_of_several_rejected_writes_the_last_one_is_reported() -> None:
    cluster = running()
    first = rejection(cluster, "ConfigMap", "flights-s3sink", message="first", age=MINUTE)
    last = rejection(cluster, "RoleBinding", "flights-s3sink", message="last")
    for order in ((first, last), (last, first)):
        message = write_rejected(cluster, *order)
        assert message is not None
        assert "last" in message
        assert "first" not in message


@pytest.mark.parametrize(
    ("state", "pod", "is_needed"),
    [
        ("Running", "flights-s3sink-driver", True),
        ("Running", "flights-s3sink-operation", False),
        ("Paused", "flights-s3sink-driver", False),
        ("Paused", "flights-s3sink-operation", False),
        ("Stopped", "flights-s3sink-driver", False),
        ("Stopped", "flights-s3sink-operation", True),
    ],
)
def test_the_rejection_of_a_pod_is_reported_while_the_desired_state_has_it(
    state: str, pod: str, is_needed: bool
) -> None:
    cluster = running()
    cluster.edit(state=state)
    assert (write_rejected(cluster, rejection(cluster, "Pod", pod)) is not None) is is_needed
    cluster.delete_sink()
    is_operation = pod == "flights-s3sink-operation"
    assert (write_rejected(cluster, rejection(cluster, "Pod", pod)) is not None) is is_operation


@pytest.mark.parametrize("kind", ["Pod", "pods/resize"])
def test_the_rejection_of_an_executor_is_reported_while_the_executor_exists(kind: str) -> None:
    cluster = running(executor={"mode": "Cluster", "instances": 1})
    assert write_rejected(cluster, rejection(cluster, kind, "flights-1-exec-1"))
    assert write_rejected(cluster, rejection(cluster, kind, "flights-1-exec-9")) is None


def test_the_rejection_of_a_larger_pod_is_reported_while_it_would_replace_the_running_one() -> None:
    cluster = running()
    rejected = rejection(cluster, REPLACEMENT_KIND, "flights-s3sink-driver")
    assert write_rejected(cluster, rejected) is None
    pod: Json = {"metadata": {"name": "flights-s3sink-driver"}}
    result = replace(RUNNING, writes=ObjectWrites(replacement=Replacement(pod=pod, growth=1)))
    assert write_rejected(cluster, rejected, result=result)


def test_an_invalid_spec_is_a_condition_with_all_of_its_errors() -> None:
    cluster = running()
    cluster.edit(rotation={"flushSize": 0}, s3={})
    found = composed(cluster, replace(RUNNING, reason="InvalidSpec"))["InvalidSpec"]
    assert "spec.rotation.flushSize" in found.message
    assert "spec.s3.bucket" in found.message
    assert "InvalidSpec" not in composed(cluster)


def test_topics_that_are_not_compared_are_a_condition() -> None:
    cluster = running()
    cluster.compares_topics = False
    assert composed(cluster)["ConflictUnknown"].reason == "TooManyTopics"
    cluster.edit(rotation={"flushSize": 0})
    assert "ConflictUnknown" not in composed(cluster)


@pytest.mark.parametrize(
    ("name", "value", "instead"),
    [
        (names.STATE_ANNOTATION, "paused", "spec.state applies"),
        (names.RECONCILE_PAUSED_ANNOTATION, "yes", "not paused"),
        (names.STATE_ANNOTATION, "x" * 99, "…"),
    ],
)
def test_an_annotation_with_an_invalid_value_is_reported(name: str, value: str, instead: str) -> None:
    cluster = running()
    cluster.annotate({name: value})
    cluster.converge()
    assert cluster.ready == ("True", "Running")
    reported = cluster.condition("InvalidAnnotation")["message"]
    assert name in reported
    assert instead in reported
    cluster.annotate({name: "TRUE" if name == names.RECONCILE_PAUSED_ANNOTATION else "Running"})
    cluster.converge()
    assert not cluster.condition("InvalidAnnotation")


def test_lost_offsets_are_a_condition_of_their_own() -> None:
    cluster = running()
    cluster.report = report(totals=Totals(lost=12))
    cluster.wait(MINUTE)
    cluster.converge()
    assert cluster.condition("DataLoss")["status"] == "True"
    assert "12 offsets" in cluster.condition("DataLoss")["message"]
    assert cluster.ready == ("True", "Running")


def test_a_re_created_topic_is_named_in_a_condition() -> None:
    cluster = running()
    cluster.fail(TopicRecreated("topic flights was deleted and created again"))
    cluster.converge()
    assert "topic flights" in cluster.condition("TopicRecreated")["message"]


def failing_tables(*reasons: str) -> list[TableReport]:
    return [
        TableReport(table=f"lake.t{number}", reason=reason, message=f"why {number}")
        for number, reason in enumerate(reasons)
    ]


def test_a_table_that_was_rolled_back_is_a_condition_and_the_sink_is_ready() -> None:
    cluster = running()
    cluster.run(tables=[TableReport(table="lake.ok"), *failing_tables("TableRolledBack")])
    found = composed(cluster)
    assert found["TableRolledBack"].message == "table lake.t0: why 0. The sink continues to copy"
    assert "TableNotRegistered" not in found
    assert cluster.ready == ("True", "Running")


def test_other_errors_of_tables_are_one_condition_with_their_reason() -> None:
    cluster = running()
    cluster.run(tables=failing_tables("TransientError", "AccessDenied", "TableIncompatible"))
    found = composed(cluster)
    assert (found["TableNotRegistered"].reason, found["TableIncompatible"].reason) == (
        "TransientError",
        "TableIncompatible",
    )
    assert "of 1 more tables" in found["TableNotRegistered"].message


def test_a_topic_that_waits_for_its_table_is_a_condition_that_does_not_say_that_it_is_copied() -> None:
    cluster = running()
    cluster.run(tables=failing_tables("TopicWaitsForTable"))
    found = composed(cluster)
    assert found["TopicWaitsForTable"].message == "table lake.t0: why 0"
    assert "TableNotRegistered" not in found
    assert cluster.ready == ("True", "Running")


def skips_without_effect(count: int) -> SkipsReport:
    listed = [SkipReport(topic="flights", partition=0, offset=n, reason="it was read before") for n in range(count)]
    return SkipsReport(without_effect=count, records_without_effect=listed)


@pytest.mark.parametrize(("count", "named", "rest"), [(1, 1, False), (3, 3, False), (5, 3, True)])
def test_records_to_skip_without_effect_are_named_in_a_condition(count: int, named: int, rest: bool) -> None:
    cluster = running()
    cluster.run(skips=skips_without_effect(count))
    message = composed(cluster)["SkipWithoutEffect"].message
    assert [n for n in range(count) if f"flights-0@{n}: it was read before" in message] == list(range(named))
    assert ("; and 2 more" in message) is rest
    assert cluster.ready == ("True", "Running")


def test_records_to_skip_that_wait_or_were_skipped_are_no_condition() -> None:
    cluster = running()
    cluster.run(skips=SkipsReport(waiting=1, skipped=2))
    assert "SkipWithoutEffect" not in composed(cluster)


def test_an_invalid_skip_annotation_is_a_condition_and_the_driver_continues() -> None:
    cluster = running()
    cluster.annotate({names.SKIP_ANNOTATION: "flights"})
    cluster.converge()
    found = cluster.condition("InvalidAnnotation")
    assert found["message"] == (
        "the annotation s3sink.io/skip is ignored: flights is not topic-partition@offset, such as flights-0@42"
    )
    assert cluster.ready == ("True", "Running")


def test_a_hanging_transaction_is_named_with_the_command_that_aborts_it() -> None:
    cluster = running()
    cluster.run(
        hanging_transactions=[HangingTransactionReport(topic="flights", partition=3, offset=17, end=40, since=START)]
    )
    cluster.converge()
    found = cluster.condition("HangingTransaction")
    assert (found["status"], found["reason"]) == ("True", "HangingTransaction")
    assert "hanging transaction in flights-3 from offset 17 since at least 2025-10-09T" in found["message"]
    assert "abort --topic flights --partition 3 --start-offset 17" in found["message"]
    assert cluster.ready == ("True", "Running")


def test_the_condition_is_constant_while_a_transaction_hangs() -> None:
    cluster = running()
    cluster.run(
        hanging_transactions=[HangingTransactionReport(topic="flights", partition=3, offset=17, end=40, since=START)]
    )
    cluster.converge()
    cluster.run(
        hanging_transactions=[HangingTransactionReport(topic="flights", partition=3, offset=17, end=99, since=START)]
    )
    assert cluster.converge() == 0


def test_once_the_transaction_has_ended_the_condition_is_gone() -> None:
    cluster = running()
    cluster.run(
        hanging_transactions=[HangingTransactionReport(topic="flights", partition=3, offset=17, end=40, since=START)]
    )
    cluster.converge()
    cluster.run()
    cluster.converge()
    assert cluster.condition("HangingTransaction") == {}


def test_the_rejection_of_a_pod_that_is_no_longer_needed_is_not_reported() -> None:
    cluster = running()
    operation = names.operation_pod_name("flights")
    rejection = Rejection(
        kind="Pod", name=operation, status=403, reason="Forbidden", message="no quota", at_ms=cluster.now
    )
    cluster.rejections = [rejection]
    cluster.converge()
    assert not cluster.condition("WriteRejected")
    cluster.annotate({names.STATE_ANNOTATION: "Stopped"})
    cluster.reconcile()
    assert cluster.condition("WriteRejected")["status"] == "True"
