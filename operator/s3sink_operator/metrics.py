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
LEADING = Gauge("s3sink_operator_leading", "1 while this process holds the Lease.", registry=REGISTRY)
