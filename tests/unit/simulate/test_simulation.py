"""A simulation: what each write reports of objects, commits and data errors."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.api.topic_partition import TopicPartition
from sink_job.simulate.simulation import Delivered, Simulation
from tests.unit.simulate.steps import advance, offsets, record, run, sink, write

HOUR = 3_600_000


def test_a_write_reports_closed_and_open_objects() -> None:
    (report,) = run(sink(), write(record(5), record(6), record(7)))
    assert report == {
        "closed": [
            {
                "key": "topics/t/partition=0/t+0+0000000005.json",
                "path": ["partition=0"],
                "topic": "t",
                "partition": 0,
                "firstOffset": 5,
                "lastOffset": 6,
                "records": 2,
                "size": 4,
                "reason": "flushSize",
                "offsets": [5, 6],
            }
        ],
        "open": [
            {
                "key": "topics/t/partition=0/t+0+0000000007.json",
                "path": ["partition=0"],
                "topic": "t",
                "partition": 0,
                "firstOffset": 7,
                "lastOffset": 7,
                "records": 1,
                "size": 2,
                "offsets": [7],
            }
        ],
        "committable": {"t-0": 7},
        "errors": [],
    }


def test_objects_grow_over_writes() -> None:
    reports = run(sink(rotation={"flushSize": 3}), write(record(0)), write(record(1)), write(record(4)))
    assert [offsets(report["open"]) for report in reports] == [[[0]], [[0, 1]], []]
    assert offsets(reports[2]["closed"]) == [[0, 1, 4]]


def test_nothing_is_committable_before_the_first_close() -> None:
    reports = run(sink(), write(record(0)), write(record(1)), write(record(2)), write(record(3)))
    assert [report["committable"] for report in reports] == [{"t-0": None}, {"t-0": 2}, {"t-0": 2}, {"t-0": 4}]


def test_skipped_records_are_in_no_object() -> None:
    skip = [{"topic": "t", "partition": 0, "offset": offset} for offset in (1, 3)]
    (report,) = run(sink(errors={"skip": skip}), write(record(0), record(1), record(2), record(3)))
    assert offsets(report["closed"]) == [[0, 2]]
    assert report["committable"] == {"t-0": 4}


def test_offsets_may_have_gaps() -> None:
    reports = run(sink(), write(record(0), record(10)), write(record(20)))
    assert [report["committable"]["t-0"] for report in reports] == [11, 11]
    assert offsets(reports[0]["closed"]) == [[0, 10]]


def test_each_topic_partition_has_its_own_counters_and_reports_are_sorted() -> None:
    records = [
        record(0, topic="u"),
        record(0, partition=10),
        record(0, partition=2),
        record(1, topic="u"),
        record(1, partition=2),
    ]
    (report,) = run(sink(), write(*records))
    assert [(each["topic"], each["partition"]) for each in report["closed"]] == [("t", 2), ("u", 0)]
    assert [(each["topic"], each["partition"]) for each in report["open"]] == [("t", 10)]
    assert report["committable"] == {"t-2": 2, "t-10": None, "u-0": 2}


def test_a_due_schedule_closes_objects_in_the_next_round() -> None:
    of = sink(rotation={"scheduleInterval": "1h"}, partitioner={"timezone": "UTC"})
    reports = run(of, write(record(0)), advance(HOUR - 1), write(), advance(1), write())
    assert [offsets(report["closed"]) for report in reports] == [[], [], [[0]]]


def test_a_round_includes_topic_partitions_without_records() -> None:
    of = sink(rotation={"scheduleInterval": "1h"}, partitioner={"timezone": "UTC"})
    first, second = run(of, write(record(0), record(0, partition=1)), advance(HOUR), write(record(1)))
    assert offsets(first["open"]) == [[0], [0]]
    assert [(each["partition"], each["offsets"]) for each in second["closed"]] == [(0, [0]), (1, [0])]
    assert offsets(second["open"]) == [[1]]


def test_the_clock_starts_at_the_given_time() -> None:
    of = sink(partitioner={"type": "Hourly", "timezone": "UTC"})
    (report,) = run(of, write(record(0)), clock_start_ms=1_715_940_000_000)
    assert report["open"][0]["path"] == ["year=2024", "month=05", "day=17", "hour=10"]


def test_a_record_without_timestamp_has_no_time() -> None:
    of = sink(partitioner={"type": "Daily", "timezone": "UTC", "timestampExtractor": "Record"})
    (report,) = run(of, write(record(0, timestamp=0), record(1)))
    assert report["errors"] == [
        {"topic": "t", "partition": 0, "offset": 1, "message": "the record has no Kafka timestamp"}
    ]


def test_brief_reports_have_no_offsets() -> None:
    (report,) = run(sink(), write(record(0)), offsets=False)
    assert "offsets" not in report["open"][0]
    assert report["open"][0]["records"] == 1


def test_the_first_data_error_stops_its_topic_partition() -> None:
    of = sink(partitioner={"type": "Field", "fields": ["a"]})
    reports = run(
        of,
        write(record(0, {"a": 1}), record(1, {}), record(2, {}), record(0, {"a": 1}, partition=1)),
        write(record(3, {"a": 1}), record(1, {"a": 1}, partition=1)),
    )
    first = reports[0]["errors"]
    assert first == [{"topic": "t", "partition": 0, "offset": 1, "message": 'field "a" is missing'}]
    assert reports[1]["errors"] == []
    assert offsets(reports[1]["open"]) == [[0]]
    assert offsets(reports[1]["closed"]) == [[0, 1]]
    assert reports[1]["committable"] == {"t-0": None, "t-1": 2}


def test_a_data_error_closes_nothing_even_if_the_schedule_is_due() -> None:
    of = sink(rotation={"scheduleInterval": "1h"}, partitioner={"timezone": "UTC"})
    reports = run(of, write(record(0)), advance(HOUR), write(record(1, value=None)), advance(HOUR), write())
    assert [offsets(report["closed"]) for report in reports] == [[], [], []]


def test_with_tolerance_all_invalid_records_are_dropped_and_listed() -> None:
    of = sink(errors={"tolerance": "All"})
    values: list[Any] = [1, None, 2]
    (report,) = run(of, write(*(record(offset, value) for offset, value in enumerate(values))))
    assert offsets(report["closed"]) == [[0, 2]]
    assert [error["offset"] for error in report["errors"]] == [1]


def test_ignored_tombstones_are_committed_if_no_object_is_open() -> None:
    (report,) = run(sink(errors={"onNullValue": "Ignore"}), write(record(0, None), {**record(1)} | {"value": None}))
    assert report == {"closed": [], "open": [], "committable": {"t-0": 2}, "errors": []}


@pytest.mark.parametrize(("output", "extension"), [("Avro", ".avro"), ("Parquet", ".snappy.parquet")])
def test_containers_are_simulated_with_plain_json(output: str, extension: str) -> None:
    of = sink(format={"converter": "ConnectJson", "output": output})
    (report,) = run(of, write(record(0, {"a": 1}), record(1, {"a": 2}), record(2, {"a": 3})))
    assert [each["key"].removeprefix("topics/t/partition=0/t+0+") for each in report["closed"]] == [
        f"0000000000{extension}"
    ]
    assert report["errors"] == []


def test_the_next_offset_of_a_topic_partition_follows_its_last_delivered_record() -> None:
    simulation = Simulation(sink())
    one, other = TopicPartition("t", 0), TopicPartition("t", 1)
    assert simulation.next_offset(one) == 0
    simulation.write({one: [Delivered(7, -1, b"{}")], other: []}, 0)
    assert (simulation.next_offset(one), simulation.next_offset(other)) == (8, 0)
    simulation.write({one: []}, 0)
    assert simulation.next_offset(one) == 8


def test_records_after_the_data_error_that_stopped_a_partition_are_ignored() -> None:
    simulation, tp = Simulation(sink()), TopicPartition("t", 0)
    simulation.write({tp: [Delivered(0, -1, b"{}"), Delivered(1, -1, b"{")]}, 0)
    report = simulation.write({tp: [Delivered(2, -1, b"{}"), Delivered(3, -1, b"{}")]}, 0)
    assert (report.errors, report.closed, [each.offsets for each in report.open]) == ([], [], [[0]])
    assert simulation.next_offset(tp) == 4


def test_a_dropped_record_does_not_count_for_the_flush_size() -> None:
    simulation, tp = Simulation(sink(errors={"tolerance": "All"})), TopicPartition("t", 0)
    report = simulation.write({tp: [Delivered(n, -1, b"{" if n == 1 else b"{}") for n in range(4)]}, 0)
    assert [each.offsets for each in report.closed] == [[0, 2]]
    assert [(error.offset, error.topic, error.partition) for error in report.errors] == [(1, "t", 0)]
