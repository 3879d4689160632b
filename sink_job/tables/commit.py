"""One commit: files, position and, where they change, columns, on the condition that the table is as it was loaded.

PyIceberg's own transaction repeats a rejected commit with the same files on the new head, so that they are in the table
twice. So its producer makes the snapshot, and the catalog gets the commit once. The producer is no public API:
`tests/unit/tables/test_commit.py` fails if it changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import CreateTableTransaction, StagedTable, Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.update import (
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    AssertCreate,
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveSnapshotsUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSpecUpdate,
    SetPropertiesUpdate,
    TableRequirement,
    TableUpdate,
)

from sink_job.api.enums import TablePartitioning
from sink_job.api.errors import TableIncompatible, TransientError
from sink_job.tables.append import AppendBySpec
from sink_job.tables.catalogs import TableCatalog
from sink_job.tables.missing.skipped import NOTHING, Skipped
from sink_job.tables.position import TablePosition, as_text, position_property

LAST_ADDED: Final = -1
"""The id of the schema that the same commit adds."""


@dataclass(frozen=True)
class TableChange:
    """What a commit changes. `schema` are the columns of the table after it; `record` and `generation` are those of the
    new position; `summary` is for people. `files` have the ids of their partition specs. `specs` are those that the
    commit adds, and `default_spec` is the id of the default spec after it. `partitioning` is that of the objects.
    `expired` are ids of snapshots that are removed from the metadata, and `properties` are set. `same_columns`: the
    commit requires the columns that were loaded also if it changes none: files have them by name. `skipped` are the
    objects up to `record` that the table lacks, and `claim` is the attempt of the newest claim up to it. Without files
    the commit adds an empty snapshot: it moves the head, too, so of any number of commits at most one takes effect for
    a position."""

    sink_id: str
    ledger: str
    generation: int
    record: int
    schema: Schema
    files: Sequence[DataFile]
    summary: Mapping[str, str]
    branch: str = MAIN_BRANCH
    specs: Sequence[PartitionSpec] = ()
    default_spec: int | None = None
    partitioning: TablePartitioning = TablePartitioning.NONE
    expired: Sequence[int] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    same_columns: bool = False
    skipped: Skipped = NOTHING
    claim: str = ""


class _OneMetadata(Transaction):
    """A transaction whose metadata is made once for its updates. PyIceberg makes it at each use, a dozen times in a
    commit, and copies all snapshots each time."""

    _made: tuple[int, TableMetadata] | None = None

    @property
    def table_metadata(self) -> TableMetadata:
        count = len(self._updates)
        if self._made is None or self._made[0] != count:
            self._made = (count, super().table_metadata if count else self._table.metadata)
        return self._made[1]


class _NewTable(_OneMetadata, CreateTableTransaction):
    """One for a table that does not exist yet."""


def with_schema(staged: StagedTable, schema: Schema, spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC) -> StagedTable:
    """The table that is to be created, with these columns and their ids, and this partition spec."""
    columns = schema.model_copy(update={"schema_id": staged.metadata.current_schema_id})
    metadata = staged.metadata.model_copy(
        update={
            "schemas": [columns],
            "last_column_id": schema.highest_field_id,
            "partition_specs": [spec],
            "default_spec_id": spec.spec_id,
            "last_partition_id": spec.last_assigned_field_id,
        }
    )
    return StagedTable(staged.name(), metadata, staged.metadata_location, staged.io, staged.catalog, staged.config)


def commit(catalog: TableCatalog, table: Table, change: TableChange) -> TablePosition:
    """Sends one commit; `table` is as it was loaded, or staged with the columns of `change` (`with_schema`). Returns
    the new position.

    Raises CommitRejected, CommitUnknown, ConfigurationError, and TransientError if the files of the snapshot could not
    be written, or TableIncompatible for a property that cannot be read: nothing was sent then.
    """
    transaction, required = _transaction(table, change)
    try:
        producer = AppendBySpec(transaction, table, change.branch)
    except ValueError as error:
        raise _unusable(table, error) from error
    position = TablePosition(
        change.ledger,
        change.generation,
        change.record,
        producer.snapshot_id,
        producer.sequence_number,
        change.branch,
        change.partitioning,
        change.skipped if change.skipped.objects else None,
        change.claim,
    )
    producer.snapshot_properties = {**change.summary, position_property(change.sink_id): as_text(position)}
    for file in change.files:
        producer.append_data_file(file)
    try:
        updates, heads = producer.produced()
    except OSError as error:
        raise TransientError(f"the metadata of table {'.'.join(table.name())} cannot be written: {error}") from error
    except ValueError as error:
        raise _unusable(table, error) from error
    catalog.commit(
        table,
        (*required, *(() if isinstance(table, StagedTable) else heads), *_refs(table, change)),
        (
            *transaction._updates,
            *updates,
            *([RemoveSnapshotsUpdate.model_validate({"snapshot-ids": [*change.expired]})] if change.expired else ()),
            SetPropertiesUpdate(updates={**change.properties, position_property(change.sink_id): as_text(position)}),
        ),
    )
    return position


def _refs(table: Table, change: TableChange) -> list[AssertRefSnapshotId]:
    """With snapshots that expire, all branches and tags have to be as they were loaded: one that was set to such a
    snapshot meanwhile would be removed with it."""
    others = table.metadata.refs.items() if change.expired else ()
    given = [{"ref": name, "snapshot-id": ref.snapshot_id} for name, ref in others if name != change.branch]
    return [AssertRefSnapshotId.model_validate(each) for each in given]


def _unusable(table: Table, error: ValueError) -> TableIncompatible:
    """PyIceberg raises ValueError for properties of the table that it cannot read."""
    return TableIncompatible(f"the metadata of table {'.'.join(table.name())} cannot be made: {error}")


def _transaction(table: Table, change: TableChange) -> tuple[Transaction, tuple[TableRequirement, ...]]:
    """A transaction with the change of columns and partition specs, which is never committed, and what the table has to
    be."""
    if isinstance(table, StagedTable):
        created = _NewTable(table)
        others = [each for each in change.specs if each.spec_id != table.metadata.default_spec_id]
        if others:
            created._apply(tuple(AddPartitionSpecUpdate(spec=each) for each in others))
        return created, (AssertCreate(),)
    transaction, metadata = _OneMetadata(table), table.metadata
    required: list[Any] = [
        AssertTableUUID(uuid=metadata.table_uuid),
        AssertDefaultSpecId.model_validate({"default-spec-id": metadata.default_spec_id}),
    ]
    columns, specs = _schema_updates(metadata, change.schema), _spec_updates(metadata, change)
    if columns or change.same_columns:
        required.append(AssertCurrentSchemaId.model_validate({"current-schema-id": metadata.current_schema_id}))
    if columns:
        required.append(AssertLastAssignedFieldId.model_validate({"last-assigned-field-id": metadata.last_column_id}))
    if change.specs:
        last = metadata.last_partition_id
        required.append(AssertLastAssignedPartitionId.model_validate({"last-assigned-partition-id": last}))
    if columns or specs:
        transaction._apply((*columns, *specs))
    return transaction, tuple(required)


def _spec_updates(table: TableMetadata, change: TableChange) -> tuple[TableUpdate, ...]:
    added = tuple(AddPartitionSpecUpdate(spec=each) for each in change.specs)
    if change.default_spec in (None, table.default_spec_id):
        return added
    return (*added, SetDefaultSpecUpdate.model_validate({"spec-id": change.default_spec}))


def _schema_updates(table: TableMetadata, schema: Schema) -> tuple[TableUpdate, ...]:
    if schema.fields == table.schema().fields:
        return ()
    same = [each.schema_id for each in table.schemas if each.fields == schema.fields]
    if same:
        return (_current_schema(same[0]),)
    number = max(each.schema_id for each in table.schemas) + 1
    added = schema.model_copy(update={"schema_id": number})
    return (AddSchemaUpdate(schema=added), _current_schema(LAST_ADDED))


def _current_schema(number: int) -> SetCurrentSchemaUpdate:
    return SetCurrentSchemaUpdate.model_validate({"schema-id": number})
