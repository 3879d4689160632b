"""Figures of a day from those of a sample."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.plan.replay import replay
from sink_job.plan.statistics import PlanFigures, Spread, figures, time_limit
from tests.unit.plan.samples import MINUTE, partition, sample, sink


def _figures(stamps: list[int], *, minutes: int = 10, of: int | None = None, **sections: Any) -> PlanFigures:
    planned, given = sink(**sections), sample({0: partition(stamps)}, minutes=minutes, of=of)
    return figures(given, replay(planned, given, registry=None, cores=1), planned.spec.rotation)


def test_percentiles_are_weighted() -> None:
    assert Spread.of([(1, 1), (100, 98), (1000, 1)]) == Spread(100, 100, 100)
    assert Spread.of([]) is None


def test_a_day_has_144_times_what_ten_minutes_have() -> None:
    (topic,) = _figures([1_000 * n for n in range(600)], rotation={"flushSize": 100}).topics
    assert topic.records_a_day == 600 * 144
    assert topic.closed == 6
    assert topic.objects_a_day == 6 * 144
    assert not topic.estimated


def test_partitions_that_were_not_read_count_as_those_that_were() -> None:
    (topic,) = _figures([0] * 100, of=50, rotation={"flushSize": 100}).topics
    assert topic.records_a_day == 100 * 50 * 144
    assert topic.objects_a_day == 50 * 144


def test_closes_by_time_are_estimated_where_the_sample_is_too_short_to_count_them() -> None:
    (topic,) = _figures([1_000 * n for n in range(600)], rotation={"scheduleInterval": "1h"}).topics
    assert topic.estimated
    assert topic.objects_a_day == 24


def test_closes_by_time_are_counted_where_the_sample_has_enough_of_them() -> None:
    (topic,) = _figures([10_000 * n for n in range(60)], rotation={"scheduleInterval": "1m"}).topics
    assert not topic.estimated
    assert topic.closed == 10
    assert topic.objects_a_day == 10 * 144


def test_a_record_waits_for_the_close_of_its_object() -> None:
    (topic,) = _figures([0, 5 * MINUTE], rotation={"flushSize": 2}).topics
    assert topic.delay is not None
    assert topic.delay.p5 <= 11_000
    assert 5 * MINUTE <= topic.delay.p95 <= 5 * MINUTE + 11_000


def test_requests_of_objects_grow_with_the_objects_of_a_day_and_others_with_time() -> None:
    found = _figures([0] * 100, of=50, rotation={"flushSize": 100})
    assert found.requests_a_day["CompleteMultipartUpload"] == 50 * 144
    assert found.requests_a_day["PutObject"] == 3 * 144


def test_an_empty_topic_has_no_figures() -> None:
    given = sample({}, of=3)
    planned = sink()
    (topic,) = figures(given, replay(planned, given, registry=None, cores=1), planned.spec.rotation).topics
    assert (topic.records, topic.objects_a_day, topic.size, topic.delay) == (0, 0, None, None)


@pytest.mark.parametrize(
    ("rotation", "limit"),
    [
        ({"flushSize": 1}, None),
        ({"scheduleInterval": "1h"}, 60 * MINUTE),
        ({"scheduleInterval": "1h", "maxOpenTime": "5m"}, 5 * MINUTE),
    ],
)
def test_the_shortest_time_limit_counts(rotation: dict[str, Any], limit: int | None) -> None:
    assert time_limit(sink(rotation=rotation).spec.rotation) == limit
