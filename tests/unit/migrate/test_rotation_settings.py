"""When objects are closed."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.migrate.findings import Severity
from tests.unit.migrate.test_conversion import PARTITIONER, findings_of, spec_of

DAILY = {"partitioner.class": f"{PARTITIONER}.DailyPartitioner", "timezone": "UTC"}


def rotation(settings: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = spec_of(settings)["rotation"]
    return found


def test_durations_have_units() -> None:
    found = rotation({**DAILY, "rotate.interval.ms": "5400000", "rotate.schedule.interval.ms": "60000"})
    assert found == {"flushSize": 1000, "interval": "1h30m", "scheduleInterval": "1m"}


def test_an_interval_without_a_time_partitioner_is_left_out() -> None:
    assert rotation({"rotate.interval.ms": "1000"}) == {"flushSize": 1000}
    assert findings_of({"rotate.interval.ms": "1000"}) == []


@pytest.mark.parametrize("value", ["-1", "0"])
def test_values_below_one_are_off(value: str) -> None:
    keys = ("rotate.interval.ms", "rotate.schedule.interval.ms", "partitioner.max.open.files")
    assert rotation({**DAILY, **dict.fromkeys(keys, value)}) == {"flushSize": 1000}


@pytest.mark.parametrize("value", ["", "0", "-5", "many"])
def test_a_flush_size_that_the_connector_rejects_is_reported_and_to_be_written(value: str) -> None:
    assert rotation({"flush.size": value}) == {"flushSize": 1000}
    assert len(findings_of({"flush.size": value})) == 1


@pytest.mark.parametrize("value", ["9223372036854775807", "2147483647"])
def test_numbers_of_64_bits_are_accepted(value: str) -> None:
    assert rotation({"flush.size": value})["flushSize"] == min(int(value), 2**53 - 1)
    assert rotation({**DAILY, "rotate.interval.ms": value})["flushSize"] == 1000


def test_a_schedule_of_more_than_a_day_is_reported() -> None:
    settings = {**DAILY, "rotate.schedule.interval.ms": "172800000"}
    assert rotation(settings)["scheduleInterval"] == "1d"
    assert len(findings_of(settings)) == 1


def test_path_changes_count_only_with_an_interval() -> None:
    key = "rotate.file.on.partition.change"
    assert rotation({**DAILY, "rotate.interval.ms": "1000", key: "false"})["onPathChange"] is False
    assert findings_of({key: "false"}, Severity.LEFT_OUT) != []


def test_the_maximum_of_open_objects_is_taken_over() -> None:
    assert rotation({"partitioner.max.open.files": "7"})["maxOpenObjects"] == 7
