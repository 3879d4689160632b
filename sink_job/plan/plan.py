"""A plan: the figures of one manifest over a sample, with its costs and what to know of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sink_job.api.spec import Sink
from sink_job.plan.findings import findings
from sink_job.plan.prices import Cost, Prices, cost
from sink_job.plan.replay import Replay, replay
from sink_job.plan.resources import PlannedResources, executors_for, resources
from sink_job.plan.sample import Sample
from sink_job.plan.statistics import PlanFigures, figures
from sink_job.registry.base import SchemaRegistry


@dataclass(frozen=True)
class Plan:
    """What the settings of the manifest `name` do to the sample."""

    name: str
    sink: Sink
    sample: Sample
    replay: Replay
    figures: PlanFigures
    resources: PlannedResources
    prices: Prices
    cost: Cost
    findings: Sequence[str]


def make_plan(name: str, sink: Sink, sample: Sample, prices: Prices, registry: SchemaRegistry | None) -> Plan:
    """Runs the sink over the sample. Raises ConfigurationError, and what the registry raises."""
    executor = sink.spec.executor
    partitions = sum(each.partitions for each in sample.topics.values())
    executors = executors_for(partitions, executor)
    replayed = replay(sink, sample, registry=registry, cores=executor.cores, executors=max(1, executors))
    found = figures(sample, replayed, sink.spec.rotation)
    given = resources(replayed.required, partitions, executor)
    stored = sum(topic.stored_a_day for topic in found.topics)
    return Plan(
        name=name,
        sink=sink,
        sample=sample,
        replay=replayed,
        figures=found,
        resources=given,
        prices=prices,
        cost=cost(found.requests_a_day, stored, prices),
        findings=findings(sink.spec, sample, found, given),
    )
