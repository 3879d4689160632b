"""What becomes of the records of `errors.skip`: log lines, and the part of the driver's report."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from sink_job.api.report import MAX_SKIPS_SHOWN, SkipReport, SkipsReport
from sink_job.api.sections.skip_section import SkipSpec
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.state import LedgerState, PartitionState

NOT_READ = "the sink does not read this topic-partition"
PASSED = (
    "the sink has passed this offset: its record is in an object or was dropped, it has no record, or it is before the "
    "start of the sink"
)

_log = logging.getLogger(__name__)


def skips_report(records: Sequence[SkipSpec], state: LedgerState) -> SkipsReport | None:
    """What becomes of `records`, of which `state` is the ledger's; None without any, and before the claim."""
    if not records or not state.epoch:
        return None
    waiting = skipped = 0
    ineffective: list[SkipReport] = []
    for each in records:
        p = state.partition(each.topic_partition)
        if p is not None and each.offset >= p.next:
            waiting += 1
        elif p is not None and each.offset in p.skipped:
            skipped += 1
        else:
            reason = NOT_READ if p is None else PASSED
            ineffective.append(
                SkipReport(topic=each.topic, partition=each.partition, offset=each.offset, reason=reason)
            )
    return SkipsReport(
        waiting=waiting,
        skipped=skipped,
        without_effect=len(ineffective),
        records_without_effect=ineffective[:MAX_SKIPS_SHOWN],
    )


def log_skips(records: Sequence[SkipSpec], state: LedgerState) -> None:
    """Logs at the start of a driver how many records it will pass over, and which ones of the list have no effect."""
    report = skips_report(records, state)
    if report is None:
        return
    _log.info(
        "spec.errors.skip: %d records are to be passed over, %d were passed over before", report.waiting, report.skipped
    )
    for each in report.records_without_effect:
        _log.warning(
            "%s-%d@%d of spec.errors.skip has no effect: %s", each.topic, each.partition, each.offset, each.reason
        )
    more = report.without_effect - len(report.records_without_effect)
    if more:
        _log.warning("%d more records of spec.errors.skip have no effect", more)


def log_skipped(before: LedgerState, after: Mapping[TopicPartition, PartitionState]) -> None:
    """Logs the records that a round has passed over: `before` and `after` are the states around it."""
    for tp, p in sorted(after.items()):
        previous = before.partition(tp)
        start = 0 if previous is None else previous.next
        passed = [each for each in p.skipped if start <= each < p.next]
        if passed:
            offsets = ", ".join(map(str, passed[:MAX_SKIPS_SHOWN]))
            more = f" and {len(passed) - MAX_SKIPS_SHOWN} more" if len(passed) > MAX_SKIPS_SHOWN else ""
            _log.warning("%s: skipped offsets %s%s (spec.errors.skip): they are in no object", tp, offsets, more)
