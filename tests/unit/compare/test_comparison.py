"""All topic-partitions are compared, and memory and reads are limited."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.errors import ConfigurationError
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.compare import group_comparison
from sink_job.compare.compared_objects import ComparedObject, OtherSide, SinkPartition, SinkSide
from sink_job.compare.comparison import ComparisonContext, compare_sides
from sink_job.compare.group_comparison import RecordComparer
from sink_job.compare.partition_keys import Window
from sink_job.compare.results import PartitionComparison, exit_code
from sink_job.engine.thread_pools import pool
from tests.support.memory_s3 import MemoryS3

ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)


class Sides:
    """Two sides with objects of five records, the same ones if a test changes nothing."""

    def __init__(self, objects: int = 3, partitions: int = 2) -> None:
        self.s3 = MemoryS3()
        self.sink: dict[TopicPartition, list[ComparedObject]] = {}
        self.other: dict[TopicPartition, list[ComparedObject]] = {}
        for tp in (TopicPartition("t", number) for number in range(partitions)):
            firsts = range(0, 5 * objects, 5)
            self.sink[tp] = [self.stored("topics", tp, first, last=first + 4) for first in firsts]
            self.other[tp] = [self.stored("other", tp, first) for first in firsts]

    def stored(self, side: str, tp: TopicPartition, first: int, *, last: int | None = None) -> ComparedObject:
        name = f"t/p/t+{tp.partition}+{first}.json"
        self.write(f"{side}/{name}", [[tp.partition, offset] for offset in range(first, first + 5)])
        return ComparedObject(f"{side}/{name}", name, "p", first, 1, last, None if last is None else last - first + 1)

    def write(self, key: str, values: list[Any]) -> None:
        self.s3.put(key, b"".join(json.dumps(value).encode() + b"\n" for value in values))

    def compare(self, window: Window | None = None, *, deep: bool = True) -> list[PartitionComparison]:
        client = cast("Any", self.s3)
        partitions = {tp: SinkPartition(0, 1_000, objects) for tp, objects in self.sink.items()}
        with pool(2, "test") as threads:
            return compare_sides(
                ComparisonContext(
                    sink=SinkSide(partitions, ObjectSettings(), ["t"]),
                    other=OtherSide(self.other, 0),
                    other_url="s3://b/other",
                    window=window or Window(),
                    records=RecordComparer(client, client, b"\n") if deep else None,
                    pool=threads,
                    report=lambda line: None,
                )
            )


def test_each_topic_partition_has_a_result() -> None:
    results = Sides().compare()
    assert [(str(each.topic_partition), each.records, each.findings) for each in results] == [
        ("t-0", 15, ()),
        ("t-1", 15, ()),
    ]


Edit = tuple[str, str, int, int]
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["delete", "double", "move"]),
        st.sampled_from(["topics", "other"]),
        st.integers(0, 14),
        st.integers(0, 2),
    ),
    max_size=4,
)


@given(EDITS)
def test_whatever_was_done_to_records_a_loss_is_found_and_nothing_else_is_a_loss(edits: list[Edit]) -> None:
    """A record of the other that the sink lacks ends with 5, or is a changed record if the other lacks the sink's
    record at its place."""
    sides = Sides(partitions=1)
    records: dict[str, list[list[int]]] = {
        side: [[*range(first, first + 5)] for first in (0, 5, 10)] for side in ("topics", "other")
    }
    for action, side, value, target in edits:
        at = next((each for each in records[side] if value in each), None)
        if at is None:
            continue
        if action in ("delete", "move"):
            at.remove(value)
        if action in ("double", "move"):
            records[side][target].append(value)
    for side, objects in (("topics", sides.sink[ZERO]), ("other", sides.other[ZERO])):
        for each, values in zip(objects, records[side], strict=True):
            sides.write(each.key, values)
    sides.sink[ZERO] = [each._replace(records=None) for each in sides.sink[ZERO]]
    (result,) = sides.compare()
    found = {each.type.value for each in result.findings}
    present = {side: {value for each in of_side for value in each} for side, of_side in records.items()}
    lost = present["other"] - present["topics"]
    if not lost:
        assert exit_code([result]) != 5
    else:
        assert exit_code([result]) == 5 or "RecordsDiffer" in found
    assert (exit_code([result]) == 0) is (records["topics"] == records["other"])


def test_without_a_comparer_nothing_is_read() -> None:
    sides = Sides()
    sides.s3.objects.clear()
    assert [(each.records, each.findings) for each in sides.compare(deep=False)] == [(None, ()), (None, ())]


def test_one_topic_partition_can_be_chosen() -> None:
    assert [each.topic_partition for each in Sides().compare(Window(ONE))] == [ONE]


def test_too_many_different_records_end_the_comparison_of_their_topic_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They may be missing in the sink."""
    monkeypatch.setattr(group_comparison, "MAX_SURPLUS", 7)
    sides = Sides()
    for each in sides.other[ZERO][1:]:
        sides.write(each.key, [["other", n] for n in range(each.first, each.first + 5)])
    first, second = sides.compare()
    assert [(each.type, each.offset) for each in first.findings] == [("RecordsMissing", 0)]
    assert "the rest was not compared" in first.findings[0].message
    assert (second.records, second.findings) == (15, ())


def test_a_copy_is_found_in_any_object() -> None:
    sides = Sides(partitions=1)
    copy = ComparedObject("other/copy.json", "copy.json", "q", 7, 1)
    sides.other[ZERO].append(copy)
    sides.write(copy.key, [[0, offset] for offset in range(5)])
    (result,) = sides.compare()
    assert [(each.type, each.offset, each.count) for each in result.findings] == [
        ("KeyOnlyInOther", 7, 1),
        ("RecordsDoubled", 7, 5),
    ]
    sides.write(copy.key, [["new", offset] for offset in range(5)])
    (result,) = sides.compare()
    assert [(each.type, each.count) for each in result.findings] == [("KeyOnlyInOther", 1), ("RecordsMissing", 5)]


def test_without_an_object_of_the_other_nothing_can_be_compared() -> None:
    sides = Sides()
    sides.other = {}
    with pytest.raises(ConfigurationError, match=r"has a key of the sink's topics \(t\)"):
        sides.compare()


@pytest.mark.parametrize(
    ("window", "message"),
    [(Window(TopicPartition("t", 9)), "neither the sink nor"), (Window(start=900), "nothing was compared")],
)
def test_an_empty_selection_is_an_error(window: Window, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Sides().compare(window)


def test_100_000_objects_are_compared_by_their_keys() -> None:
    sides = Sides(objects=0, partitions=1)
    names = [(f"t/p={first % 50}/t+0+{first:010d}.json", f"p={first % 50}", first) for first in range(100_000)]
    sides.sink[ZERO] = [ComparedObject(f"topics/{name}", name, path, n, 1, n, 1) for name, path, n in names]
    sides.other[ZERO] = [ComparedObject(f"other/{name}", name, path, n, 1) for name, path, n in names if n != 500]
    (result,) = sides.compare(deep=False)
    assert [(each.type, each.offset) for each in result.findings] == [("KeyOnlyInSink", 500)]
