"""Metrics of each sink, from the status in the object cache: they exist while no driver runs.

Names, labels and values are those that examples/kube-state-metrics/s3sinks.yaml gives in kube-state-metrics. The number
of series depends on the number of sinks alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from s3sink_operator.object_cache import ObjectCache
from s3sink_operator.status_model import ConditionStatus
from s3sink_operator.types import Json, to_ms

PREFIX: Final = "s3sink_status_"
ALWAYS: Final = ("Ready", "Reconciling", "Stalled")
"""The conditions that have series even without a status."""
_STATUSES: Final = tuple(each.value for each in ConditionStatus)
_SINK: Final = ("namespace", "sink")


class SinkStatusCollector(Collector):
    """Reads the cached sinks at each scrape."""

    def __init__(self, cache: ObjectCache) -> None:
        self._cache = cache

    def collect(self) -> Iterator[Metric]:
        return sink_metrics(self._cache.all("S3Sink"))

    def describe(self) -> list[Metric]:
        return list(sink_metrics([]))


def sink_metrics(sinks: Iterable[Json]) -> Iterator[GaugeMetricFamily]:
    """The metrics of the status of sinks. A value that the status does not have has no sample."""
    condition = _family("condition", "1 for the status of a condition, else 0", "condition", "status")
    phase = _family("phase", "1 for the phase of the sink", "phase")
    desired = _family("desired_state", "1 for the desired state of the sink", "state")
    failures = _family("consecutive_failures", "Failures since the last stable run")
    lag = _family("lag_records", "Records that are not in a visible object")
    published = _family("last_publish_time_seconds", "Time of the last publication of an object")
    for sink in sinks:
        meta, status = sink["metadata"], _section(sink, "status")
        labels = [meta["namespace"], meta["name"]]
        for kind, found in _conditions(status).items():
            for each in _STATUSES:
                condition.add_metric([*labels, kind, each], each == found)
        progress = _section(status, "progress")
        if name := progress.get("phase"):
            phase.add_metric([*labels, str(name)], 1)
        if name := status.get("desiredState"):
            desired.add_metric([*labels, str(name)], 1)
        failures.add_metric(labels, _section(status, "retry").get("failures") or 0)
        if (records := _section(progress, "lag").get("records")) is not None:
            lag.add_metric(labels, records)
        if (time := to_ms(progress.get("lastPublishTime"))) is not None:
            published.add_metric(labels, time / 1000)
    yield from (condition, phase, desired, failures, lag, published)


def _family(name: str, about: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(PREFIX + name, about, labels=[*_SINK, *labels])


def _conditions(status: Json) -> dict[str, str]:
    """The status of each condition by its type. A condition that the operator has not written yet is Unknown."""
    found = {each["type"]: each["status"] for each in status.get("conditions") or ()}
    return dict.fromkeys(ALWAYS, ConditionStatus.UNKNOWN.value) | found


def _section(document: Json, name: str) -> dict[str, Any]:
    return document.get(name) or {}
