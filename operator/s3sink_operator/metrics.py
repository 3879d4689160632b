"""What `/metrics` tells of the operator itself."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

REGISTRY = CollectorRegistry()

RECONCILES = Counter("s3sink_operator_reconciles", "Looks at a sink, by how they ended.", ["result"], registry=REGISTRY)
RECONCILE_SECONDS = Histogram(
    "s3sink_operator_reconcile_seconds",
    "How long a look at a sink and its writes took.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
    registry=REGISTRY,
)
QUEUE_LENGTH = Gauge("s3sink_operator_queue", "Sinks that wait for a look.", registry=REGISTRY)
API_WRITES = Counter("s3sink_operator_api_writes", "Writes to the API server.", ["kind", "verb"], registry=REGISTRY)
SINKS = Gauge(
    "s3sink_operator_sinks", "Sinks, by condition and its status.", ["condition", "status"], registry=REGISTRY
)
LEADING = Gauge("s3sink_operator_leading", "1 while this process holds the lease.", registry=REGISTRY)
