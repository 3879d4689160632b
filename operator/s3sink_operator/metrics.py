"""The metrics of the operator at `/metrics`."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

REGISTRY = CollectorRegistry()

RECONCILES = Counter("s3sink_operator_reconciles", "Reconcile passes by result.", ["result"], registry=REGISTRY)
RECONCILE_SECONDS = Histogram(
    "s3sink_operator_reconcile_seconds",
    "Duration of a reconcile pass and its writes.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
    registry=REGISTRY,
)
QUEUE_LENGTH = Gauge("s3sink_operator_queue", "Sinks in the work queue.", registry=REGISTRY)
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
