"""Lines and source ranges of dead letters."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.state import SourceRange
from sink_job.writer.dead_letters import DeadLetterLines, DeadLetterSources
from sink_job.writer.record_pipeline import RejectedRow, RejectionReason

TP = TopicPartition("log", 3)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def batch(values: list[bytes | None], *, name: str = "value", first: int = 10) -> pa.RecordBatch:
    count = len(values)
    return pa.RecordBatch.from_pydict(
        {
            "offset": pa.array(range(first, first + count), pa.int64()),
            name: pa.array(values, pa.binary()),
            "timestamp": pa.array([-1] * count, pa.int64()),
            "key": pa.nulls(count, pa.binary()),
            "headers": pa.nulls(count, HEADERS),
        }
    )


def bad(row: int, reason: RejectionReason = RejectionReason.INVALID_RECORD) -> RejectedRow:
    return RejectedRow(row, 10 + row, f"bad {row}", reason)


def lines(found: object) -> list[dict[str, object]]:
    return [json.loads(line) for line in bytes(found).splitlines()]  # type: ignore[call-overload]


def test_the_separator_of_rows_is_no_part_of_a_value() -> None:
    rows = DeadLetterLines(TP, separator=1).of(batch([b"a\n", b"b\n", None], name="row"), [bad(1), bad(2)], 5)
    assert [line["value"] for line in lines(rows.data)] == ["Yg==", None]
    assert rows.offsets.tolist() == [11, 12]
    assert rows.ends.tolist()[-1] == len(rows.data)


def test_a_record_without_a_timestamp_has_none() -> None:
    (line,) = lines(DeadLetterLines(TP).of(batch([b"a"]), [bad(0)], 5).data)
    assert (line["timestamp"], line["rejectedAt"], line["message"]) == (None, 5, "bad 0")


def test_the_message_of_an_unknown_schema_does_not_depend_on_the_registry() -> None:
    unknown = RejectedRow(0, 10, "404", RejectionReason.UNKNOWN_SCHEMA)
    (line,) = lines(DeadLetterLines(TP).of(batch([b"a"]), [unknown], 5).data)
    assert line["message"] == "the schema of the record was not known when it was read"


def test_an_object_has_the_rejected_records_of_its_ranges_under_their_clock() -> None:
    sources = (SourceRange(10, 12, 5), SourceRange(12, 15, 6))
    found = DeadLetterLines(TP).of_object(batch([b"a"] * 5), [bad(1), bad(3)], 6, sources)
    assert found is not None
    assert found[0].tolist() == [3]
    assert DeadLetterLines(TP).of_object(batch([b"a"] * 5), [bad(1)], 6, sources) is None


def test_an_object_has_all_records_of_the_ranges_of_unknown_schemas() -> None:
    sources = (SourceRange(10, 11, 5), SourceRange(11, 13, -5), SourceRange(13, 15, 5))
    found = DeadLetterLines(TP).of_object(batch([b"a"] * 5), [bad(0), bad(4)], 5, sources)
    assert found is not None
    assert found[0].tolist() == [0, 1, 2, 4]
    reasons = [line["reason"] for line in lines(found[1].data)]
    assert reasons == ["InvalidRecord", "UnknownSchema", "UnknownSchema", "InvalidRecord"]


def ranges(offsets: list[int], unknown: list[int], previous: tuple[SourceRange, ...] = ()) -> tuple[SourceRange, ...]:
    sources = DeadLetterSources(clock=5)
    for part in (offsets[: len(offsets) // 2], offsets[len(offsets) // 2 :]):
        if part:
            sources.add(np.array(part, np.int64), unknown)
    return sources.extend(previous, 0, unknown)


@pytest.mark.parametrize(
    ("offsets", "unknown", "expected"),
    [
        ([3, 5, 9], [], [(3, 10, 5)]),
        ([3, 5, 9], [5], [(3, 4, 5), (5, 6, -5), (9, 10, 5)]),
        ([3, 4, 5], [3, 4, 5], [(3, 6, -5)]),
        ([3, 5], [3, 5], [(3, 4, -5), (5, 6, -5)]),
    ],
)
def test_records_of_unknown_schemas_are_in_ranges_of_their_own(
    offsets: list[int], unknown: list[int], expected: list[tuple[int, int, int]]
) -> None:
    assert [(each.start, each.end, each.clock) for each in ranges(offsets, unknown)] == expected


def test_a_round_with_another_clock_begins_another_range() -> None:
    before = (SourceRange(0, 3, 4),)
    assert ranges([3, 4], [], before) == (*before, SourceRange(3, 5, 5))
    assert ranges([3, 4], [], (SourceRange(0, 3, 5),)) == (SourceRange(0, 5, 5),)


@pytest.mark.parametrize(
    ("offsets", "breaks", "expected"),
    [
        ([3, 5, 9], [6], [(3, 6, 5), (9, 10, 5)]),
        ([3, 5, 9], [4, 7], [(3, 4, 5), (5, 6, 5), (9, 10, 5)]),
        ([3, 4, 5, 9], [4, 7], [(3, 4, 5), (4, 5, -5), (5, 6, 5), (9, 10, 5)]),
        ([3, 5], [2, 6], [(3, 6, 5)]),
    ],
)
def test_no_range_contains_a_skipped_record(
    offsets: list[int], breaks: list[int], expected: list[tuple[int, int, int]]
) -> None:
    assert [(each.start, each.end, each.clock) for each in ranges(offsets, breaks)] == expected


def test_a_range_is_not_extended_over_a_skipped_record_of_an_earlier_round() -> None:
    sources = DeadLetterSources(clock=5)
    sources.add(np.array([7], np.int64), [4])
    before = (SourceRange(0, 3, 5),)
    assert sources.extend(before, 0, [4]) == (*before, SourceRange(7, 8, 5))
    assert sources.extend(before, 0, [2]) == (SourceRange(0, 8, 5),)


@given(st.lists(st.sampled_from(["accepted", "rejected", "unknown", "gap", "skipped"]), min_size=1, max_size=30))
def test_the_ranges_select_exactly_the_rejected_records(kinds: list[str]) -> None:
    rejected = [offset for offset, kind in enumerate(kinds) if kind in ("rejected", "unknown")]
    unknown = [offset for offset, kind in enumerate(kinds) if kind == "unknown"]
    if not rejected:
        return
    held = [offset for offset, kind in enumerate(kinds) if kind != "gap"]
    records = batch([b"a"] * len(kinds), first=0).take(pa.array(held))
    known_by_then = [RejectedRow(held.index(o), o, "bad") for o in rejected if o not in unknown]
    skipped = [offset for offset, kind in enumerate(kinds) if kind == "skipped"]
    known_by_then += [RejectedRow(held.index(o), o, "bad") for o in skipped]  # they are invalid, too
    known_by_then.sort()
    found = DeadLetterLines(TP).of_object(records, known_by_then, 5, ranges(rejected, sorted(unknown + skipped)))
    assert found is not None
    assert found[1].offsets.tolist() == rejected
