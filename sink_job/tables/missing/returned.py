"""Finds the objects that a table lacks since they were skipped, so that those that exist again can be added.

They must be the same objects for certain: any other one that the present files lack may be in a table in another form,
such as after a compaction, and would be in it twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyiceberg.table import Table

from sink_job.api.errors import TableNotRegistered
from sink_job.ledger.state import ClosedObject
from sink_job.tables.audit import canonical
from sink_job.tables.missing.skipped import SkippedObjects
from sink_job.tables.plan import head_of


def skipped_objects(
    table: Table, branch: str, objects: Iterable[ClosedObject], skipped: SkippedObjects, bucket: str
) -> list[ClosedObject]:
    """The skipped ones of `objects`, which are all up to the position, in their order. Reads the manifests of the
    branch. Raises TableNotRegistered if it is not certain which these are."""
    paths = set(_paths(table, branch))
    found = skipped.among(o for o in objects if f"s3://{bucket}/{o.key}" not in paths)
    if found is None:
        raise TableNotRegistered(
            f"{skipped.total.objects:,} objects were skipped, and it is not certain which of those that the table "
            "lacks they are: its files were changed by a compaction, a rollback or another writer. Register without "
            "--from-beginning, which adds what is new; for the others use another name in spec.tables"
        )
    return found


def _paths(table: Table, branch: str) -> Iterator[str]:
    """The live files of a branch."""
    head = head_of(table.metadata, branch)
    snapshot = None if head is None else table.snapshot_by_id(head)
    for manifest in () if snapshot is None else snapshot.manifests(table.io):
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            yield canonical(entry.data_file.file_path)
