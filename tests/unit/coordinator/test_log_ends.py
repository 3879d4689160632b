"""Truncated logs: what is reported, and how often."""

from __future__ import annotations

import pytest

from sink_job.api.enums import OnDataLoss
from sink_job.api.errors import DataLoss
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.log_ends import TruncationDetector

TP = TopicPartition("flights", 0)
OTHER = TopicPartition("flights", 1)


def test_a_log_that_ends_below_the_next_offset_is_truncated() -> None:
    detector = TruncationDetector(OnDataLoss.FAIL, lambda tp: 10)
    short = detector.truncated({TP: 9, OTHER: 10})
    assert short == {TP: 9}
    with pytest.raises(DataLoss, match=r"flights-0: the log was truncated: it ends at 9, but was read up to 9 .*"):
        detector.report(short)


def test_a_truncation_is_reported_once_with_continue(caplog: pytest.LogCaptureFixture) -> None:
    detector = TruncationDetector(OnDataLoss.CONTINUE, lambda tp: 10)
    detector.report(detector.truncated({TP: 7}))
    assert len(caplog.messages) == 1
    assert detector.truncated({TP: 7, OTHER: 8}) == {OTHER: 8}
