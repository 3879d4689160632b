"""What the tracker of a rollout knows beyond the status of the sinks."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from s3sink_operator.apply.applier import ApplyResult, DecisionApplier
from s3sink_operator.observe.observer import Observer
from s3sink_operator.reconcile import Reconciler
from s3sink_operator.rollout.rollout_tracker import RolloutTracker
from s3sink_operator.rollout.sink_rollout import MaxUnavailable
from s3sink_operator.types import Decision, Json, Observed
from s3sink_operator.watch.object_cache import ObjectCache, SinkKey
from tests.operator.fake_cluster import SETTINGS, START, running
from tests.operator.rollout.fleet import NEW, Fleet, broken_rollout

ONE, TWO = SinkKey("data", "one"), SinkKey("data", "two")


def tracker() -> RolloutTracker:
    cache = ObjectCache()
    cache.listed = True
    return RolloutTracker("template", MaxUnavailable(value=1), cache, lambda: START)


def test_the_sinks_that_are_next_are_queued_once() -> None:
    fleet = Fleet(6, max_unavailable="2", pause_ms=0)
    fleet.start_operator(NEW)
    fleet.step()
    fleet.tracker.due()
    while len(fleet.not_ready()) > 0:
        fleet.step()
    fleet.sinks["sink-0005"].edit(state="Paused")
    fleet.run()
    assert len(fleet.tracker.due()) <= 2
    assert fleet.tracker.due() == []


def test_a_halt_queues_all_sinks_that_wait() -> None:
    fleet = broken_rollout(5)
    assert sorted(key.name for key in fleet.tracker.due()) == fleet.with_condition("RolloutPending")
    assert fleet.tracker.due() == []


def test_a_restart_that_is_being_written_counts() -> None:
    found = tracker()
    found.reserve(ONE)
    assert not found.gate(TWO).is_open
    assert found.gate(ONE).is_open


def test_a_restart_that_was_not_written_does_not_count() -> None:
    found = tracker()
    found.reserve(ONE)
    found.release(ONE)
    assert found.gate(TWO).is_open


def test_a_deleted_sink_does_not_count() -> None:
    found = tracker()
    found.reserve(ONE)
    found.forget(ONE)
    assert found.gate(TWO).is_open


def test_nothing_is_restarted_before_all_lists_are_complete() -> None:
    found = tracker()
    found.cache.listed = False
    assert not found.gate(ONE).is_open


@pytest.mark.parametrize("keeps", [True, False], ids=["kept", "pruned"])
def test_a_rollout_stops_if_the_api_server_does_not_keep_its_record(keeps: bool) -> None:
    """An outdated CustomResourceDefinition prunes it."""
    cluster, found = running(), tracker()
    sink = cluster.sink

    async def apply(key: SinkKey, sink: Json, decision: Decision) -> ApplyResult:
        assert decision.writes.starts_rollout
        if keeps and decision.status is not None:
            sink["status"] = decision.status
        return ApplyResult(version="1")

    async def observe(key: SinkKey, *, refresh: object) -> Observed:
        return replace(cluster.observe(), sink=sink)

    cache = SimpleNamespace(get=lambda *_: sink, version=lambda _: 1)
    observer = SimpleNamespace(
        cache=cache, observe=observe, has_unwatched_child=lambda _: False, record_outcome=lambda *_: None
    )
    applier = cast("DecisionApplier", SimpleNamespace(apply=apply))
    settings = replace(SETTINGS, image=NEW)
    reconciler = Reconciler(cast("Observer", observer), applier, settings, lambda: START + 5, found)
    asyncio.run(reconciler.reconcile(SinkKey("data", "flights")))
    found.release(SinkKey("data", "flights"))
    assert found.gate(TWO).is_open is keeps
