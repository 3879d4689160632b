"""The report and the log lines about records to skip."""

from __future__ import annotations

import logging

import pytest

from sink_job.api.sections.skip_section import SkipSpec
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.skips import NOT_READ, PASSED, log_skipped, log_skips, skips_report
from sink_job.ledger.state import LedgerState, PartitionState
from sink_job.rotation.types import RotationState

TP = TopicPartition("flights", 0)


def skip(offset: int, partition: int = 0) -> SkipSpec:
    return SkipSpec(topic="flights", partition=partition, offset=offset)


def partition(next_offset: int, *skipped: int) -> PartitionState:
    return PartitionState(RotationState.start(next_offset), rotation_start=0, skipped=skipped)


STATE = LedgerState(epoch=1, partitions={str(TP): partition(10, 4, 12)})


def test_a_record_waits_until_it_is_passed_and_was_skipped_afterwards() -> None:
    report = skips_report([skip(4), skip(10), skip(12)], STATE)
    assert report is not None
    assert (report.waiting, report.skipped, report.without_effect) == (2, 1, 0)


def test_a_record_that_was_read_before_or_is_not_read_has_no_effect() -> None:
    report = skips_report([skip(3), skip(3, partition=1)], STATE)
    assert report is not None
    assert report.without_effect == 2
    assert [(each.partition, each.reason) for each in report.records_without_effect] == [(0, PASSED), (1, NOT_READ)]


def test_of_many_records_without_effect_some_are_listed() -> None:
    report = skips_report([skip(3, partition=n) for n in range(2, 100)], STATE)
    assert report is not None
    assert (report.without_effect, len(report.records_without_effect)) == (98, 20)


def test_there_is_no_report_without_records_and_before_the_claim() -> None:
    assert skips_report([], STATE) is None
    assert skips_report([skip(3)], LedgerState()) is None


def test_the_start_of_a_driver_names_the_records_without_effect(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        log_skips([skip(3), skip(11), skip(4)], STATE)
        log_skips([], STATE)
    assert caplog.messages == [
        "spec.errors.skip: 1 records are to be passed over, 1 were passed over before",
        f"flights-0@3 of spec.errors.skip has no effect: {PASSED}",
    ]


def test_a_round_names_the_records_that_it_has_skipped(caplog: pytest.LogCaptureFixture) -> None:
    after = {TP: partition(14, 4, 11, 12), TopicPartition("flights", 1): partition(9)}
    with caplog.at_level(logging.WARNING):
        log_skipped(STATE, after)
    assert caplog.messages == ["flights-0: skipped offsets 11, 12 (spec.errors.skip): they are in no object"]
