"""What a plan says of the settings."""

from __future__ import annotations

from typing import Any

from sink_job.plan.plan import make_plan
from sink_job.plan.prices import DEFAULT
from sink_job.plan.sample import Sample
from tests.unit.plan.samples import MINUTE, partition, sample, sink

HOURLY = {"type": "Hourly", "timezone": "UTC", "timestampExtractor": "Record"}


def _findings(given: Sample, **sections: Any) -> str:
    return "\n".join(make_plan("sink.yaml", sink(**sections), given, DEFAULT, None).findings)


def test_nothing_is_said_of_a_plan_without_problems() -> None:
    assert not _findings(sample({0: partition([1_000 * n for n in range(600)])}), rotation={"flushSize": 100})


def test_a_topic_without_records_in_the_sample_is_named_with_the_way_out() -> None:
    assert "t: no record in the sample. Use --from TIME" in _findings(sample({}, of=3))


def test_a_sample_that_is_too_short_for_the_interval_is_reported() -> None:
    found = _findings(sample({0: partition([0])}), rotation={"scheduleInterval": "1h"})
    assert "The sample of 10m is shorter than twice the shortest time limit of the rotation (1h)" in found
    assert "--sample 2h" in found


def test_partitions_that_were_read_are_named() -> None:
    assert "t: 2 of 10,000 partitions were read (0, 1)" in _findings(
        sample({0: partition([0]), 1: partition([0])}, of=10_000), rotation={"flushSize": 1}
    )


def test_a_rejected_record_is_named_with_what_happens_to_it() -> None:
    given = sample({0: partition([0, 1], [b"{}", b"no JSON"])})
    stops = _findings(given, rotation={"flushSize": 1})
    assert "t: 1 of 2 records cannot be written; the sink stops at the first one (errors.tolerance: None): " in stops
    assert "t-0 offset 1: " in stops
    assert "they are rejected" in _findings(given, rotation={"flushSize": 1}, errors={"tolerance": "All"})


def test_late_data_that_makes_small_objects_is_reported_with_the_setting_that_prevents_it() -> None:
    stamps = [n * 100 if n % 2 else n * 100 - 60 * MINUTE for n in range(200)]
    rotation = {"flushSize": 1000, "interval": "1m"}
    found = _findings(sample({0: partition(stamps)}), rotation=rotation, partitioner=HOURLY)
    assert "99 records are older than one before them, which closes all open objects" in found
    assert "set rotation.scope: Object" in found


def test_a_flush_size_that_makes_small_objects_is_reported() -> None:
    given = sample({0: partition([1_000 * n for n in range(600)])})
    assert "raise rotation.flushSize" in _findings(given, rotation={"flushSize": 10})


def test_no_close_in_the_sample_is_reported() -> None:
    assert "no object closed in the sample" in _findings(sample({0: partition([0])}), rotation={"flushSize": 10})


def test_too_little_memory_is_reported() -> None:
    executor = {"memory": {"min": "512Mi", "max": "1Gi"}}
    found = _findings(sample({0: partition([0])}), rotation={"flushSize": 1}, executor=executor)
    assert "spec.executor.memory.max is 1Gi" in found
