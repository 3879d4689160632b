"""What the lists prove, and that the proof can fail: each kind of damage is told with the first wrong offset."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.generations import end_of_generation
from sink_job.ledger.offset_checksum import checksum, checksum_range, gap_checksum
from sink_job.ledger.state import (
    ClosedObject,
    LedgerState,
    LostObject,
    OffsetChecksum,
    OpenObject,
    PartitionState,
    RotationRange,
)
from sink_job.verify.audit import (
    BucketState,
    Finding,
    FindingType,
    GenerationAudit,
    KafkaOffsets,
    PartitionResult,
    UntrackedObject,
    audit,
)
from sink_job.verify.offset_gaps import find, overlap, uncovered

TP = TopicPartition("flights", 0)


def of(offsets: Iterable[int]) -> OffsetChecksum:
    return checksum(np.array(sorted(offsets), dtype=np.int64))


def named(offsets: Sequence[int], path: str = "a") -> ClosedObject:
    return ClosedObject(
        key=f"topics/flights/{path}/flights+0+{offsets[0]:010d}.json",
        topic=TP.topic,
        partition=TP.partition,
        path=path,
        first=offsets[0],
        last=offsets[-1],
        bytes=10 * len(offsets),
        crc=1,
        upload="u",
        parts=(),
        sources=(),
        offsets=of(offsets),
        settings=1,
    )


def opened(offsets: Sequence[int], path: str = "a") -> OpenObject:
    return OpenObject(
        path=path, first=offsets[0], last=offsets[-1], size=1, opened_at=0, settings=1, offsets=of(offsets)
    )


@dataclass
class Book:
    """A sink's lists in the making; `at` is the next offset."""

    at: int = 0
    published: list[ClosedObject] = field(default_factory=list)
    pending: list[ClosedObject] = field(default_factory=list)
    rotations: list[RotationRange] = field(default_factory=list)
    lost: list[LostObject] = field(default_factory=list)
    open: list[OpenObject] = field(default_factory=list)
    rotation_start: int = -1
    written: set[int] = field(default_factory=set)
    bucket: BucketState = field(default_factory=BucketState)
    log: KafkaOffsets = field(default_factory=KafkaOffsets)
    begins: int | None = None

    def __post_init__(self) -> None:
        self.rotation_start = self.at
        self.begins = self.at

    def rotation(self, *objects: ClosedObject, pending: bool = False) -> None:
        """These objects, and a rotation's end behind them."""
        (self.pending if pending else self.published).extend(objects)
        end = max(o.last for o in objects) + 1
        written = sum((o.offsets for o in objects), of(self.written))
        self.rotations.append(
            RotationRange(*TP, self.rotation_start, end, gap_checksum(self.rotation_start, end, written))
        )
        self.rotation_start, self.at, self.written = end, end, set()

    def leave_open(self, *objects: OpenObject, written: Iterable[int]) -> None:
        self.open, self.written = list(objects), set(written)
        self.at = max(self.at, *(offset + 1 for offset in self.written))

    def lists(self) -> GenerationAudit:
        state = PartitionState(
            next=self.at,
            committable=min((o.first for o in self.open), default=self.at),
            rotation_start=self.rotation_start,
            accepted=of(self.written),
            accepted_end=max(self.written, default=self.rotation_start - 1) + 1,
            open=tuple(self.open),
        )
        return GenerationAudit(
            LedgerState(partitions={str(TP): state}, pending={o.key: o for o in self.pending}),
            self.published,
            self.rotations,
            {} if self.begins is None else {TP: self.begins},
            lost=self.lost,
        )

    def lose(self, o: ClosedObject | OpenObject, offsets: Iterable[int]) -> None:
        """Gives up these offsets of the object, which is in the lists as what is left of it."""
        self.lost.append(LostObject(*TP, "key", o.path, o.first, o.last, of(offsets)))

    def verdict(self) -> PartitionResult:
        (verdict,) = audit(self.lists(), self.bucket, self.log)
        return verdict

    def wrong(self) -> list[tuple[str, int]]:
        return [(finding.type, finding.offset) for finding in self.verdict().findings]


