"""The progress in the status, from the report of a driver. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from s3sink_operator.status.progress_model import (
    MAX_COMMITTED,
    MAX_MOST_LAGGING,
    MAX_TOPICS,
    AssignedPartitions,
    Lag,
    PartitionProgress,
    SinkProgress,
    TopicProgress,
)
from sink_job.api.report import FinalReport, PartitionReport, Report, TopicSum, max_lag_ms, sum_of_lags

MAX_INTEGER: Final = 2**63 - 1
"""The largest integer that the API server accepts."""


def progress(report: Report) -> SinkProgress:
    """The progress that a driver reports: sums, and the topic-partitions with the largest lag."""
    return SinkProgress(
        phase=report.state.value,
        partitions=AssignedPartitions(assigned=report.assigned_partitions, active=report.active_partitions),
        records=report.totals.records,
        objects=report.totals.objects,
        bytes=report.totals.bytes,
        last_publish_time=report.last_publish,
        lag=_lag(report),
        topics=_topics(report.partitions) if report.sums is None else _summed(report.sums.topics),
        most_lagging=_most_lagging(report.partitions),
        open_objects=report.memory.open_objects,
        epoch=report.epoch,
        round=report.round,
        lost_offsets=report.totals.lost or None,
    )


def without_report(previous: SinkProgress) -> SinkProgress:
    """The progress while no driver reports it: offsets in visible objects do not change, log ends do. The last lag is
    kept with the time of its observation."""
    topics = [each.model_copy(update={"lag": None, "lag_seconds": None}) for each in previous.topics or ()]
    unknown = {"end": None, "lag": None, "lag_seconds": None}
    partitions = [each.model_copy(update=unknown) for each in previous.most_lagging or ()]
    lag = last_known_lag(previous)
    return previous.model_copy(
        update={"lag": None, "last_known_lag": lag, "topics": topics or None, "most_lagging": partitions or None}
    )


def last_known_lag(previous: SinkProgress) -> Lag | None:
    """The last observed lag, with the time of its observation."""
    if previous.lag is None:
        return previous.last_known_lag
    return previous.lag.model_copy(update={"time": previous.lag.time or previous.update_time})


def progress_after_publish(previous: SinkProgress, report: FinalReport, at: int) -> SinkProgress:
    """The progress after the pod that published the open objects has terminated, at `at`, and nothing runs."""
    lag = last_known_lag(previous)
    if report.lag is not None:
        lag = Lag(records=report.lag, seconds=None if report.lag else 0, time=at)
    return previous.model_copy(
        update={
            "topics": None,
            "most_lagging": None,
            "lag": None,
            "last_known_lag": lag,
            "records": report.totals.records,
            "objects": report.totals.objects,
            "bytes": report.totals.bytes,
            "open_objects": report.open_objects,
            "epoch": previous.epoch if report.epoch is None else report.epoch,
            "round": previous.round if report.round is None else report.round,
        }
    )


def _lag(report: Report) -> Lag | None:
    """The lag of all topic-partitions whose log end is known."""
    sums = report.sums
    records = _records(report.partitions) if sums is None else _capped(sums.lag)
    if records is None:
        return None
    seconds = _seconds(report.partitions) if sums is None else _whole_seconds(sums.lag_ms)
    return Lag(records=records, seconds=seconds, time=report.log_ends_at or report.now)


def _records(partitions: Sequence[PartitionReport]) -> int | None:
    """The sum of the known lags; None if none is known, which is so for a deleted topic."""
    return _capped(sum_of_lags(partitions))


def _capped(records: int | None) -> int | None:
    return None if records is None else min(records, MAX_INTEGER)


def _seconds(partitions: Sequence[PartitionReport]) -> int | None:
    """The age in s of the oldest record that is not in a visible object, if it is known."""
    return _whole_seconds(max_lag_ms(partitions))


def _whole_seconds(age_ms: int | None) -> int | None:
    return None if age_ms is None else max(0, age_ms) // 1000


def _topics(partitions: Sequence[PartitionReport]) -> list[TopicProgress]:
    by_topic: dict[str, list[PartitionReport]] = {}
    for each in partitions:
        by_topic.setdefault(each.topic, []).append(each)
    by_lag = sorted(by_topic.items(), key=lambda item: (-(_records(item[1]) or 0), item[0]))
    found, left = [], MAX_COMMITTED
    for topic, members in by_lag[:MAX_TOPICS]:
        offsets = _committed(members, left)
        left -= len(offsets or ())
        found.append(
            TopicProgress(
                topic=topic,
                partitions=len(members),
                lag=_records(members),
                lag_seconds=_seconds(members),
                committed=offsets,
            )
        )
    return found


def _summed(sums: Sequence[TopicSum]) -> list[TopicProgress]:
    """The topics of a report that does not list all topic-partitions: without their committed offsets."""
    return [
        TopicProgress(
            topic=each.topic,
            partitions=each.partitions,
            lag=_capped(each.lag),
            lag_seconds=_whole_seconds(each.lag_ms),
        )
        for each in sums[:MAX_TOPICS]
    ]


def _committed(partitions: Sequence[PartitionReport], most: int) -> list[int] | None:
    """The committed offsets of one topic by partition number; None if they are more than `most`."""
    count = max(each.partition for each in partitions) + 1
    if count > most:
        return None
    by_number = {each.partition: each.committed for each in partitions}
    return [by_number.get(number, -1) for number in range(count)]


def _most_lagging(partitions: Sequence[PartitionReport]) -> list[PartitionProgress]:
    behind = sorted(partitions, key=lambda each: (-(each.lag or 0), each.topic, each.partition))[:MAX_MOST_LAGGING]
    return [partition_progress(each) for each in behind]


def partition_progress(report: PartitionReport) -> PartitionProgress:
    """The progress of one topic-partition."""
    return PartitionProgress(
        topic=report.topic,
        partition=report.partition,
        committed=report.committed,
        next=report.next,
        end=report.end,
        lag=report.lag,
        lag_seconds=None if report.lag_ms is None else max(0, report.lag_ms) // 1000,
    )
