"""Snapshots with files of several partition specs, on branches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyiceberg.table.update import AssertRefSnapshotId, SetSnapshotRefUpdate
from pyiceberg.table.update.snapshot import _MergeAppendFiles, _SnapshotProducer

from sink_job.api.enums import TablePartitioning
from sink_job.api.errors import TableIncompatible, TableRolledBack, TransientError
from sink_job.tables.catalogs import CommitRejected
from sink_job.tables.plan import Acceptance, Request, head_of
from sink_job.tables.position import position_property
from tests.support.table_sink import SINK_ID, TableSink

CONTINUE = Request()
DAILY = {"type": "FieldAndTime", "fields": ["kind"], "duration": "1d", "pathFormat": "'day'=YYYY-MM-dd"}
CLOCK = {**DAILY, "timezone": "UTC", "timestampExtractor": "Wallclock"}


@pytest.fixture
def partitioned(table_sink: TableSink) -> TableSink:
    """A table with partitions of paths, and 20 records in two of them."""
    table_sink.options["partitioning"] = TablePartitioning.PATH
    table_sink.partition_by(type="Field", fields=["kind"])
    table_sink.write(20, paths=2)
    table_sink.register()
    return table_sink


def specs_of(sink: TableSink) -> dict[str, tuple[int, tuple[Any, ...]]]:
    """By the key of each object in the table, the id of its spec and the values of its partition."""
    table = sink.table()
    head = head_of(table.metadata, sink.options.get("branch", "main"))
    snapshot = None if head is None else table.snapshot_by_id(head)
    assert snapshot is not None
    return {
        entry.data_file.file_path.removeprefix("s3://archive/"): (
            entry.data_file.spec_id,
            tuple(entry.data_file.partition[n] for n in range(len(entry.data_file.partition))),
        )
        for manifest in snapshot.manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io)
    }


def test_the_overridden_methods_of_pyiceberg_exist() -> None:
    for name in ("_manifests", "_summary", "_commit"):
        assert name in vars(_SnapshotProducer)
        assert name not in vars(_MergeAppendFiles)


def test_objects_of_two_partitioners_are_in_one_commit_with_a_spec_for_each(partitioned: TableSink) -> None:
    partitioned.write(30, paths=2)
    partitioned.partition_by(**CLOCK)
    partitioned.write(60, paths=2)
    outcome = partitioned.register(CONTINUE)
    assert (outcome.commits, outcome.columns) == (1, ("day",))
    found = specs_of(partitioned)
    assert set(found) == set(partitioned.objects())
    for key, (spec, values) in found.items():
        kind = key.split("kind=")[1].split("/")[0]
        assert (spec, values) == ((1, (kind, "2023-11-14")) if "day=" in key else (0, (kind,)))
    metadata = partitioned.table().metadata
    assert metadata.default_spec_id == 1
    assert [[field.field_id for field in each.fields] for each in metadata.partition_specs] == [[1000], [1000, 1001]]
    head = partitioned.table().current_snapshot()
    assert head is not None
    assert sorted(each.partition_spec_id for each in head.manifests(partitioned.table().io)) == [0, 0, 1]


def test_nothing_of_the_specs_changes_while_the_partitioner_is_the_same(partitioned: TableSink) -> None:
    before = partitioned.table().metadata
    partitioned.write(40, paths=2)
    partitioned.register(CONTINUE)
    after = partitioned.table().metadata
    assert (after.partition_specs, after.default_spec_id) == (before.partition_specs, before.default_spec_id)


def test_a_partitioner_that_returns_has_its_spec_again(partitioned: TableSink) -> None:
    for partitioner in (CLOCK, {"type": "Field", "fields": ["kind"]}):
        partitioned.partition_by(**partitioner)
        partitioned.write(20 + partitioned.table().metadata.default_spec_id * 20 + 20, paths=2)
        partitioned.register(CONTINUE)
    metadata = partitioned.table().metadata
    assert (len(metadata.partition_specs), metadata.default_spec_id) == (2, 0)


def test_two_commits_that_add_specs_at_the_same_time_do_not_both_take_effect(partitioned: TableSink) -> None:
    partitioned.partition_by(**CLOCK)
    partitioned.write(40, paths=2)
    partitioned.catalog.holds = True
    with pytest.raises(TransientError):
        partitioned.register(CONTINUE)
    partitioned.catalog.holds = False
    table = partitioned.table()
    with table.update_spec() as update:
        update.add_identity("partition")
    assert partitioned.table().metadata.default_spec_id == 1
    for land in partitioned.catalog.held:
        with pytest.raises(CommitRejected):
            land()


def test_another_partitioning_stops_a_table_with_columns_of_paths(partitioned: TableSink) -> None:
    partitioned.write(40, paths=2)
    for other in (TablePartitioning.NONE, TablePartitioning.HIDDEN):
        partitioned.options["partitioning"] = other
        with pytest.raises(TableIncompatible, match=r"partitioned by kind|registered with partitioning Path"):
            partitioned.register(CONTINUE)


def test_a_table_that_lost_its_position_keeps_its_partitioning(partitioned: TableSink) -> None:
    partitioned.partition_by(type="Default")
    partitioned.write(40)
    with partitioned.table().transaction() as transaction:
        transaction.remove_properties(position_property(SINK_ID))
    with partitioned.table().update_spec() as update:
        update.remove_field("kind")
    partitioned.options["partitioning"] = TablePartitioning.NONE
    with pytest.raises(TableIncompatible, match="registered with partitioning Path"):
        partitioned.register(Request(accepted=frozenset({Acceptance.POSITION_MISSING})))


def test_objects_without_a_partition_field_are_counted(table_sink: TableSink) -> None:
    table_sink.options["partitioning"] = TablePartitioning.PATH
    table_sink.partition_by(type="Time", pathFormat="'offset='YYYY", duration="1d", timezone="UTC")
    table_sink.write(20)
    assert table_sink.register().without_partition == {"offset": 2}
    assert [each.name for each in table_sink.table().spec().fields] == []


# -- branches ------------------------------------------------------------------------------------------------------


def fast_forward(sink: TableSink, branch: str, to: str) -> None:
    """Another program moves a branch to the head of another one."""
    refs = sink.table().metadata.refs
    update = SetSnapshotRefUpdate.model_validate(
        {"ref-name": branch, "type": "branch", "snapshot-id": refs[to].snapshot_id}
    )
    sink.iceberg.commit_table(sink.table(), (), (update,))


@pytest.fixture
def audited(table_sink: TableSink) -> TableSink:
    """20 records on main, and 20 more on the branch audit."""
    table_sink.write(20)
    table_sink.register()
    table_sink.options["branch"] = "audit"
    table_sink.write(40)
    table_sink.register(CONTINUE)
    return table_sink


def test_a_new_branch_begins_at_the_head_of_main_which_stays(audited: TableSink) -> None:
    assert audited.files() == list(audited.objects())
    audited.options["branch"] = "main"
    assert audited.files() == list(audited.objects())[:2]


def test_a_new_branch_requires_the_head_of_main_and_that_it_does_not_exist(table_sink: TableSink) -> None:
    table_sink.write(20)
    table_sink.register()
    table_sink.options["branch"] = "audit"
    table_sink.write(40)
    sent: list[Any] = []
    commit: Callable[..., None] = table_sink.catalog.commit

    def keep(table: Any, requirements: Any, updates: Any) -> None:
        sent.extend(each for each in requirements if isinstance(each, AssertRefSnapshotId))
        commit(table, requirements, updates)

    table_sink.catalog.commit = keep  # type: ignore[method-assign]
    main = table_sink.table().metadata.current_snapshot_id
    table_sink.register(CONTINUE)
    assert [(each.ref, each.snapshot_id) for each in sent] == [("audit", None), ("main", main)]


def test_a_new_table_can_have_its_objects_on_a_branch_alone(table_sink: TableSink) -> None:
    table_sink.options["branch"] = "audit"
    for records in (20, 40):
        table_sink.write(records)
        table_sink.register()
    assert table_sink.files() == list(table_sink.objects())
    assert table_sink.table().current_snapshot() is None


def test_a_branch_continues_after_main_was_fast_forwarded_to_it(audited: TableSink) -> None:
    fast_forward(audited, "main", "audit")
    audited.write(60)
    assert audited.register(CONTINUE).objects == 2
    assert audited.files() == list(audited.objects())
    audited.options["branch"] = "main"
    assert audited.files() == list(audited.objects())[:4]


def test_main_continues_at_the_position_of_a_branch_to_which_it_was_fast_forwarded(audited: TableSink) -> None:
    audited.options["branch"] = "main"
    audited.write(60)
    with pytest.raises(TableRolledBack, match="Fast-forward main to audit"):
        audited.register(CONTINUE)
    fast_forward(audited, "main", "audit")
    audited.register(CONTINUE)
    assert audited.files() == list(audited.objects())


def test_a_branch_that_was_dropped_stops_the_registration_also_after_its_snapshots_expired(audited: TableSink) -> None:
    audited.write(60)
    with audited.table().manage_snapshots() as snapshots:
        snapshots.remove_branch("audit")
    with pytest.raises(TableRolledBack):
        audited.register(CONTINUE)
    table = audited.table()
    lost = [each.snapshot_id for each in table.snapshots() if each.snapshot_id != table.metadata.current_snapshot_id]
    table.maintenance.expire_snapshots().by_ids(lost).commit()
    assert len(audited.table().snapshots()) == 1
    with pytest.raises(TableRolledBack):
        audited.register(CONTINUE)


def test_a_rollback_is_accepted_for_one_branch(audited: TableSink) -> None:
    """Other branches may lack more."""
    accepted = Request(accepted=frozenset({Acceptance.ROLLED_BACK}))
    audited.options["branch"] = "main"
    assert audited.register(accepted).objects == 0
    assert audited.register(CONTINUE).objects == 0
    table = audited.table()
    with table.manage_snapshots() as snapshots:
        snapshots.create_branch(table.snapshots()[0].snapshot_id, "other")
    audited.options["branch"] = "other"
    with pytest.raises(TableRolledBack):
        audited.register(CONTINUE)