def dense() -> Book:
    """Offsets 5 to 34 in three published objects, each a rotation."""
    book = Book(at=5)
    for first in (5, 15, 25):
        book.rotation(named(range(first, first + 10)))
    return book


def interleaved() -> Book:
    """Offsets 0 to 19: two paths in turn, but for 6 and 7, which are holes; then 20 to 29 in one object."""
    book = Book()
    offsets = [offset for offset in range(20) if offset not in (6, 7)]
    book.rotation(named(offsets[::2], "a"), named(offsets[1::2], "b"))
    book.rotation(named(range(20, 30)))
    return book


# -- what is right ----------------------------------------------------------------------------------------------------


def test_objects_that_follow_each_other_are_right() -> None:
    verdict = dense().verdict()
    assert verdict.findings == ()
    assert (verdict.start, verdict.committed, verdict.objects, verdict.records, verdict.bytes) == (5, 35, 3, 30, 300)
    assert verdict.gaps == verdict.pending_records == 0


def test_paths_that_interleave_around_holes_are_right() -> None:
    verdict = interleaved().verdict()
    assert verdict.findings == ()
    assert (verdict.records, verdict.gaps) == (28, 2)


def test_what_is_open_is_not_committed_and_waits() -> None:
    book = dense()
    book.leave_open(opened([35, 36, 38]), written=[35, 36, 38])
    verdict = book.verdict()
    assert verdict.findings == ()
    assert (verdict.committed, verdict.pending_records, verdict.gaps, verdict.next) == (35, 3, 1, 39)


def test_objects_closed_since_the_last_rotation_add_up_with_the_open_ones() -> None:
    book = dense()
    book.leave_open(opened([36, 38], "b"), written=range(35, 40))
    book.published.append(named([35, 37, 39], "a"))
    assert book.wrong() == []


def test_offsets_behind_the_last_record_that_hold_nothing_are_holes() -> None:
    book = dense()
    book.at = 40
    verdict = book.verdict()
    assert (verdict.findings, verdict.committed, verdict.gaps) == ((), 40, 5)


def test_records_that_were_given_up_are_noted_and_are_not_wrong() -> None:
    book = dense()
    whole = named(range(35, 45))
    book.rotation(whole)
    book.lose(whole, range(35, 39))
    book.published[-1] = named(range(39, 45))
    verdict = book.verdict()
    assert (verdict.findings, verdict.lost, verdict.gaps, verdict.records) == ((), 4, 4, 36)
    (note,) = (note for note in verdict.notes if "onDataLoss" in note)
    assert "4 records between offsets 35 and 44" in note


def test_records_that_were_given_up_since_the_last_rotation_are_noted_and_are_not_wrong() -> None:
    book = dense()
    book.leave_open(opened(range(39, 45)), written=range(35, 45))
    book.lose(opened(range(35, 45)), range(35, 39))
    verdict = book.verdict()
    assert (verdict.findings, verdict.lost, verdict.gaps, verdict.pending_records) == ((), 4, 4, 6)


def test_an_object_that_was_given_up_whole_may_be_all_there_is_of_a_rotation() -> None:
    book = dense()
    whole = named(range(35, 45))
    book.rotation(whole)
    book.lose(whole, range(35, 45))
    del book.published[-1]
    assert book.wrong() == []


def test_an_object_that_is_named_and_not_visible_yet_is_not_missing() -> None:
    book = dense()
    last = named(range(35, 45))
    book.rotation(last, pending=True)
    book.bucket = BucketState(missing=frozenset({last.key}))
    verdict = book.verdict()
    assert verdict.findings == ()
    assert (verdict.committed, verdict.pending_records, verdict.objects) == (35, 10, 3)


def test_an_object_that_is_visible_and_not_acknowledged_yet_counts() -> None:
    book = dense()
    book.rotation(named(range(35, 45)), pending=True)
    verdict = book.verdict()
    assert (verdict.findings, verdict.committed, verdict.objects) == ((), 45, 4)


def test_a_rotation_without_offsets_says_nothing() -> None:
    book = dense()
    book.rotations.insert(1, RotationRange(*TP, 15, 15, OffsetChecksum()))
    assert book.wrong() == []


