"""The tables in the status, from the report of a driver. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from s3sink_operator.status.status_model import TableError, TablePositionStatus, TableStatus
from sink_job.api.report import TableReport


def tables(reports: Sequence[TableReport]) -> list[TableStatus] | None:
    """The tables that a driver reports; None without any."""
    return [_table(each) for each in reports] or None


def _table(report: TableReport) -> TableStatus:
    position = None
    if report.record is not None:
        position = TablePositionStatus(generation=report.generation, record=report.record)
    return TableStatus(
        name=report.table,
        topic=report.topic or None,
        position=position,
        lag_objects=report.lag_objects,
        lag_seconds=max(0, report.lag_ms) // 1000,
        last_commit_time=report.registered_at,
        error=None if report.reason is None else TableError(reason=report.reason, message=report.message),
        skipped_objects=report.skipped_objects,
    )
