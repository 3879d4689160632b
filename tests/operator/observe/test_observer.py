"""What the observation of one sink costs others, with many sinks in the cluster."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast

import pytest

from s3sink_operator.conflicts.overlaps import resources_of
from s3sink_operator.observe import observer
from s3sink_operator.observe.observer import Observer
from s3sink_operator.observe.owner_check import OwnerChecker
from s3sink_operator.observe.pod_events import PodEventReader
from s3sink_operator.observe.template_check import TemplateChecker
from s3sink_operator.types import Json, Observed, SinkResources
from s3sink_operator.watch.object_cache import ObjectCache, SinkKey
from sink_job.api.spec import Sink
from tests.operator.fake_cluster import SETTINGS, Cluster, document

SINKS = 300


def listed_observer(*sinks: Json) -> Observer:
    """An operator that has just listed these sinks."""
    store = ObjectCache()
    for number, sink in enumerate(sinks, 1):
        sink["metadata"]["resourceVersion"] = str(number)
        store.on_event(sink)
    api = cast("Any", None)
    return Observer(api, store, api, PodEventReader(api), TemplateChecker(api, SETTINGS), OwnerChecker(api, "c1"))


def sink(name: str, topic: str) -> Json:
    return document(name, uid=name, kafka={"bootstrapServers": "kafka:9092", "topics": [topic]})


def many() -> list[Json]:
    """The first and the last one have the same topic."""
    return [sink(f"sink-{number:03}", f"topic-{number % (SINKS - 1)}") for number in range(SINKS)]


def test_other_tasks_run_while_the_sinks_of_the_start_are_indexed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first pass indexed all sinks at once: 8 s with 1,000 sinks of 1,000 topics, while the Lease expired."""
    indexed = 0
    longest = 0

    def counted(found: Sink, made: Json) -> SinkResources:
        nonlocal indexed
        indexed += 1
        return resources_of(found, made)

    monkeypatch.setattr(observer, "resources_of", counted)

    async def other_task() -> None:
        nonlocal longest
        before = 0
        while before < SINKS:
            longest, before = max(longest, indexed - before), indexed
            await asyncio.sleep(0)

    async def passes() -> Observed | None:
        other = asyncio.create_task(other_task())
        found = await listed_observer(*many()).observe(SinkKey("data", "sink-000"), refresh=frozenset())
        await other
        return found

    found = asyncio.run(passes())
    assert found is not None
    assert [each.name for each in found.competitors] == [f"sink-{SINKS - 1}"]
    assert (indexed, longest) == (SINKS, 1)


def test_no_pass_decides_before_all_sinks_of_the_start_are_indexed() -> None:
    async def passes() -> list[Observed | None]:
        watching = listed_observer(*many())
        keys = (SinkKey("data", "sink-000"), SinkKey("data", f"sink-{SINKS - 1}"), SinkKey("data", "sink-001"))
        return list(await asyncio.gather(*(watching.observe(key, refresh=frozenset()) for key in keys)))

    first, last, other = asyncio.run(passes())
    assert first is not None
    assert last is not None
    assert other is not None
    assert [len(each.competitors) for each in (first, last, other)] == [1, 1, 0]


def test_a_sink_whose_resources_fail_does_not_fail_the_pass_of_another_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(found: Sink, made: Json) -> SinkResources:
        if found.name == "hostile":
            raise ValueError("unexpected")
        return resources_of(found, made)

    monkeypatch.setattr(observer, "resources_of", failing)
    watching = listed_observer(sink("hostile", "a"), sink("one", "b"), sink("two", "b"))
    with caplog.at_level(logging.ERROR):
        found = asyncio.run(watching.observe(SinkKey("data", "one"), refresh=frozenset()))
    assert found is not None
    assert [each.name for each in found.competitors] == ["two"]
    assert "data/hostile: its resources cannot be compared" in caplog.text


def test_a_sink_above_the_limit_of_its_namespace_has_a_condition_and_runs() -> None:
    watching = listed_observer(sink("one", "a"), sink("two", "b"))
    watching.resources.max_topics = 1
    found = asyncio.run(watching.observe(SinkKey("data", "two"), refresh=frozenset()))
    assert found is not None
    assert not found.compares_topics
    cluster = Cluster(compares_topics=False)
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running")
    condition = cluster.condition("ConflictUnknown")
    assert (condition["status"], condition["reason"]) == ("True", "TooManyTopics")
    assert condition["message"] == (
        "the S3Sinks of the namespace data name more than 100000 topics, so the operator does not compare the topics "
        "of this sink with those of others. A topic that another sink copies to the same directory is found by the "
        "driver, which ends with OwnershipConflict. Delete sinks, set topicsPattern instead of topics, or use several "
        "namespaces"
    )