def test_a_group_that_lags_behind_is_told_and_right() -> None:
    book = dense()
    book.log = KafkaOffsets(group={TP: 25}, ends={TP: 100})
    verdict = book.verdict()
    assert verdict.findings == ()
    assert verdict.lag == 65
    assert any("25" in note and "commit was lost" in note for note in verdict.notes)


def test_objects_before_the_first_offset_are_somebody_elses() -> None:
    book = dense()
    book.bucket = BucketState(unknown={TP: [UntrackedObject("topics/flights/a/flights+0+0000000001.json", 1, 10)]})
    verdict = book.verdict()
    assert verdict.findings == ()
    assert any("1 objects begin before" in note for note in verdict.notes)


def test_a_sink_that_has_read_nothing_is_right() -> None:
    verdict = Book(at=7).verdict()
    assert (verdict.findings, verdict.start, verdict.committed, verdict.objects) == ((), 7, 7, 0)


# -- what is wrong ----------------------------------------------------------------------------------------------------


def test_an_object_that_is_gone_is_told_by_its_first_offset() -> None:
    book = dense()
    book.bucket = BucketState(missing=frozenset({book.published[1].key}))
    assert book.wrong() == [(FindingType.OBJECT_MISSING, 15)]
    assert book.verdict().objects == 2
    assert book.verdict().findings[0].key == book.published[1].key


@pytest.mark.parametrize("pending", [False, True], ids=["published", "named"])
def test_an_object_with_other_content_is_told_by_its_first_offset(pending: bool) -> None:
    book = dense()
    book.rotation(named(range(35, 45)), pending=pending)
    key = (book.pending or book.published)[-1].key
    book.bucket = BucketState(other={key: "100 bytes with another checksum"})
    assert book.wrong() == [(FindingType.OBJECT_MISMATCH, 35)]


def test_a_published_line_that_is_gone_leaves_a_gap() -> None:
    book = dense()
    del book.published[1]
    assert book.wrong() == [(FindingType.OFFSETS_MISSING, 15)]
    assert "15 to 24 are in no object" in book.verdict().findings[0].message


def test_a_line_that_is_gone_among_several_of_a_rotation_is_found_exactly() -> None:
    book = Book()
    book.rotation(named(range(10), "a"), named(range(12, 20), "b"), named(range(20, 33), "c"))
    del book.published[1]
    assert book.wrong() == [(FindingType.OFFSETS_MISSING, 12)]


def test_a_line_that_is_gone_between_interleaved_paths_is_bounded_by_its_rotation() -> None:
    book = interleaved()
    del book.published[1]
    (finding,) = book.verdict().findings
    assert finding.type is FindingType.OFFSETS_MISSING
    assert "9 records between offsets 0 and 19 are in no object" in finding.message


def test_a_rotation_that_is_gone_proves_nothing_of_its_offsets() -> None:
    book = dense()
    del book.rotations[1]
    assert book.wrong() == [(FindingType.OFFSETS_MISSING, 15)]


def test_a_list_that_begins_later_than_the_sink_has_lost_its_beginning() -> None:
    book = dense()
    del book.rotations[0], book.published[0]
    assert book.wrong() == [(FindingType.OFFSETS_MISSING, 5)]


def test_a_rotation_that_is_there_twice_counts_its_offsets_twice() -> None:
    book = dense()
    book.rotations.append(book.rotations[1])
    assert (FindingType.DUPLICATE_OFFSETS, 15) in book.wrong()


def test_an_object_that_is_listed_twice_is_told() -> None:
    book = dense()
    book.published.append(book.published[1])
    assert {(FindingType.DUPLICATE_OFFSETS, 15)} == set(book.wrong())


def test_an_object_that_overlaps_others_is_told_by_the_first_offset_they_share() -> None:
    book = dense()
    book.published.append(named(range(18, 28)))
    assert book.wrong()[0] == (FindingType.DUPLICATE_OFFSETS, 18)


def test_an_overlap_of_other_paths_is_told_by_its_sum() -> None:
    book = dense()
    book.published.append(named([20, 21], "b"))
    assert book.wrong() == [(FindingType.DUPLICATE_OFFSETS, 20)]


def test_a_tally_that_is_not_that_of_its_offsets_is_told() -> None:
    book = dense()
    book.published[1] = msgspec.structs.replace(book.published[1], offsets=OffsetChecksum(10, 12345))
    assert book.wrong() == [(FindingType.OFFSETS_MISSING, 15)]


