"""What a registration decides from the ledger and the metadata of the table."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.refs import SnapshotRef
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.transforms import BucketTransform, HourTransform, IdentityTransform, Transform
from pyiceberg.types import LongType, NestedField

from sink_job.api.enums import TablePartitioning
from sink_job.api.errors import (
    TableIncompatible,
    TableNotRegistered,
    TablePositionLower,
    TablePositionMissing,
    TableReplaced,
    TableRolledBack,
    TransientError,
)
from sink_job.ledger.schemas.field_ids import SeedTable
from sink_job.ledger.state import ClosedObject
from sink_job.tables import plan
from sink_job.tables.memory import Memory
from sink_job.tables.missing.skipped import Skipped
from sink_job.tables.plan import (
    Acceptance,
    Batch,
    LedgerView,
    Request,
    check_branch,
    check_layout,
    check_location,
    continued_from,
    dropped_columns,
    head_of,
    is_rolled_back,
    last_committed,
    next_batch,
    start_after,
)
from sink_job.tables.position import TablePosition, as_text, position_property
from tests.unit.tables.parquet_objects import listed

VIEW = LedgerView("sink", "ledger", 100, (40,))
UUID = uuid.UUID(int=7)
NOTHING = Request()
BEGIN = Request(from_beginning=True)
PLAIN = PartitionSpec()


def table(
    parents: Mapping[int, int | None],
    head: int | None,
    position: TablePosition | None = None,
    spec: PartitionSpec = PLAIN,
    positions: Mapping[int, TablePosition] = MappingProxyType({}),
) -> TableMetadata:
    """A table with these snapshots and their parents, and its present snapshot. Their numbers are their sequence
    numbers. `positions` are in the summaries of snapshots."""
    metadata = new_table_metadata(
        Schema(NestedField(1, "a", LongType(), required=False)), spec, UNSORTED_SORT_ORDER, "s3://lake/t", {}, UUID
    )
    snapshots = [
        Snapshot.model_validate(
            {
                "snapshot-id": number,
                "parent-snapshot-id": parent,
                "sequence-number": number,
                "manifest-list": "",
                "summary": {"operation": "append"}
                | ({position_property("sink"): as_text(positions[number])} if number in positions else {}),
            }
        )
        for number, parent in parents.items()
    ]
    refs = {} if head is None else {"main": SnapshotRef.model_validate({"snapshot-id": head, "type": "branch"})}
    properties = {} if position is None else {position_property("sink"): as_text(position)}
    return metadata.model_copy(update={"snapshots": snapshots, "refs": refs, "properties": properties})


def at(
    record: int, snapshot: int = 1, *, ledger: str = "ledger", sequence: int = 0, branch: str = "main"
) -> TablePosition:
    return TablePosition(ledger, 1, record, snapshot, sequence, branch)


def memory(record: int, snapshot: int = 1, *, of: uuid.UUID = UUID, accepted: int = 0) -> Memory:
    return Memory(str(of), "ledger", 1, record, snapshot, accepted)


def accepting(*reasons: Acceptance) -> Request:
    return Request(accepted=frozenset(reasons))


# -- where to begin ----------------------------------------------------------------------------------------------------


def test_a_registration_continues_at_the_position_of_the_table() -> None:
    found = table({1: None}, 1, at(60))
    assert [start_after(found, each, VIEW, NOTHING) for each in (None, memory(60), memory(50))] == [60, 60, 60]


def test_a_table_without_position_begins_where_records_were_copied_again_last() -> None:
    view = LedgerView("sink", "ledger", 100, (40,), copied_from=40)
    assert [start_after(each, None, view, BEGIN) for each in (None, table({}, None))] == [40, 40]
    with pytest.raises(TableNotRegistered, match="--from-beginning adds everything"):
        start_after(None, None, view, NOTHING)


def test_a_position_before_records_that_were_copied_again_stops() -> None:
    view = LedgerView("sink", "ledger", 100, (40,), copied_from=40)
    with pytest.raises(TableNotRegistered, match="Later objects have the same records again"):
        start_after(table({1: None}, 1, at(39)), None, view, BEGIN)
    assert start_after(table({1: None}, 1, at(40)), None, view, BEGIN) == 40


def test_a_position_beyond_the_ledger_stops_unless_the_memory_confirms_it() -> None:
    """Another registration may have read more of it."""
    found = table({1: None}, 1, at(101))
    for known in (None, memory(100)):
        with pytest.raises(TransientError, match="the ledger ends at record 100"):
            start_after(found, known, VIEW, accepting(*Acceptance))
    assert start_after(found, memory(101), VIEW, NOTHING) == 101


def test_a_position_of_another_ledger_stops() -> None:
    with pytest.raises(TableNotRegistered, match="objects of the ledger other"):
        start_after(table({1: None}, 1, at(5, ledger="other")), None, VIEW, BEGIN)


@pytest.mark.parametrize(
    ("found", "known", "error", "acceptance", "start"),
    [
        (table({1: None}, 1, at(50)), memory(60), TablePositionLower, Acceptance.POSITION_LOWER, 50),
        (table({1: None}, 1), memory(60), TablePositionMissing, Acceptance.POSITION_MISSING, 60),
        (table({1: None, 2: 1}, 1, at(60, 2)), memory(60, 2), TableRolledBack, Acceptance.ROLLED_BACK, 60),
        (table({1: None}, 1, at(70)), memory(60, of=uuid.UUID(int=8)), TableReplaced, Acceptance.REPLACED, 70),
    ],
    ids=["lower", "missing", "rolled back", "another table"],
)
def test_a_change_of_the_table_stops_until_it_is_accepted(
    found: TableMetadata, known: Memory, error: type[TableNotRegistered], acceptance: Acceptance, start: int
) -> None:
    for others in (NOTHING, BEGIN, accepting(*set(Acceptance) - {acceptance})):
        with pytest.raises(error, match=f"--accept {acceptance}") as caught:
            start_after(found, known, VIEW, others)
        assert caught.value.reason == acceptance.value
    assert start_after(found, known, VIEW, accepting(acceptance)) == start


def test_a_dropped_table_stops_until_it_is_accepted() -> None:
    with pytest.raises(TableReplaced, match="does not exist any more"):
        start_after(None, memory(60), VIEW, BEGIN)
    assert start_after(None, memory(60), VIEW, Request(True, frozenset({Acceptance.REPLACED}))) == 0


def test_another_table_without_position_is_not_registered_unless_from_the_beginning() -> None:
    other = memory(60, of=uuid.UUID(int=8))
    with pytest.raises(TableNotRegistered, match="--from-beginning"):
        start_after(table({}, None), other, VIEW, accepting(Acceptance.REPLACED))


SEEDED = Request(creates=True, seeds=(SeedTable("lake.t", str(UUID), 2),))


def numbered(last: int, *known: int) -> TableMetadata:
    """A table whose last snapshot had the sequence number `last`, and that has these snapshots."""
    found = table(dict.fromkeys(known), max(known, default=None))
    return found.model_copy(update={"last_sequence_number": last})


@pytest.mark.parametrize("snapshots", [(0,), (2, 1, 2), (2,), (4, 3, 4), (1, 1)], ids=str)
def test_a_table_that_gave_its_ids_begins_automatically(snapshots: tuple[int, ...]) -> None:
    found = numbered(*snapshots)
    view = LedgerView("sink", "ledger", 100, (40,), copied_from=40)
    assert start_after(found, None, view, SEEDED) == 40


OTHER = SeedTable("lake.t", str(uuid.UUID(int=8)), 2)


@pytest.mark.parametrize(
    ("snapshots", "seeds"),
    [((4, 4), SEEDED.seeds), ((3,), SEEDED.seeds), ((2, 2), ()), ((2, 2), (OTHER,))],
    ids=str,
)
def test_another_table_or_one_with_expired_snapshots_does_not_begin_automatically(
    snapshots: tuple[int, ...], seeds: tuple[SeedTable, ...]
) -> None:
    with pytest.raises(TableNotRegistered, match="--from-beginning"):
        start_after(numbered(*snapshots), None, VIEW, Request(creates=True, seeds=seeds))


def test_a_table_that_gave_its_ids_and_has_lost_its_position_stops() -> None:
    with pytest.raises(TablePositionMissing):
        start_after(table({2: 1}, 2), memory(60), VIEW, SEEDED)
    with pytest.raises(TablePositionMissing):
        start_after(table({2: 1, 3: 2}, 3, positions={3: at(60, 3)}), None, VIEW, SEEDED)


def test_an_accepted_rollback_is_no_error_later() -> None:
    found = table({1: None, 2: 1}, 1, at(60, 2))
    assert start_after(found, memory(60, 2, accepted=2), VIEW, NOTHING) == 60
    with pytest.raises(TableRolledBack):
        start_after(found, memory(60, 2, accepted=1), VIEW, NOTHING)


# -- rollbacks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parents", "head", "position", "expected"),
    [
        ({1: None, 2: 1, 3: 2}, 3, at(9, 2), False),
        ({1: None, 2: 1}, 2, at(9, 2), False),
        ({1: None, 2: 1}, 1, at(9, 2), True),
        ({1: None, 2: 1, 3: 1}, 3, at(9, 2), True),
        ({1: None}, None, at(9, 1), True),
        ({2: 1, 4: 3}, 4, at(9, 2), True),
        ({2: 1, 5: 2, 4: 3}, 4, at(9, 5), True),
        ({1: None}, 1, at(9, 7), False),
        ({5: 3}, 5, at(9, 4, sequence=4), False),
        ({5: None}, 5, at(9, 4, sequence=4), False),
        ({3: 2}, 3, at(9, 4, sequence=4), True),
        ({5: 3, 3: 2}, 5, at(9, 4, sequence=4), True),
    ],
    ids=[
        "an ancestor",
        "the head",
        "behind the head",
        "another line",
        "an empty branch",
        "before expired ancestors: not decidable, and not without its files",
        "after the oldest known ancestor",
        "expired, of an earlier version",
        "expired before expired ancestors: not decidable",
        "expired with its parents removed: not decidable",
        "expired after the head",
        "expired between known ancestors",
    ],
)
def test_a_position_whose_snapshot_is_no_ancestor_of_the_head_was_rolled_back(
    parents: Mapping[int, int | None], head: int | None, position: TablePosition, expected: bool
) -> None:
    assert is_rolled_back(table(parents, head), position) is expected


@pytest.mark.parametrize(("added_by", "expected"), [((1, 4), True), ((1, 2, 4), False)], ids=["rolled back", "expired"])
def test_a_snapshot_that_a_tag_keeps_was_rolled_back_if_the_branch_has_none_of_its_files(
    added_by: tuple[int, ...], expected: bool
) -> None:
    """The history ends at snapshot 3, which has expired: it may be before or after snapshot 2."""
    found, position = table({2: 1, 4: 3}, 4, at(60, 2)), at(60, 2)
    assert is_rolled_back(found, position, "main", lambda: added_by) is expected
    if expected:
        with pytest.raises(TableRolledBack):
            start_after(found, memory(60, 2), VIEW, NOTHING, "main", lambda: added_by)
    else:
        assert start_after(found, memory(60, 2), VIEW, NOTHING, "main", lambda: added_by) == 60


def test_a_rollback_behind_an_accepted_head_that_has_expired_stops() -> None:
    accepted = memory(60, 5, accepted=5)
    accepted = msgspec.structs.replace(accepted, accepted_head=4, accepted_sequence=4)
    assert start_after(table({6: 4}, 6, at(60, 5, sequence=5)), accepted, VIEW, NOTHING) == 60
    with pytest.raises(TableRolledBack):
        start_after(table({3: 2}, 3, at(60, 5, sequence=5)), accepted, VIEW, NOTHING)


@pytest.mark.parametrize(
    ("parents", "snapshot", "expected"),
    [({1: None, 2: 1}, 2, False), ({1: None, 2: 1, 3: 1}, 3, True), ({2: 1}, 1, True)],
    ids=["it was fast-forwarded", "it was not", "not decidable"],
)
def test_a_position_of_another_branch_has_to_be_in_the_history_of_this_one(
    parents: Mapping[int, int | None], snapshot: int, expected: bool
) -> None:
    position = at(9, snapshot, branch="audit")
    found = table(parents, 2, position)
    assert is_rolled_back(found, position) is expected
    if expected:
        with pytest.raises(TableRolledBack, match="Fast-forward main to audit"):
            start_after(found, None, VIEW, BEGIN)


def test_a_branch_that_does_not_exist_begins_at_the_head_of_main() -> None:
    found = table({1: None, 2: 1}, 2, at(60, 2), positions={2: at(60, 2)})
    assert start_after(found, memory(60, 2), VIEW, NOTHING, "audit") == 60
    assert head_of(table({1: None}, None), "audit") is None


def test_the_newest_position_in_the_history_of_the_head_is_found() -> None:
    positions = {1: at(10, 1), 2: at(20, 2), 3: at(30, 3)}
    parents = {1: None, 2: 1, 4: 2, 3: 1}
    assert last_committed(table(parents, 4, positions=positions), "sink") == at(20, 2)
    assert last_committed(table(parents, 4), "sink") is None
    assert last_committed(table({4: 2}, 4, positions=positions), "sink") is None
    assert last_committed(table({}, None), "sink") is None


def test_a_position_below_one_in_the_history_of_the_head_stops_whatever_is_accepted() -> None:
    found = table({1: None, 2: 1}, 2, at(10, 1), positions={1: at(10, 1), 2: at(20, 2)})
    with pytest.raises(TablePositionLower, match="has an older value"):
        start_after(found, None, VIEW, accepting(*Acceptance))


def test_an_older_position_of_the_same_record_stops_too() -> None:
    """A commit that adds skipped objects has the record of the commit before."""
    older, newer = at(10, 1, sequence=1), at(10, 2, sequence=2)
    parents, positions = {1: None, 2: 1}, {1: older, 2: newer}
    with pytest.raises(TablePositionLower, match="has an older value"):
        start_after(table(parents, 2, older, positions=positions), None, VIEW, NOTHING)
    assert start_after(table(parents, 2, newer, positions=positions), None, VIEW, NOTHING) == 10


@pytest.mark.parametrize("position", [None, at(80)])
def test_a_registration_continues_with_what_was_skipped_up_to_its_position(position: TablePosition | None) -> None:
    """Without the property, with that of the higher of memory and history."""
    skipped = [Skipped(number, number, f"{number:032x}") for number in range(3)]
    committed = msgspec.structs.replace(at(70), skipped=skipped[1])
    known = msgspec.structs.replace(memory(75), skipped=skipped[2])
    found = table({1: None}, 1, position, positions={1: committed})
    for each, expected in ((None, skipped[1]), (known, skipped[2])):
        result = continued_from(found, each, "sink")
        assert result is not None
        assert result.skipped == (expected if position is None else None)
    other = msgspec.structs.replace(known, uuid="other")
    assert (continued_from(found, other, "sink") or at(0)).skipped == (skipped[1] if position is None else None)


def test_a_missing_position_continues_after_the_higher_of_memory_and_history() -> None:
    found = table({1: None}, 1, positions={1: at(70)})
    for known in (None, memory(60)):
        with pytest.raises(TablePositionMissing, match="record 70"):
            start_after(found, known, VIEW, BEGIN)
        assert start_after(found, known, VIEW, accepting(Acceptance.POSITION_MISSING)) == 70


def test_an_accepted_missing_position_is_checked_as_one_in_the_table() -> None:
    missing = accepting(Acceptance.POSITION_MISSING)
    view = LedgerView("sink", "ledger", 100, (70,), copied_from=70)
    with pytest.raises(TableNotRegistered, match="Later objects have the same records again"):
        start_after(table({1: None}, 1), memory(60), view, missing)
    with pytest.raises(TransientError, match="the ledger ends at record 100"):
        start_after(table({1: None}, 1, positions={1: at(101)}), None, VIEW, missing)
    rolled_back = table({1: None, 2: 1}, 1)
    with pytest.raises(TableRolledBack):
        start_after(rolled_back, memory(60, 2), VIEW, missing)
    both = accepting(Acceptance.POSITION_MISSING, Acceptance.ROLLED_BACK)
    assert start_after(rolled_back, memory(60, 2), VIEW, both) == 60


def test_a_record_is_identified_by_the_newest_claim_up_to_it() -> None:
    view = LedgerView("sink", "ledger", 100, claims={1: "a", 40: "b", 70: "", 90: "c"})
    assert [view.claim_of(each) for each in (1, 39, 40, 69, 70, 89, 90, 100)] == ["a", "a", "b", "b", "", "", "c", "c"]
    assert VIEW.claim_of(50) == ""
    assert view.is_restored(50, "a")
    for record, claim in ((50, "b"), (50, ""), (75, "a"), (101, "d")):
        assert not view.is_restored(record, claim)


@pytest.mark.parametrize("claim", ["", "a", "b"])
def test_a_position_in_another_epoch_of_the_ledger_stops(claim: str) -> None:
    view = LedgerView("sink", "ledger", 100, claims={1: "a", 40: "b"})
    position = msgspec.structs.replace(at(60), claim=claim)
    known = msgspec.structs.replace(memory(60), claim=claim)
    missing = accepting(Acceptance.POSITION_MISSING)
    for found, request in ((table({1: None}, 1, position), NOTHING), (table({1: None}, 1), missing)):
        if claim == "a":
            with pytest.raises(TableNotRegistered, match="the ledger was restored to an older state"):
                start_after(found, known, view, request)
        else:
            assert start_after(found, known, view, request) == 60


# -- batches -----------------------------------------------------------------------------------------------------------


def batches(acknowledged: Sequence[int], limit: int, after: int = 0) -> list[tuple[int, int]]:
    """The number of objects and the record of each batch; the ledger has 100 records."""
    objects = _acknowledged(*acknowledged)
    found = []
    while (batch := next_batch(objects, after, 100, limit)) is not None:
        found.append((len(batch.objects), batch.record))
        after = batch.record
    return found


def test_a_batch_ends_with_a_record_and_the_last_one_with_the_ledger() -> None:
    assert batches([2, 2, 5, 5, 5, 7], 3) == [(5, 5), (1, 100)]
    assert batches([2, 3, 4], 1) == [(1, 2), (1, 3), (1, 100)]


def test_objects_up_to_the_position_are_left_out() -> None:
    assert batches([2, 3, 4], 10, after=3) == [(1, 100)]
    assert batches([2, 3, 4], 10, after=4) == []


# -- tables that do not fit -------------------------------------------------------------------------------------------


def partitioned(transform: Transform[Any, Any]) -> TableMetadata:
    field = PartitionField(source_id=1, field_id=1000, transform=transform, name="a_field")
    return table({}, None, spec=PartitionSpec(field))


@pytest.mark.parametrize(
    ("partitioning", "accepted", "rejected"),
    [
        (TablePartitioning.NONE, None, IdentityTransform()),
        (TablePartitioning.PATH, IdentityTransform(), BucketTransform(4)),
        (TablePartitioning.HIDDEN, HourTransform(), IdentityTransform()),
    ],
    ids=str,
)
def test_a_table_with_partition_fields_of_others_is_rejected(
    partitioning: TablePartitioning, accepted: Transform[Any, Any] | None, rejected: Transform[Any, Any]
) -> None:
    check_layout(table({}, None), partitioning, None)
    if accepted is not None:
        check_layout(partitioned(accepted), partitioning, None)
    with pytest.raises(TableIncompatible, match="partitioned by a_field, which"):
        check_layout(partitioned(rejected), partitioning, None)


def test_a_table_of_a_later_format_version_is_rejected() -> None:
    found = table({}, None).model_copy(update={"format_version": 3})
    with pytest.raises(TableIncompatible, match="format version 3"):
        check_layout(found, TablePartitioning.NONE, None)


@pytest.mark.parametrize("before", TablePartitioning)
@pytest.mark.parametrize("now", TablePartitioning)
def test_a_table_does_not_get_or_lose_columns_of_paths_later(before: TablePartitioning, now: TablePartitioning) -> None:
    position = msgspec.structs.replace(at(60), partitioning=before)
    if before is now or TablePartitioning.PATH not in (before, now):
        check_layout(table({1: None}, 1, position), now, position)
        return
    with pytest.raises(TableIncompatible, match=f"registered with partitioning {before}"):
        check_layout(table({1: None}, 1, position), now, position)


def test_a_branch_that_cannot_have_objects_is_rejected() -> None:
    found = table({1: None}, 1)
    tag = SnapshotRef.model_validate({"snapshot-id": 1, "type": "tag"})
    with pytest.raises(TableIncompatible, match="v1 is a tag of the table"):
        check_branch(found.model_copy(update={"refs": {**found.refs, "v1": tag}}), "v1")
    with pytest.raises(TableIncompatible, match="the table has no snapshot"):
        check_branch(table({}, None), "audit")
    check_branch(table({}, None), "main")
    check_branch(found, "audit")


@pytest.mark.parametrize(
    "location", ["s3://b/topics/t", "s3a://b/topics", "s3://b", "s3://b/", "s3://b/rejected/x/y", "s3://b/topics/"]
)
def test_a_table_in_the_prefix_of_the_sink_or_around_it_is_rejected(location: str) -> None:
    with pytest.raises(TableIncompatible, match="one lies in the other"):
        check_location(location, "b", ["topics/", "rejected/"])


@pytest.mark.parametrize("location", ["s3://b/lake", "s3://other/topics", "s3://b/topics-tables/x"])
def test_a_table_elsewhere_is_accepted(location: str) -> None:
    check_location(location, "b", ["topics/", "rejected/"])


def test_a_sink_without_a_directory_has_the_whole_bucket() -> None:
    with pytest.raises(TableIncompatible):
        check_location("s3://b/lake", "b", [""])


def test_dropped_columns_are_those_of_earlier_schemas_alone() -> None:
    found = table({}, None)
    earlier = Schema(NestedField(1, "a", LongType()), NestedField(2, "b", LongType()), schema_id=5)
    assert set(dropped_columns(found.model_copy(update={"schemas": [*found.schemas, earlier]}))) == {2}


def _acknowledged(*records: int) -> list[ClosedObject]:
    return [listed(f"k{number}", b"", 1, record) for number, record in enumerate(records)]


def test_a_batch_is_shortened_at_the_end_of_a_record_if_its_statistics_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plan, "MAX_STATISTICS", 10)
    batch = Batch(_acknowledged(1, 2, 2, 4), 9)
    assert plan.shortened(batch, 2) == batch
    found = plan.shortened(batch, 5)
    assert ([o.acknowledged for o in found.objects], found.record) == ([1, 2, 2], 2)
    assert [o.acknowledged for o in plan.shortened(batch, 1_000).objects] == [1]


def test_a_record_is_not_divided_for_its_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "MAX_STATISTICS", 1)
    batch = Batch(_acknowledged(2, 2), 9)
    assert plan.shortened(batch, 5) == batch
