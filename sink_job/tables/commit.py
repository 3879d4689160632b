"""One commit: files, position and, where they change, columns, on the condition that the table is as it was loaded.

PyIceberg's own transaction repeats a rejected commit with the same files on the new head, so that they are in the table
twice. So its producer makes the snapshot, and the catalog gets the commit once. The producer is no public API:
`tests/unit/tables/test_commit.py` fails if it changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.table import CreateTableTransaction, StagedTable, Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AssertCreate,
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertTableUUID,
    SetCurrentSchemaUpdate,
    SetPropertiesUpdate,
    TableRequirement,
    TableUpdate,
)
from pyiceberg.table.update.snapshot import _FastAppendFiles

from sink_job.api.errors import TransientError
from sink_job.tables.catalogs import TableCatalog
from sink_job.tables.position import TablePosition, as_text, position_property

LAST_ADDED: Final = -1
"""The id of the schema that the same commit adds."""


@dataclass(frozen=True)
class TableChange:
    """What a commit changes. `schema` are the columns of the table after it; `record` and `generation` are those of the
    new position; `summary` is for people."""

    sink_id: str
    ledger: str
    generation: int
    record: int
    schema: Schema
    files: Sequence[DataFile]
    summary: Mapping[str, str]


def with_schema(staged: StagedTable, schema: Schema) -> StagedTable:
    """The table that is to be created, with these columns and their ids."""
    columns = schema.model_copy(update={"schema_id": staged.metadata.current_schema_id})
    metadata = staged.metadata.model_copy(update={"schemas": [columns], "last_column_id": schema.highest_field_id})
    return StagedTable(staged.name(), metadata, staged.metadata_location, staged.io, staged.catalog, staged.config)


def commit(catalog: TableCatalog, table: Table, change: TableChange) -> TablePosition:
    """Sends one commit; `table` is as it was loaded, or staged with the columns of `change` (`with_schema`). Returns
    the new position.

    Raises CommitRejected, CommitUnknown, ConfigurationError, and TransientError if the files of the snapshot could not
    be written: nothing was sent then.
    """
    transaction, required = _transaction(table, change.schema)
    producer = _FastAppendFiles(Operation.APPEND, transaction, table.io)
    position = TablePosition(change.ledger, change.generation, change.record, producer.snapshot_id)
    producer.snapshot_properties = {**change.summary, position_property(change.sink_id): as_text(position)}
    for file in change.files:
        producer.append_data_file(file)
    try:
        updates, heads = producer._commit()
    except OSError as error:
        raise TransientError(f"the metadata of table {'.'.join(table.name())} cannot be written: {error}") from error
    catalog.commit(
        table,
        (*required, *(() if isinstance(table, StagedTable) else heads)),
        (
            *transaction._updates,
            *updates,
            SetPropertiesUpdate(updates={position_property(change.sink_id): as_text(position)}),
        ),
    )
    return position


def _transaction(table: Table, schema: Schema) -> tuple[Transaction, tuple[TableRequirement, ...]]:
    """A transaction with the change of the columns, which is never committed, and what the table has to be."""
    if isinstance(table, StagedTable):
        return CreateTableTransaction(table), (AssertCreate(),)
    transaction, metadata = Transaction(table), table.metadata
    required: list[Any] = [
        AssertTableUUID(uuid=metadata.table_uuid),
        AssertDefaultSpecId.model_validate({"default-spec-id": metadata.default_spec_id}),
    ]
    updates = _schema_updates(metadata, schema)
    if updates:
        transaction._apply(updates)
        required += [
            AssertCurrentSchemaId.model_validate({"current-schema-id": metadata.current_schema_id}),
            AssertLastAssignedFieldId.model_validate({"last-assigned-field-id": metadata.last_column_id}),
        ]
    return transaction, tuple(required)


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
