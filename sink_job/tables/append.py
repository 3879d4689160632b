"""PyIceberg's producer of a snapshot that adds files, with a manifest for each partition spec.

The one of PyIceberg 0.12 writes all files with the default spec, and begins a new branch without files. Manifests are
merged when there are many, unless the properties of the table say otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Final

from pyiceberg.manifest import DataFile, ManifestEntry, ManifestEntryStatus, ManifestFile
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table import Table, TableProperties, Transaction
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation, SnapshotSummaryCollector, Summary, update_snapshot_summaries
from pyiceberg.table.update import AssertRefSnapshotId, TableRequirement, TableUpdate
from pyiceberg.table.update.snapshot import _MergeAppendFiles
from pyiceberg.typedef import EMPTY_DICT
from pyiceberg.utils.properties import property_as_bool

from sink_job.tables.plan import head_of

MERGED_BYTES: Final = 1 << 20
"""Maximum size of a manifest that is merged from others. With 8 MiB, Iceberg's default, a merge takes 290 MiB."""


def added_by(table: Table, branch: str) -> Collection[int]:
    """The ids of the snapshots that have added the present manifests of a branch. Reads the list of manifests."""
    head = head_of(table.metadata, branch)
    snapshot = None if head is None else table.snapshot_by_id(head)
    return () if snapshot is None else {each.added_snapshot_id or 0 for each in snapshot.manifests(table.io)}


class AppendBySpec(_MergeAppendFiles):
    """Adds files to a branch. Each has the `spec_id` of its partition. A branch that does not exist yet begins at the
    head of main."""

    def __init__(self, transaction: Transaction, table: Table, branch: str) -> None:
        super().__init__(Operation.APPEND, transaction, table.io, branch=branch)
        self._target_size_bytes = min(self._target_size_bytes, MERGED_BYTES)
        self._merge_enabled = property_as_bool(table.properties, TableProperties.MANIFEST_MERGE_ENABLED, True)
        refs = transaction.table_metadata.refs
        self._begins_at = refs[MAIN_BRANCH].snapshot_id if branch not in refs and MAIN_BRANCH in refs else None
        if self._begins_at is not None:
            self._parent_snapshot_id = self._begins_at

    @property
    def sequence_number(self) -> int:
        """The sequence number of the snapshot."""
        return self._transaction.table_metadata.next_sequence_number()

    def produced(self) -> tuple[tuple[TableUpdate, ...], tuple[TableRequirement, ...]]:
        """Writes the manifests. Returns the updates, and the heads that the branch, and for a new one main, must
        have."""
        updates, heads = self._commit()
        begins_at = self._begins_at
        main = (
            ()
            if begins_at is None
            else (AssertRefSnapshotId.model_validate({"snapshot-id": begins_at, "ref": MAIN_BRANCH}),)
        )
        return updates, (*heads, *main)

    def _manifests(self) -> list[ManifestFile]:
        by_spec: dict[int, list[DataFile]] = defaultdict(list)
        for file in self._added_data_files:
            by_spec[file.spec_id].append(file)
        added = [self._written(self.spec(number), files) for number, files in by_spec.items()]
        return self._process_manifests([*added, *self._existing_manifests()])

    def _written(self, spec: PartitionSpec, files: list[DataFile]) -> ManifestFile:
        with self.new_manifest_writer(spec) as writer:
            for file in files:
                writer.add(
                    ManifestEntry.from_args(
                        status=ManifestEntryStatus.ADDED,
                        snapshot_id=self._snapshot_id,
                        sequence_number=None,
                        file_sequence_number=None,
                        data_file=file,
                    )
                )
        return writer.to_manifest_file()

    def _summary(self, snapshot_properties: Mapping[str, str] = EMPTY_DICT) -> Summary:
        """Without numbers of partitions: files have several specs."""
        metadata = self._transaction.table_metadata
        collector = SnapshotSummaryCollector()
        for file in self._added_data_files:
            collector.metrics.add_file(file)
        parent = None if self._parent_snapshot_id is None else metadata.snapshot_by_id(self._parent_snapshot_id)
        return update_snapshot_summaries(
            summary=Summary(operation=self._operation, **collector.build(), **snapshot_properties),
            previous_summary=None if parent is None else parent.summary,
        )