def test_a_record_of_an_open_object_that_nothing_counts_is_told() -> None:
    book = dense()
    book.leave_open(opened([35, 36]), written=[35, 36, 37])
    assert book.wrong() == [(FindingType.OFFSETS_MISSING, 37)]


def test_an_object_that_no_list_names_doubles_records() -> None:
    book = dense()
    book.bucket = BucketState(unknown={TP: [UntrackedObject("topics/flights/a/flights+0+0000000019.json", 19, 10)]})
    assert book.wrong() == [(FindingType.UNTRACKED_OBJECT, 19)]


def test_a_group_that_is_ahead_is_told_by_the_first_offset_that_is_not_visible() -> None:
    book = dense()
    book.log = KafkaOffsets(group={TP: 36}, ends={TP: 100})
    assert book.wrong() == [(FindingType.COMMITTED_OFFSET_AHEAD, 35)]


def test_an_offset_that_is_committed_beyond_an_object_that_is_not_visible_is_too_far() -> None:
    book = dense()
    book.rotation(named(range(35, 45)), pending=True)
    book.bucket = BucketState(missing=frozenset({book.pending[0].key}))
    book.log = KafkaOffsets(group={TP: 45}, ends={TP: 100})
    assert book.wrong() == [(FindingType.COMMITTED_OFFSET_AHEAD, 35)]
    assert book.verdict().committed == 35


def test_a_log_that_ends_before_the_committed_offset_is_told() -> None:
    book = dense()
    book.log = KafkaOffsets(group={TP: 35}, ends={TP: 30})
    assert book.wrong() == [(FindingType.LOG_TRUNCATED, 30)]


def test_findings_are_told_from_the_first_offset_on() -> None:
    book = dense()
    book.log = KafkaOffsets(group={TP: 50})
    book.bucket = BucketState(missing=frozenset({book.published[2].key}))
    del book.published[0]
    assert book.wrong() == [
        (FindingType.OFFSETS_MISSING, 5),
        (FindingType.OBJECT_MISSING, 25),
        (FindingType.COMMITTED_OFFSET_AHEAD, 35),
    ]


def test_what_is_missing_exits_like_data_loss_and_what_is_other_like_a_conflict() -> None:
    assert FindingType.OBJECT_MISSING.exit_code == FindingType.COMMITTED_OFFSET_AHEAD.exit_code == 5
    assert FindingType.OBJECT_MISMATCH.exit_code == FindingType.UNTRACKED_OBJECT.exit_code == 6


# -- any history ------------------------------------------------------------------------------------------------------


@st.composite
def books(draw: st.DrawFn) -> Book:
    """A random history: every offset goes to one of the paths or is a hole; rotations end here and there; at the
    end some objects are open, and some of those that are closed are not acknowledged."""
    start = draw(st.sampled_from([0, 3, 10**12]))
    book = Book(at=start)
    paths = draw(st.integers(1, 3))
    for _ in range(draw(st.integers(1, 4))):
        held = hold(draw, book.at, paths)
        if held:
            objects = [named(offsets, path) for path, offsets in held.items()]
            book.rotation(*objects, pending=draw(st.booleans()) or bool(book.pending))
    held = hold(draw, book.at, paths)
    still = {path: offsets for path, offsets in held.items() if draw(st.booleans())}
    if still:
        book.pending += [named(offsets, path) for path, offsets in held.items() if path not in still]
        every = [offset for offsets in held.values() for offset in offsets]
        book.leave_open(*(opened(offsets, path) for path, offsets in still.items()), written=every)
    return book


def hold(draw: st.DrawFn, start: int, paths: int) -> dict[str, list[int]]:
    """The offsets from `start` on by the path they go to."""
    held: dict[str, list[int]] = {}
    choice = draw(st.lists(st.integers(-1, paths - 1), min_size=1, max_size=12))
    for offset, path in enumerate(choice, start):
        if path >= 0:
            held.setdefault("abc"[path], []).append(offset)
    return held


def record_of(finding: Finding) -> str:
    return f"{finding.type} {finding.offset} {finding.message}"


