"""Rejected records: log lines, and the errors that end a run."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from sink_job.api.errors import DataError, TooManyRejected
from sink_job.api.spec import Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.tasks.write import TaskResult

MAX_REPORTED_REJECTIONS = 3
"""Rejected records of a topic-partition that a round logs one by one."""

MIN_REJECTED = 100
"""Minimum number of rejected records of a topic-partition in a round that can be too many."""

_log = logging.getLogger(__name__)


def log_rejected(results: Mapping[TopicPartition, TaskResult]) -> None:
    """Logs the records that `errors.tolerance: All` drops, or that are in dead-letter objects: one line for each
    topic-partition."""
    for tp, result in sorted(results.items()):
        if count := result.counts.rejected - result.counts.kept_nulls:
            reported = result.rejected[:MAX_REPORTED_REJECTIONS]
            details = "; ".join(f"offset {record.offset}: {record.message}" for record in reported)
            if count > len(reported):
                details += f"; and {count - len(reported):,} more"
            records = "record" if count == 1 else "records"
            if result.counts.dead_letters:
                _log.warning("%s: %s rejected %s kept as dead letters: %s", tp, f"{count:,}", records, details)
                continue
            _log.warning(
                "%s: dropped %s rejected %s (spec.errors.tolerance: All): %s", tp, f"{count:,}", records, details
            )


def check_rejected_share(results: Mapping[TopicPartition, TaskResult], sink: Sink) -> None:
    """Raises TooManyRejected for the first topic-partition of which a round has rejected more than the share
    `errors.deadLetters.maxShare` of the records, and at least `MIN_REJECTED`: a wrong converter must not drop a whole
    topic."""
    max_share = sink.spec.errors.dead_letters.max_share
    for tp, result in sorted(results.items()):
        counts = result.counts
        records, rejected = (
            counts.records + counts.ignored + counts.filtered + counts.rejected,
            counts.rejected - counts.kept_nulls,
        )
        if rejected >= MIN_REJECTED and rejected > max_share * records:
            first = result.rejected[0]
            raise TooManyRejected(
                *(tp.topic, tp.partition, first.offset, first.message, rejected, records, max_share),
                sink=sink.command_arguments,
            )


def raise_data_errors(results: Mapping[TopicPartition, TaskResult], sink: Sink) -> None:
    """Raises DataError for the first topic-partition whose task stopped at a record."""
    for tp, result in sorted(results.items()):
        if result.error is not None:
            at = result.error
            raise DataError(tp.topic, tp.partition, at.offset, at.message, sink.command_arguments)
