"""An object of a plan."""

from __future__ import annotations

from sink_job.api.topic_partition import TopicPartition
from sink_job.plan.planned_object import PlannedObject


def test_an_object_is_open_until_it_is_visible() -> None:
    opened = PlannedObject(TopicPartition("t", 0), "p", 0, 9, 10, 100, 1_000, 2_000)
    assert (opened.visible, opened.reason) == (None, None)