@settings(max_examples=50)
@given(books())
def test_any_history_is_right(book: Book) -> None:
    verdict = book.verdict()
    assert [record_of(finding) for finding in verdict.findings] == []
    assert verdict.next - verdict.start == verdict.records + verdict.pending_records + verdict.gaps


@settings(max_examples=50)
@given(books(), st.data())
def test_any_object_line_that_is_gone_is_noticed_at_or_before_its_first_offset(book: Book, data: st.DataObject) -> None:
    lines = data.draw(st.sampled_from([book.published, book.pending]))
    assume(lines)
    line = lines.pop(data.draw(st.integers(0, len(lines) - 1)))
    wrong = book.wrong()
    assert wrong
    assert wrong[0][1] <= line.first


@settings(max_examples=50)
@given(books(), st.data())
def test_more_missing_than_was_given_up_is_noticed(book: Book, data: st.DataObject) -> None:
    assume(book.published)
    at = data.draw(st.integers(0, len(book.published) - 1))
    whole = book.published.pop(at)
    assume(whole.offsets.count > 1)
    book.lose(whole, [whole.first])
    wrong = book.wrong()
    assert wrong
    assert all(what == FindingType.OFFSETS_MISSING for what, _ in wrong)


@settings(max_examples=50)
@given(books(), st.data())
def test_any_rotation_that_is_gone_is_told_exactly(book: Book, data: st.DataObject) -> None:
    assume(book.rotations)
    line = book.rotations.pop(data.draw(st.integers(0, len(book.rotations) - 1)))
    assert book.wrong()[0] == (FindingType.OFFSETS_MISSING, line.start)


@settings(max_examples=50)
@given(books(), st.data())
def test_any_line_that_is_there_twice_is_noticed(book: Book, data: st.DataObject) -> None:
    assume(book.published)
    line = data.draw(st.sampled_from(book.published))
    book.published.append(line)
    assert (FindingType.DUPLICATE_OFFSETS, line.first) in book.wrong()


@settings(max_examples=50)
@given(books(), st.data())
def test_any_object_that_is_gone_is_told_exactly(book: Book, data: st.DataObject) -> None:
    assume(book.published)
    line = data.draw(st.sampled_from(book.published))
    book.bucket = replace(book.bucket, missing=frozenset({line.key}))
    assert book.wrong() == [(FindingType.OBJECT_MISSING, line.first)]


# -- the arithmetic ---------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**40), st.integers(1, 300), st.data())
def test_a_dense_stretch_is_found_by_its_tally(start: int, length: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(start, start + length - 1))
    end = data.draw(st.integers(first + 1, start + length))
    assert find(start, start + length, checksum_range(first, end)) == first


def test_a_tally_of_other_offsets_is_not_found() -> None:
    assert find(0, 100, of([3, 5])) is None
    assert find(0, 100, checksum_range(98, 103)) is None
    assert find(0, 2, checksum_range(0, 3)) is None
    assert find(0, 100, OffsetChecksum()) is None


def test_what_no_object_spans_is_listed_in_order() -> None:
    objects = [named([12, 15]), named([3, 8], "b"), named([5, 6], "c")]
    assert list(uncovered(0, 20, objects)) == [(0, 3), (9, 12), (16, 20)]
    assert list(uncovered(4, 14, objects)) == [(9, 12)]


def test_the_first_overlap_is_told() -> None:
    assert overlap([named([0, 9]), named([5, 20], "b"), named([7], "c")]) == 5
    assert overlap([named([0, 4]), named([5, 20], "b")]) is None


def test_what_was_open_beside_losses_when_a_generation_ended_is_no_hole_of_it() -> None:
    book = Book()
    book.leave_open(opened(range(4, 10)), written=range(10))
    book.lose(opened(range(10)), range(4))
    lists = book.lists()
    states = {name: end_of_generation(p) for name, p in lists.state.partitions.items()}
    end = replace(lists, state=msgspec.structs.replace(lists.state, partitions=states), ended=True)
    (verdict,) = audit(end, book.bucket, book.log)
    assert (verdict.findings, verdict.lost, verdict.gaps) == ((), 4, 4)
    assert any("what was open from offset 4 on" in note for note in verdict.notes)
