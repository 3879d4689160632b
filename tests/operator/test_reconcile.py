"""A reconcile pass that fails: it is reported in the status, and retried."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from s3sink_operator.apply.applier import ApplyResult, DecisionApplier
from s3sink_operator.observe.observer import Observer
from s3sink_operator.observe.spec_cache import parse
from s3sink_operator.reconcile import Reconciler
from s3sink_operator.rollout.rollout_tracker import RolloutTracker
from s3sink_operator.rollout.sink_rollout import MaxUnavailable
from s3sink_operator.status import status_update
from s3sink_operator.types import Decision, Json, Observed, Rejection
from s3sink_operator.watch.object_cache import ObjectCache, SinkKey
from tests.operator.fake_cluster import SETTINGS, START, running

KEY = SinkKey("data", "flights")


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
