"""`s3sink compare`: the comparison of all topic-partitions of a sink with the objects of another writer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final

from sink_job.api.errors import ConfigurationError
from sink_job.api.topic_partition import TopicPartition
from sink_job.compare.compared_objects import ComparedObject, OtherSide, SinkSide
from sink_job.compare.group_comparison import MAX_SURPLUS, GroupResult, RecordComparer
from sink_job.compare.key_matching import last_offsets, merged
from sink_job.compare.partition_keys import PartitionKeys, Window
from sink_job.compare.reconciliation import Classifier
from sink_job.compare.results import DifferenceType, OffsetRange, PartitionComparison, SideDifference, limited
from sink_job.compare.sequence_diff import TooManyRecords
from sink_job.verify.bucket_scanner import ReportProgress

GROUPS_AT_ONCE: Final = 256


@dataclass(frozen=True, kw_only=True)
class ComparisonContext:
    """Both sides. `records` reads objects, with the threads of `pool`; None: keys alone are compared. `other_url` is
    for messages."""

    sink: SinkSide
    other: OtherSide
    other_url: str
    window: Window
    records: RecordComparer | None
    pool: Executor
    report: ReportProgress


def compare_sides(context: ComparisonContext) -> list[PartitionComparison]:
    """The result of each topic-partition of either side, in ascending order.

    Raises ConfigurationError when there is nothing to compare, and the errors of the store.
    """
    only = context.window.partition
    partitions = sorted({*context.sink.partitions, *context.other.partitions})
    if not context.other.partitions:
        raise ConfigurationError(
            f"no object below {context.other_url} has a key of the sink's topics ({_some(context.sink.topics)}) and "
            "format. Check --with: it is topics.dir of the connector, without the topic"
        )
    if only is not None and only not in partitions:
        raise ConfigurationError(f"--partition {only}: neither the sink nor {context.other_url} has objects of it")
    results = [_compared(context, tp) for tp in partitions if only in (None, tp)]
    if not any(each.objects or each.other_objects or each.findings for each in results):
        raise ConfigurationError(
            "no object begins in the compared offsets: nothing was compared. Wait until both have closed objects, or "
            "check --from and --to"
        )
    return results


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (" …" if len(names) > 3 else "")


def _compared(context: ComparisonContext, tp: TopicPartition) -> PartitionComparison:
    keys = PartitionKeys(context.sink.partitions.get(tp), context.other.partitions.get(tp, ()), context.window)
    context.report(f"{tp}: {len(keys.sink):,} objects of the sink, {len(keys.other):,} of the other")
    findings = list(keys.findings())
    own, others = last_offsets(keys.sink, keys.end), last_offsets(keys.other, keys.end)
    results = None
    if context.records is not None:
        results = _results(context, context.records, tp, keys)
        in_sink = partial(_present, context, context.records, keys.sink, of_sink=True)
        in_other = partial(_present, context, context.records, keys.other, of_sink=False)
        findings += Classifier(keys.gaps, in_sink, in_other).findings(results)
    paired = [one for one, _ in (*keys.matches.equal, *keys.matches.moved)]
    return PartitionComparison(
        topic=tp.topic,
        partition=tp.partition,
        start=keys.start,
        end=keys.end,
        objects=len(keys.sink),
        other_objects=len(keys.other),
        equal_keys=len(keys.matches.equal),
        both=_ranges(paired, own),
        only_sink=_ranges(keys.matches.only_sink, own),
        only_other=_ranges(keys.matches.only_other, others),
        records=None if results is None else sum(each.equal for each in results),
        notes=tuple(keys.notes()),
        findings=limited(findings),
    )


def _results(
    context: ComparisonContext, records: RecordComparer, tp: TopicPartition, keys: PartitionKeys
) -> list[GroupResult]:
    """The results of all groups. After too many surplus records, those without any, and one that reports it."""
    results: list[GroupResult] = []
    groups, limited_records = iter(keys.matches.groups), records.renewed()
    try:
        while chosen := list(islice(groups, GROUPS_AT_ONCE)):
            results += context.pool.map(limited_records.compare, chosen)
            context.report(f"{tp}: compared {len(results):,} of {len(keys.matches.groups):,} groups of objects")
    except TooManyRecords:
        different = [each.group for each in results if each.surplus] or chosen
        message = (
            f"more than {MAX_SURPLUS:,} records may be on one side only or in different objects: the rest was not "
            "compared. Compare fewer offsets with --from and --to"
        )
        finding = SideDifference(DifferenceType.RECORDS_MISSING, different[0].first, message)
        results = [each for each in results if not each.surplus]
        results.append(GroupResult(different[0], findings=(finding,)))
    return results


def _present(
    context: ComparisonContext,
    records: RecordComparer,
    objects: Sequence[ComparedObject],
    values: Set[int],
    *,
    of_sink: bool,
) -> set[int]:
    """Those of the digests `values` that are digests of records of these objects."""
    context.report(f"searching {len(objects):,} objects for {len(values):,} records")
    found: set[int] = set()
    for each in context.pool.map(lambda each: records.present(each, values, of_sink=of_sink), objects):
        found |= each
    return found


def _ranges(objects: Sequence[ComparedObject], lasts: Mapping[str, int]) -> tuple[OffsetRange, ...]:
    return tuple(merged((each.first, lasts[each.key]) for each in objects))
