"""Rejected records: log lines, and the error that ends a run."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from sink_job.api.errors import DataError
from sink_job.api.topic_partition import TopicPartition
from sink_job.tasks.write import TaskResult

MAX_REPORTED_REJECTIONS = 3
"""Rejected records of a topic-partition that a round logs one by one."""

_log = logging.getLogger(__name__)


def log_rejected(results: Mapping[TopicPartition, TaskResult]) -> None:
    """Logs the records that `errors.tolerance: All` drops: one line for each topic-partition."""
    for tp, result in sorted(results.items()):
        if count := result.counts.rejected:
            reported = result.rejected[:MAX_REPORTED_REJECTIONS]
            details = "; ".join(f"offset {record.offset}: {record.message}" for record in reported)
            if count > len(reported):
                details += f"; and {count - len(reported):,} more"
            records = "record" if count == 1 else "records"
            _log.warning(
                "%s: dropped %s rejected %s (spec.errors.tolerance: All): %s", tp, f"{count:,}", records, details
            )


def raise_data_errors(results: Mapping[TopicPartition, TaskResult]) -> None:
    """Raises DataError for the first topic-partition whose task stopped at a record."""
    for tp, result in sorted(results.items()):
        if result.error is not None:
            raise DataError(tp.topic, tp.partition, result.error.offset, result.error.message)
