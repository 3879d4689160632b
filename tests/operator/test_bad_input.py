"""Input of others of any size fails no reconcile: it is reported, and the sink continues."""

from __future__ import annotations

import asyncio
import copy
from types import SimpleNamespace
from typing import Any, cast

import pytest

from s3sink_operator import names, status_update
from s3sink_operator.apply import ApplyResult, DecisionApplier
from s3sink_operator.object_cache import ObjectCache, SinkKey
from s3sink_operator.objects.pods import EXECUTOR_MEMORY_ANNOTATION
from s3sink_operator.observe import Observer
from s3sink_operator.reconcile import Reconciler
from s3sink_operator.rollout_tracker import RolloutTracker
from s3sink_operator.sink_rollout import MaxUnavailable
from s3sink_operator.spec_cache import parse
from s3sink_operator.types import Decision, Json, Observed, Rejection, to_ms, to_timestamp
from sink_job.api.report import MemoryReport, PartitionReport
from tests.operator.fake_cluster import SETTINGS, START, report, running

MOST = 2**63 - 1
KEY = SinkKey("data", "flights")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 100_000, id="brackets without an end"),
        pytest.param("[" * 950 + "]" * 950, id="brackets within brackets"),
        pytest.param('{"nonce": ' + "9" * 5000 + "}", id="a number of thousands of digits"),
        pytest.param('{"nonce": "\\ud800", "to": "Earliest"}', id="half a character"),
    ],
)
def test_an_unreadable_reset_annotation_is_reported_and_the_driver_is_still_managed(text: str) -> None:
    cluster = running()
    cluster.annotate({names.RESET_OFFSETS_ANNOTATION: text})
    cluster.fail(exit_code=75)
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running")
    assert cluster.condition("OffsetsReset")["reason"] == "InvalidRequest"


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


def test_sums_are_limited_to_the_largest_integer_of_the_api_server() -> None:
    much = [PartitionReport(topic="t", partition=n, committed=0, next=0, lag=MOST) for n in range(3)]
    held = MemoryReport(slots=1, buffered_bytes=MOST, spilled_bytes=MOST)
    cluster = running(executor={"mode": "Local", "memory": {"mode": "Recommend"}})
    cluster.report = report(partitions=much, memory=held, now=cluster.now)
    cluster.wait(60_000)
    cluster.converge()
    assert cluster.status["progress"]["lag"]["records"] == MOST
    assert cluster.status["progress"]["topics"][0]["lag"] == MOST
    assert cluster.status["memory"]["inputs"]["heldBytes"] == MOST


@pytest.mark.parametrize("digits", [10, 16, 62, 63])
def test_a_label_that_is_no_attempts_number_counts_nothing(digits: int) -> None:
    cluster = running(executor={"mode": "Cluster"})
    foreign = copy.deepcopy(cluster.executor(1))
    foreign["metadata"]["labels"][names.ATTEMPT_LABEL] = "9" * digits
    cluster.fail(exit_code=75)
    cluster.executors = [foreign]
    cluster.converge_with_kubelet()
    assert cluster.status["attempts"][0]["number"] == 2


def test_a_drivers_annotation_that_is_no_size_is_none() -> None:
    cluster = running(executor={"mode": "Cluster"})
    assert cluster.driver
    cluster.driver["metadata"]["annotations"][EXECUTOR_MEMORY_ANNOTATION] = "9" * 5000
    cluster.converge()
    assert cluster.ready == ("True", "Running")


@pytest.mark.parametrize("ms", [-(10**18), 10**18])
def test_a_time_outside_of_the_calendar_is_clamped(ms: int) -> None:
    assert to_ms(to_timestamp(ms)) is not None


def reconciled(observe: Any, written: list[Decision], rejection: Rejection | None = None) -> float | None:
    """One pass of a reconciler that observes with `observe`. Its decisions go to `written`, the first is rejected."""
    sink = running().sink
    store = SimpleNamespace(get=lambda *_: sink, version=lambda _: 1)

    async def apply(key: SinkKey, sink: Json, decision: Decision) -> ApplyResult:
        written.append(decision)
        return ApplyResult(version="1", rejection=rejection if len(written) == 1 else None)

    async def asked(key: SinkKey, *, refresh: object) -> Observed:
        found: Observed = observe(sink)
        return found

    observer = SimpleNamespace(
        cache=store, observe=asked, has_unwatched_child=lambda _: False, record_outcome=lambda *_: None
    )
    executor = SimpleNamespace(apply=apply)
    rollout = RolloutTracker("", MaxUnavailable(value=1), ObjectCache(), lambda: START + 5)
    reconciler = Reconciler(
        cast("Observer", observer), cast("DecisionApplier", executor), SETTINGS, lambda: START + 5, rollout
    )
    return asyncio.run(reconciler.reconcile(KEY))


def ready_of(decision: Decision) -> Json:
    assert decision.status is not None
    found: Json = next(each for each in decision.status["conditions"] if each["type"] == "Ready")
    return found


def test_an_unexpected_error_of_a_reconcile_is_reported_in_the_status() -> None:
    def observe_sink(_: Json) -> Observed:
        raise ZeroDivisionError("secret")

    written: list[Decision] = []
    assert reconciled(observe_sink, written) == 60
    reported = ready_of(written[0])
    assert (reported["status"], reported["reason"]) == ("Unknown", "OperatorError")
    assert "ZeroDivisionError" in reported["message"]
    assert "secret" not in reported["message"]


def test_a_rejected_status_is_reported_in_the_previous_one() -> None:
    def observe_sink(sink: Json) -> Observed:
        return Observed(sink=sink, spec=parse(sink).spec)

    rejection = Rejection(kind="S3Sink", name="flights", status=422, reason="Invalid", message="lag: no", at_ms=START)
    written: list[Decision] = []
    reconciled(observe_sink, written, rejection)
    reported = ready_of(written[1])
    assert (reported["status"], reported["reason"]) == ("Unknown", "OperatorError")
    assert "lag: no" in reported["message"]
    assert written[1].status is not None
    assert "attempts" in written[1].status


def test_a_reported_error_is_not_written_again() -> None:
    first = status_update.operator_error({}, "it fails", now=START)
    assert first is not None
    assert status_update.operator_error(first, "it fails", now=START + 60_000) is None
