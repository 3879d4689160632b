"""Records that groups do not share are moved, changed, repeated, or on one side only."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import replace

from sink_job.compare.compared_objects import ComparedObject
from sink_job.compare.group_comparison import GroupResult, SurplusRecord
from sink_job.compare.key_matching import ObjectGroup
from sink_job.compare.reconciliation import Classifier
from sink_job.compare.results import SideDifference


def stored(side: str, first: int) -> ComparedObject:
    return ComparedObject(f"{side}/{first}", str(first), "p", first, 1)


def group(
    first: int,
    *,
    sink: Sequence[int] = (),
    other: Sequence[int] = (),
    repeated: bool = False,
    rank: int = 0,
) -> GroupResult:
    """A pair of objects; `sink` and `other` are the digests of surplus records, all at the same place."""

    def records(side: str, values: Sequence[int]) -> list[SurplusRecord]:
        key = f"{side}/{first}"
        return [SurplusRecord(value, first + n, key, n + 1, repeated, rank) for n, value in enumerate(values)]

    pair = ObjectGroup((stored("sink", first),), (stored("other", first),))
    return GroupResult(pair, 0, records("sink", sink), records("other", other))


def classified(*results: GroupResult, gaps: int = 0, copies: bool = False) -> list[SideDifference]:
    known: Callable[[Set[int]], Set[int]] = lambda values: values if copies else set()  # noqa: E731
    classifier = Classifier(lambda offset: gaps, known, known)
    return list(classifier.findings(results))


def kinds(findings: list[SideDifference]) -> list[tuple[str, int, int]]:
    return [(each.type, each.offset, each.count) for each in findings]


def test_equal_groups_have_no_findings() -> None:
    assert classified(group(0), group(5)) == []


def test_records_on_both_sides_of_a_group_are_changed_and_the_rest_is_on_one_side() -> None:
    assert kinds(classified(group(0, sink=[1, 2, 3], other=[4]))) == [
        ("RecordsDiffer", 0, 1),
        ("RecordsOnlyInSink", 1, 2),
    ]
    assert kinds(classified(group(0, sink=[1], other=[4, 5]))) == [("RecordsDiffer", 0, 1), ("RecordsMissing", 1, 1)]


def test_records_at_different_places_are_no_changed_record() -> None:
    """The sink lacks one record, and the other another one."""
    one = group(0, sink=[1], rank=3)
    both = replace(one, other_surplus=group(0, other=[4], rank=7).other_surplus)
    assert kinds(classified(both)) == [("RecordsOnlyInSink", 0, 1), ("RecordsMissing", 0, 1)]


def test_an_equal_record_of_another_group_has_moved() -> None:
    (found,) = classified(group(0, sink=[1]), group(5), group(9, other=[1]))
    assert (found.type, found.key, found.other_key) == ("RecordsMoved", "sink/0", "other/9")


def test_of_equal_records_as_many_have_moved_as_the_other_side_has() -> None:
    found = classified(group(0, sink=[1, 1, 1]), group(9, other=[1, 1]))
    assert kinds(found) == [("RecordsMoved", 0, 2), ("RecordsOnlyInSink", 2, 1)]


def test_a_record_that_the_other_has_more_often_is_doubled_if_the_ledger_has_no_gaps() -> None:
    assert kinds(classified(group(0, other=[1], repeated=True))) == [("RecordsDoubled", 0, 1)]
    (found,) = classified(group(0, other=[1], repeated=True), gaps=2)
    assert found.type == "RecordsMissing"
    assert "doubled there, or the sink lacks equal records; the ledger counts 2 offsets" in found.message


def test_a_record_that_the_sink_has_more_often_is_doubled() -> None:
    assert kinds(classified(group(0, sink=[1], repeated=True), gaps=3)) == [("RecordsDoubled", 0, 1)]


def test_a_record_of_an_object_without_a_counterpart_can_be_a_copy() -> None:
    alone = GroupResult(ObjectGroup((), (stored("other", 3),)), 0, (), [SurplusRecord(1, 3, "other/3", 1)])
    assert kinds(classified(alone)) == [("RecordsMissing", 3, 1)]
    (found,) = classified(alone, copies=True)
    assert (found.type, found.key, found.other_key) == ("RecordsDoubled", None, "other/3")


def test_the_gaps_of_the_ledger_are_in_the_message_of_missing_records() -> None:
    (found,) = classified(group(0, other=[1]), gaps=4)
    assert "the ledger counts 4 offsets without a record" in found.message


def test_records_in_another_order_and_findings_of_objects_are_reported() -> None:
    other = SideDifference("SchemasDiffer", 5, "types")  # type: ignore[arg-type]
    pair = ObjectGroup((stored("sink", 5),), (stored("other", 5),))
    reordered = GroupResult(pair, 2, reordered=SurplusRecord(1, 6, "sink/5", 2), findings=(other,))
    assert kinds(classified(reordered)) == [("SchemasDiffer", 5, 1), ("RecordsReordered", 6, 1)]
