"""Which snapshots a commit expires, and which properties it sets; and that merged manifests are exact."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.api.errors import TableRolledBack
from sink_job.tables import append
from sink_job.tables.housekeeping import DAY_MS, Housekeeping
from sink_job.tables.plan import Request
from sink_job.tables.position import TablePosition, as_text, other_positions, position_in, position_property
from tests.support.table_sink import SINK_ID, TableSink

CONTINUE = Request()


def register(sink: TableSink, *records: int) -> None:
    """Registers each number of records in a commit of its own."""
    for each in records:
        sink.write(each)
        sink.register()


def snapshots(sink: TableSink) -> list[int]:
    """The ids of the snapshots in the order of their commits."""
    found = sorted(sink.table().metadata.snapshots, key=lambda each: each.sequence_number or 0)
    return [each.snapshot_id for each in found]


def test_a_commit_expires_snapshots_older_than_the_history_but_the_head_and_deletes_no_file(
    table_sink: TableSink,
) -> None:
    register(table_sink, 20, 40, 60)
    first, second, third = snapshots(table_sink)
    before = set(table_sink.lake.objects)
    table_sink.ahead_ms = 8 * DAY_MS
    register(table_sink, 80)
    assert snapshots(table_sink)[:-1] == [third]
    assert before <= set(table_sink.lake.objects)
    assert table_sink.files() == table_sink.objects()
    assert {first, second}.isdisjoint(each.snapshot_id for each in table_sink.table().history())


def test_snapshots_within_the_history_are_kept(table_sink: TableSink) -> None:
    table_sink.ahead_ms = 6 * DAY_MS
    register(table_sink, 20, 40, 60)
    assert len(snapshots(table_sink)) == 3


def test_nothing_expires_while_nothing_is_new(table_sink: TableSink) -> None:
    register(table_sink, 20, 40, 60)
    table_sink.ahead_ms = 8 * DAY_MS
    table_sink.register(CONTINUE)
    assert len(snapshots(table_sink)) == 3


def test_targets_of_tags_are_kept_and_so_is_the_history_of_a_branch_with_a_retention(table_sink: TableSink) -> None:
    register(table_sink, 20, 40, 60, 80)
    first, second, third, fourth = snapshots(table_sink)
    with table_sink.table().manage_snapshots() as change:
        change.create_tag(third, "month").create_branch(second, "audit", max_snapshot_age_ms=99 * DAY_MS)
    table_sink.ahead_ms = 8 * DAY_MS
    register(table_sink, 100)
    assert snapshots(table_sink)[:-1] == [first, second, third, fourth]
    with table_sink.table().manage_snapshots() as change:
        change.remove_branch("audit")
    register(table_sink, 120)
    assert third in snapshots(table_sink)
    assert {first, second}.isdisjoint(snapshots(table_sink))


def test_snapshots_since_the_position_of_another_sink_are_kept(table_sink: TableSink) -> None:
    register(table_sink, 20, 40, 60)
    _, second, third = snapshots(table_sink)
    other = as_text(TablePosition("other", 1, 7, second))
    with table_sink.table().transaction() as change:
        change.set_properties({position_property("other"): other})
    table_sink.ahead_ms = 8 * DAY_MS
    register(table_sink, 80)
    assert snapshots(table_sink)[:-1] == [second, third]
    assert [each.snapshot for each in other_positions(table_sink.table().properties, SINK_ID)] == [second]


def test_nothing_expires_in_a_table_with_an_unreadable_position_of_another_sink(table_sink: TableSink) -> None:
    register(table_sink, 20, 40, 60)
    with table_sink.table().transaction() as change:
        change.set_properties({position_property("other"): "?"})
    table_sink.ahead_ms = 8 * DAY_MS
    register(table_sink, 80)
    assert len(snapshots(table_sink)) == 4


def test_a_rollback_is_found_after_snapshots_have_expired(table_sink: TableSink) -> None:
    register(table_sink, 20, 40, 60)
    table_sink.ahead_ms = 8 * DAY_MS
    register(table_sink, 80)
    table_sink.ahead_ms = 0
    register(table_sink, 100)
    before, last = snapshots(table_sink)[-2:]
    position = position_in(table_sink.table().properties, SINK_ID)
    assert position is not None
    assert position.snapshot == last
    with table_sink.table().manage_snapshots() as change:
        change.set_current_snapshot(before)
    table_sink.write(120)
    with pytest.raises(TableRolledBack):
        table_sink.register(CONTINUE)


def entries(sink: TableSink) -> dict[str, tuple[Any, ...]]:
    """What the manifests have of each file, but for the status."""
    table = sink.table()
    snapshot = table.current_snapshot()
    assert snapshot is not None
    found = [
        (entry.data_file.file_path, (entry.snapshot_id, entry.sequence_number, entry.data_file.lower_bounds))
        for manifest in snapshot.manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io)
    ]
    assert len(dict(found)) == len(found)
    return dict(found)


def manifests(sink: TableSink) -> int:
    table = sink.table()
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return len(snapshot.manifests(table.io))


def test_merged_manifests_have_each_file_once_with_its_snapshot_and_sequence_number(table_sink: TableSink) -> None:
    register(table_sink, 20, 40, 60)
    before = entries(table_sink)
    assert manifests(table_sink) == 3
    with table_sink.table().transaction() as change:
        change.set_properties({"commit.manifest.min-count-to-merge": "4"})
    register(table_sink, 80)
    assert manifests(table_sink) == 1
    after = entries(table_sink)
    assert {path: after[path] for path in before} == before
    assert table_sink.files() == table_sink.objects()
    register(table_sink, 100)
    assert manifests(table_sink) == 2
    assert table_sink.files() == table_sink.objects()


def test_a_table_whose_properties_forbid_it_keeps_its_manifests(table_sink: TableSink) -> None:
    register(table_sink, 20)
    with table_sink.table().transaction() as change:
        change.set_properties({"commit.manifest.min-count-to-merge": "2", "commit.manifest-merge.enabled": "false"})
    register(table_sink, 40, 60)
    assert manifests(table_sink) == 3


def test_old_files_of_metadata_are_deleted_by_the_catalog(table_sink: TableSink) -> None:
    register(table_sink, 20)
    with table_sink.table().transaction() as change:
        change.set_properties({"write.metadata.previous-versions-max": "2"})
    register(table_sink, 40, 60, 80)
    assert sum(key.endswith(".metadata.json") for key in table_sink.lake.objects) == 3


def test_a_table_keeps_its_objects_unless_the_manifest_says_otherwise(table_sink: TableSink) -> None:
    table_sink.housekeeping = Housekeeping(keep_objects=False)
    register(table_sink, 20)
    assert "gc.enabled" not in table_sink.table().properties
    table_sink.housekeeping = Housekeeping()
    register(table_sink, 40)
    assert table_sink.table().properties["gc.enabled"] == "false"
    with table_sink.table().transaction() as change:
        change.set_properties({"gc.enabled": "true"})
    table_sink.housekeeping = Housekeeping(keep_objects=False)
    register(table_sink, 60)
    assert table_sink.table().properties["gc.enabled"] == "true"


def test_merged_manifests_have_a_maximum_size(table_sink: TableSink, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(append, "MERGED_BYTES", 1)
    table_sink.write(20)
    table_sink.register()
    with table_sink.table().transaction() as change:
        change.set_properties({"commit.manifest.min-count-to-merge": "2"})
    register(table_sink, 40, 60)
    assert manifests(table_sink) == 3


def test_a_branch_that_was_set_to_an_expired_snapshot_meanwhile_stays(table_sink: TableSink) -> None:
    for records in (20, 40, 60):
        table_sink.write(records)
        table_sink.register()
    first = table_sink.table().history()[0].snapshot_id
    table_sink.options["branch"] = "audit"
    table_sink.ahead_ms = 30 * DAY_MS
    table_sink.write(80)
    table_sink.register(CONTINUE)

    def roll_back() -> None:
        table_sink.catalog.before = lambda: None
        with table_sink.table().manage_snapshots() as change:
            change.set_current_snapshot(first)

    table_sink.catalog.before = roll_back
    table_sink.write(100)
    table_sink.register(CONTINUE)
    assert table_sink.table().metadata.current_snapshot_id == first
    assert {"main", "audit"} <= set(table_sink.table().metadata.refs)
