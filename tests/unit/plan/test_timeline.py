"""Timelines of any objects, also of a simulation."""

from __future__ import annotations

import numpy as np

from sink_job.api.topic_partition import TopicPartition
from sink_job.plan.planned_object import PlannedObject
from sink_job.plan.timeline import Timelines, objects_page, time_text
from sink_job.rotation.types import CloseReason

TP = TopicPartition("t", 0)
CLOSED = PlannedObject(TP, "p", 0, 9, 10, 100, 1_000, 2_000, 3_000, CloseReason.INTERVAL)


def test_a_page_has_the_timelines_of_all_topics() -> None:
    other = CLOSED._replace(tp=TopicPartition("u", 3), visible=None, reason=None)
    arrivals = {TP: np.array([1_000, 2_000]), other.tp: np.array([1_000])}
    text = objects_page("s3sink simulate", Timelines(0, 4_000, arrivals, [CLOSED, other]))
    assert "<h3>t</h3>" in text
    assert "<h3>u</h3>" in text
    assert "left:25.000%;width:50.000%" in text
    assert "closed by interval" in text
    assert "stays open" in text


def test_a_span_without_length_has_a_page() -> None:
    text = objects_page("s3sink simulate", Timelines(1_000, 1_000, {TP: np.array([1_000])}, [CLOSED]))
    assert "closed by interval" in text


def test_times_are_in_utc() -> None:
    assert time_text(0) == "1970-01-01 00:00:00 UTC"
