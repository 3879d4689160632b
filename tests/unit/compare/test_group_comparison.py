"""The records of a group of objects are compared."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from sink_job.compare import group_comparison
from sink_job.compare.compared_objects import ComparedObject
from sink_job.compare.group_comparison import GroupResult, RecordComparer, SurplusLimit
from sink_job.compare.key_matching import ObjectGroup
from sink_job.compare.sequence_diff import TooManyRecords
from sink_job.verify.rows.canonical_values import json_value
from tests.support.memory_s3 import MemoryS3


def stored(s3: MemoryS3, first: int, values: list[Any], *, records: int | None = None, pretty: bool = False) -> Any:
    """An object with a line for each value; `records` are those of the ledger, if it lists the object."""
    separators = (" , ", " : ") if pretty else (",", ":")
    name = f"t/partition=0/t+0+{first:010d}.json"
    key = f"{'other' if pretty else 'topics'}/{name}"
    s3.put(key, b"".join(json.dumps(value, separators=separators).encode() + b"\n" for value in values))
    last = None if records is None else first + records - 1
    return ComparedObject(key, name, "partition=0", first, 1, last, records)


def compared(s3: MemoryS3, sink: list[ComparedObject], other: list[ComparedObject]) -> GroupResult:
    client = cast("Any", s3)
    return RecordComparer(client, client, b"\n").compare(ObjectGroup(tuple(sink), tuple(other)))


def test_200_000_equal_records_have_no_difference_and_one_changed_record_is_found() -> None:
    """White space differs in the first ones."""
    s3 = MemoryS3()
    values = [{"offset": offset, "text": "x" * 20} for offset in range(200_000)]
    sink = [stored(s3, 0, values[:190_000], records=190_000), stored(s3, 190_000, values[190_000:], records=10_000)]
    first, rest = stored(s3, 0, values[:10_000], pretty=True), stored(s3, 10_000, values[10_000:])
    result = compared(s3, sink, [first, rest])
    assert (result.equal, result.surplus, result.findings) == (200_000, 0, ())
    values[195_000] = {"offset": 195_000, "text": "y"}
    result = compared(s3, sink[1:], [stored(s3, 190_000, values[190_000:], pretty=True)])
    assert (result.equal, result.surplus) == (9_999, 2)
    assert [(each.offset, each.key, each.number) for each in result.sink_surplus] == [(195_000, sink[1].key, 5_001)]
    assert [(each.offset, each.number) for each in result.other_surplus] == [(195_000, 5_001)]


def test_a_record_between_those_of_other_objects_has_the_offset_of_its_object() -> None:
    """The object has two of five offsets."""
    s3 = MemoryS3()
    sink = stored(s3, 5, [1, 2], records=5)._replace(records=2)
    result = compared(s3, [sink], [stored(s3, 5, [1, 3], pretty=True)])
    assert [(each.offset, each.number) for each in result.sink_surplus] == [(5, 2)]


def test_a_repeated_record_is_marked() -> None:
    s3 = MemoryS3()
    result = compared(s3, [stored(s3, 0, [1, 2], records=2)], [stored(s3, 0, [1, 2, 1], pretty=True)])
    assert [(each.number, each.repeated) for each in result.other_surplus] == [(3, True)]


def test_an_object_with_another_number_of_records_than_in_the_ledger_is_damaged() -> None:
    s3 = MemoryS3()
    result = compared(s3, [stored(s3, 0, [1, 2], records=3)], [stored(s3, 0, [1, 2], pretty=True)])
    assert [each.message for each in result.findings] == ["the object of the sink has 2 records, and 3 in the ledger"]


def test_an_object_that_does_not_exist_any_more_is_a_finding() -> None:
    s3 = MemoryS3()
    sink, other = stored(s3, 0, [1], records=1), stored(s3, 0, [1], pretty=True)
    del s3.objects[other.key]
    result = compared(s3, [sink], [other])
    assert [(each.type, each.other_key) for each in result.findings] == [("OtherObjectUnreadable", other.key)]
    assert len(result.sink_surplus) == 1


def test_the_number_of_different_records_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_comparison, "MAX_SURPLUS", 3)
    limit = SurplusLimit()
    limit.take(3)
    with pytest.raises(TooManyRecords):
        limit.take(1)


def test_a_comparer_for_the_next_topic_partition_has_a_limit_of_its_own() -> None:
    comparer = RecordComparer(cast("Any", None), cast("Any", None), b"")
    assert comparer.renewed().limit is not comparer.limit


def test_records_are_found_in_an_object_by_their_values() -> None:
    s3 = MemoryS3()
    client = cast("Any", s3)
    comparer = RecordComparer(client, client, b"\n")
    one, other = stored(s3, 0, [{"a": 1}, 2, 3]), stored(s3, 0, [2, {"a": 1}, 4], pretty=True)
    values = {hash(json_value(text)) for text in (b'{"a":1}', b"2", b"4")}
    assert comparer.present(other, values, of_sink=False) == values
    assert comparer.present(one, values, of_sink=True) == values - {hash(json_value(b"4"))}


def test_long_schemas_are_shortened_in_messages() -> None:
    assert group_comparison._shortened("x" * 400) == "x" * 300 + "…"
