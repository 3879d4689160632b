"""Audits of consistent and of damaged ledgers: each kind of damage is reported with the first wrong offset."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from sink_job.ledger.generations import end_of_generation
from sink_job.ledger.state import (
    OffsetChecksum,
    RotationRange,
)
from sink_job.verify.audit import audit
from sink_job.verify.audit_input import BucketState, KafkaOffsets, UntrackedObject
from sink_job.verify.results import FindingType
from tests.unit.verify.audit_builder import TP, AuditBuilder, closed, dense, interleaved, opened

# -- consistent states ------------------------------------------------------------------------------------------------


def test_consecutive_objects_have_no_findings() -> None:
    result = dense().result()
    assert result.findings == ()
    assert (result.start, result.committed, result.objects, result.records, result.bytes) == (5, 35, 3, 30, 300)
    assert result.gaps == result.pending_records == 0


def test_interleaved_paths_with_gaps_have_no_findings() -> None:
    result = interleaved().result()
    assert result.findings == ()
    assert (result.records, result.gaps) == (28, 2)


def test_open_records_are_pending_and_not_committed() -> None:
    sink = dense()
    sink.add_open(opened([35, 36, 38]), accepted=[35, 36, 38])
    result = sink.result()
    assert result.findings == ()
    assert (result.committed, result.pending_records, result.gaps, result.next) == (35, 3, 1, 39)


def test_closed_and_open_objects_since_the_last_rotation_add_up() -> None:
    sink = dense()
    sink.add_open(opened([36, 38], "b"), accepted=range(35, 40))
    sink.published.append(closed([35, 37, 39], "a"))
    assert sink.findings() == []


def test_offsets_after_the_last_record_are_gaps() -> None:
    sink = dense()
    sink.next = 40
    result = sink.result()
    assert (result.findings, result.committed, result.gaps) == ((), 40, 5)


@pytest.mark.parametrize("is_damaged", [False, True])
def test_an_object_whose_loss_is_accepted_counts_as_lost_while_it_is_missing_or_damaged(is_damaged: bool) -> None:
    sink = dense()
    key = sink.published[1].key
    sink.accepted_losses = {key}
    sink.bucket = BucketState(mismatched={key: "9 bytes"}) if is_damaged else BucketState(missing=frozenset({key}))
    result = sink.result()
    assert result.findings == ()
    assert (result.objects, result.records, result.lost, result.gaps) == (2, 20, 10, 10)
    assert result.notes[0].startswith("10 records of 1 objects are lost: ")
    assert key in result.notes[0]


def test_an_object_that_is_as_recorded_is_not_lost_although_its_loss_is_accepted() -> None:
    sink = dense()
    sink.accepted_losses = {sink.published[1].key}
    result = sink.result()
    assert (result.findings, result.objects, result.lost) == ((), 3, 0)


def test_an_accepted_loss_does_not_cover_another_object() -> None:
    sink = dense()
    sink.accepted_losses = {sink.published[1].key}
    sink.bucket = BucketState(missing=frozenset({sink.published[0].key}))
    assert sink.findings() == [(FindingType.OBJECT_MISSING, 5)]


def test_skipped_records_are_gaps_that_a_note_names() -> None:
    sink = interleaved()
    sink.skipped, sink.next = (6, 31, 40), 35
    result = sink.result()
    assert (result.findings, result.gaps, result.skipped) == ((), 7, 2)
    assert "2 of the gaps are records that were skipped (errors.skip): offsets 6, 31" in result.notes


def test_of_many_skipped_records_a_note_names_some() -> None:
    sink = dense()
    sink.skipped, sink.next = tuple(range(40, 70)), 90
    (note,) = (each for each in sink.result().notes if "skipped" in each)
    assert note.startswith("30 of the gaps")
    assert note.endswith("58, 59 …")


def test_lost_records_are_a_note_and_not_a_finding() -> None:
    sink = dense()
    whole = closed(range(35, 45))
    sink.rotation(whole)
    sink.lose(whole, range(35, 39))
    sink.published[-1] = closed(range(39, 45))
    result = sink.result()
    assert (result.findings, result.lost, result.gaps, result.records) == ((), 4, 4, 36)
    (note,) = (note for note in result.notes if "onDataLoss" in note)
    assert "4 records between offsets 35 and 44 were lost" in note


def test_lost_records_since_the_last_rotation_are_a_note_and_not_a_finding() -> None:
    sink = dense()
    sink.add_open(opened(range(39, 45)), accepted=range(35, 45))
    sink.lose(opened(range(35, 45)), range(35, 39))
    result = sink.result()
    assert (result.findings, result.lost, result.gaps, result.pending_records) == ((), 4, 4, 6)


def test_a_rotation_range_can_consist_of_lost_records_only() -> None:
    sink = dense()
    whole = closed(range(35, 45))
    sink.rotation(whole)
    sink.lose(whole, range(35, 45))
    del sink.published[-1]
    assert sink.findings() == []


def test_a_pending_object_that_is_not_visible_yet_is_not_missing() -> None:
    sink = dense()
    last = closed(range(35, 45))
    sink.rotation(last, pending=True)
    sink.bucket = BucketState(missing=frozenset({last.key}))
    result = sink.result()
    assert result.findings == ()
    assert (result.committed, result.pending_records, result.objects) == (35, 10, 3)


def test_a_visible_object_without_acknowledgement_counts() -> None:
    sink = dense()
    sink.rotation(closed(range(35, 45)), pending=True)
    result = sink.result()
    assert (result.findings, result.committed, result.objects) == ((), 45, 4)


def test_an_empty_rotation_range_has_no_findings() -> None:
    sink = dense()
    sink.rotations.insert(1, RotationRange(*TP, 15, 15, OffsetChecksum()))
    assert sink.findings() == []


def test_a_lagging_group_offset_is_a_note_and_not_a_finding() -> None:
    sink = dense()
    sink.kafka = KafkaOffsets(group={TP: 25}, ends={TP: 100})
    result = sink.result()
    assert result.findings == ()
    assert result.lag == 65
    assert any("25" in note and "commit was lost" in note for note in result.notes)


def test_objects_before_the_start_offset_are_a_note_and_not_a_finding() -> None:
    sink = dense()
    sink.bucket = BucketState(untracked={TP: [UntrackedObject("topics/flights/a/flights+0+0000000001.json", 1, 10)]})
    result = sink.result()
    assert result.findings == ()
    assert any("1 objects begin before" in note for note in result.notes)


def test_a_sink_that_has_read_nothing_has_no_findings() -> None:
    result = AuditBuilder(next=7).result()
    assert (result.findings, result.start, result.committed, result.objects) == ((), 7, 7, 0)


# -- damaged states ---------------------------------------------------------------------------------------------------


def test_a_missing_object_is_reported_with_its_first_offset() -> None:
    sink = dense()
    sink.bucket = BucketState(missing=frozenset({sink.published[1].key}))
    assert sink.findings() == [(FindingType.OBJECT_MISSING, 15)]
    assert sink.result().objects == 2
    assert sink.result().findings[0].key == sink.published[1].key


@pytest.mark.parametrize("pending", [False, True], ids=["published", "pending"])
def test_an_object_with_other_content_is_reported_with_its_first_offset(pending: bool) -> None:
    sink = dense()
    sink.rotation(closed(range(35, 45)), pending=pending)
    key = (sink.pending or sink.published)[-1].key
    sink.bucket = BucketState(mismatched={key: "100 bytes with another checksum"})
    assert sink.findings() == [(FindingType.OBJECT_MISMATCH, 35)]


def test_a_missing_object_entry_is_reported_with_its_offsets() -> None:
    sink = dense()
    del sink.published[1]
    assert sink.findings() == [(FindingType.OFFSETS_MISSING, 15)]
    assert "15 to 24 are in no object" in sink.result().findings[0].message


def test_a_missing_object_entry_within_a_rotation_range_is_located_exactly() -> None:
    sink = AuditBuilder()
    sink.rotation(closed(range(10), "a"), closed(range(12, 20), "b"), closed(range(20, 33), "c"))
    del sink.published[1]
    assert sink.findings() == [(FindingType.OFFSETS_MISSING, 12)]


def test_a_missing_object_entry_of_interleaved_paths_is_located_within_its_range() -> None:
    sink = interleaved()
    del sink.published[1]
    (finding,) = sink.result().findings
    assert finding.type is FindingType.OFFSETS_MISSING
    assert "9 records between offsets 0 and 19 are in no object" in finding.message


def test_a_missing_rotation_entry_is_reported_with_its_first_offset() -> None:
    sink = dense()
    del sink.rotations[1]
    assert sink.findings() == [(FindingType.OFFSETS_MISSING, 15)]


def test_missing_entries_at_the_start_offset_are_reported() -> None:
    sink = dense()
    del sink.rotations[0], sink.published[0]
    assert sink.findings() == [(FindingType.OFFSETS_MISSING, 5)]


def test_a_duplicate_rotation_entry_is_reported() -> None:
    sink = dense()
    sink.rotations.append(sink.rotations[1])
    assert (FindingType.DUPLICATE_OFFSETS, 15) in sink.findings()


def test_a_duplicate_object_entry_is_reported() -> None:
    sink = dense()
    sink.published.append(sink.published[1])
    assert {(FindingType.DUPLICATE_OFFSETS, 15)} == set(sink.findings())


def test_overlapping_objects_are_reported_with_their_first_common_offset() -> None:
    sink = dense()
    sink.published.append(closed(range(18, 28)))
    assert sink.findings()[0] == (FindingType.DUPLICATE_OFFSETS, 18)


def test_an_overlap_of_paths_is_located_by_its_checksum() -> None:
    sink = dense()
    sink.published.append(closed([20, 21], "b"))
    assert sink.findings() == [(FindingType.DUPLICATE_OFFSETS, 20)]


def test_a_wrong_checksum_of_an_object_is_reported() -> None:
    sink = dense()
    sink.published[1] = msgspec.structs.replace(sink.published[1], offsets=OffsetChecksum(10, 12345))
    assert sink.findings() == [(FindingType.OFFSETS_MISSING, 15)]


def test_an_accepted_record_in_no_object_is_reported() -> None:
    sink = dense()
    sink.add_open(opened([35, 36]), accepted=[35, 36, 37])
    assert sink.findings() == [(FindingType.OFFSETS_MISSING, 37)]


def test_an_untracked_object_is_reported() -> None:
    sink = dense()
    sink.bucket = BucketState(untracked={TP: [UntrackedObject("topics/flights/a/flights+0+0000000019.json", 19, 10)]})
    assert sink.findings() == [(FindingType.UNTRACKED_OBJECT, 19)]


def test_a_group_offset_ahead_is_reported_with_the_first_invisible_offset() -> None:
    sink = dense()
    sink.kafka = KafkaOffsets(group={TP: 36}, ends={TP: 100})
    assert sink.findings() == [(FindingType.COMMITTED_OFFSET_AHEAD, 35)]


def test_a_group_offset_after_an_invisible_object_is_ahead() -> None:
    sink = dense()
    sink.rotation(closed(range(35, 45)), pending=True)
    sink.bucket = BucketState(missing=frozenset({sink.pending[0].key}))
    sink.kafka = KafkaOffsets(group={TP: 45}, ends={TP: 100})
    assert sink.findings() == [(FindingType.COMMITTED_OFFSET_AHEAD, 35)]
    assert sink.result().committed == 35


def test_a_log_that_ends_before_the_committed_offset_is_reported() -> None:
    sink = dense()
    sink.kafka = KafkaOffsets(group={TP: 35}, ends={TP: 30})
    assert sink.findings() == [(FindingType.LOG_TRUNCATED, 30)]


def test_findings_are_in_the_order_of_their_offsets() -> None:
    sink = dense()
    sink.kafka = KafkaOffsets(group={TP: 50})
    sink.bucket = BucketState(missing=frozenset({sink.published[2].key}))
    del sink.published[0]
    assert sink.findings() == [
        (FindingType.OFFSETS_MISSING, 5),
        (FindingType.OBJECT_MISSING, 25),
        (FindingType.COMMITTED_OFFSET_AHEAD, 35),
    ]


def test_missing_records_exit_as_data_loss_and_different_records_as_a_conflict() -> None:
    assert FindingType.OBJECT_MISSING.exit_code == FindingType.COMMITTED_OFFSET_AHEAD.exit_code == 5
    assert FindingType.OBJECT_MISMATCH.exit_code == FindingType.UNTRACKED_OBJECT.exit_code == 6


def test_records_in_open_objects_at_the_end_of_a_generation_are_no_gaps() -> None:
    sink = AuditBuilder()
    sink.add_open(opened(range(4, 10)), accepted=range(10))
    sink.lose(opened(range(10)), range(4))
    lists = sink.generation()
    states = {name: end_of_generation(p) for name, p in lists.state.partitions.items()}
    end = replace(lists, state=msgspec.structs.replace(lists.state, partitions=states), ended=True)
    (result,) = audit(end, sink.bucket, sink.kafka)
    assert (result.findings, result.lost, result.gaps) == ((), 4, 4)
    assert any("records from offset 4 on that were in open objects" in note for note in result.notes)


def test_an_object_that_a_lifecycle_rule_has_removed_is_counted_and_no_finding() -> None:
    sink = dense()
    removed = sink.published[1].key
    sink.bucket = BucketState(missing=frozenset({removed}), removed=frozenset({removed}))
    result = sink.result()
    assert (result.findings, result.objects, result.records, result.removed) == ((), 2, 20, 1)
