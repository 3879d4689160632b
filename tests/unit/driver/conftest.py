"""A report of a running driver, as a fixture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sink_job.api.report import MemoryReport, PartitionReport, Report, RunState, TableSums, Timing, Totals

NOW = 1_700_000_000_000
MakeReport = Callable[..., Report]


@pytest.fixture
def make_report() -> MakeReport:
    """Creates a report with default values; arguments replace them."""

    def make(**given: Any) -> Report:
        defaults: dict[str, Any] = {
            "sink_id": "default.flights",
            "name": "flights",
            "namespace": "default",
            "state": RunState.RUNNING,
            "now": NOW,
            "started_at": NOW - 65_000,
            "epoch": 3,
            "round": 12,
            "assigned_partitions": 2,
            "active_partitions": 1,
            "partitions": [
                PartitionReport(topic="flights", partition=0, committed=90, next=100, end=120, lag=30, open_objects=2),
                PartitionReport(topic="flights", partition=1, committed=50, next=50),
            ],
            "totals": Totals(records=1_500, bytes=12_300_000, objects=4, parts=9, uploaded_bytes=11_000_000),
            "table_sums": TableSums(
                tables=3, failing=1, lag_objects=7, lag_ms=61_500, objects=40, commits=5, skipped_objects=6
            ),
            "last_publish": NOW - 3_000,
            "rounds": Timing(count=9, total_ms=4_500),
            "publishes": Timing(count=9, total_ms=900),
            "memory": MemoryReport(slots=2, open_objects=2, buffered_bytes=70, spilled_bytes=80, jvm_bytes=90),
        }
        return Report(**{**defaults, **given})

    return make
