"""The metrics of the operator's own work. Those of the sinks are in `status_metrics`. docs/metrics.md lists both."""

from __future__ import annotations

import platform

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, disable_created_metrics
from prometheus_client.process_collector import ProcessCollector

from sink_job.api.version import package_version

disable_created_metrics()  # type: ignore[no-untyped-call]  # they double the series of counters
REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)

BUILD = Info("s3sink_operator_build", "Versions of the operator and of Python.", registry=REGISTRY)
RECONCILES = Counter("s3sink_operator_reconciles", "Reconcile passes by result.", ["result"], registry=REGISTRY)
RECONCILE_DURATION = Histogram(
    "s3sink_operator_reconcile_duration_seconds",
    "Duration of a reconcile pass and its writes.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
    registry=REGISTRY,
)
QUEUE_DEPTH = Gauge("s3sink_operator_workqueue_depth", "Sinks in the work queue.", registry=REGISTRY)
API_WRITES = Counter(
    "s3sink_operator_api_writes", "Write requests to the API server.", ["kind", "verb"], registry=REGISTRY
)
SINKS = Gauge("s3sink_operator_sinks", "Sinks by condition and status.", ["condition", "status"], registry=REGISTRY)
ROLLOUT_HALTED = Gauge(
    "s3sink_operator_rollout_halted",
    "1 while the rollout of new operator defaults is halted by sinks that are not Ready.",
    registry=REGISTRY,
)
ROLLOUT_PENDING = Gauge(
    "s3sink_operator_rollout_pending_sinks", "Sinks whose driver has previous operator defaults.", registry=REGISTRY
)
ROLLOUT_UPDATED = Gauge(
    "s3sink_operator_rollout_updated_sinks",
    "Sinks that should run and do not wait for new operator defaults.",
    registry=REGISTRY,
)
ROLLOUT_UNAVAILABLE = Gauge(
    "s3sink_operator_rollout_unavailable_sinks", "Sinks that the rollout has made unavailable.", registry=REGISTRY
)
LEADING = Gauge("s3sink_operator_leading", "1 while this process holds the Lease.", registry=REGISTRY)


BUILD.info({"version": package_version(), "python_version": platform.python_version()})
