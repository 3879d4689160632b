"""Tables of Iceberg in Hive's metastore: PyIceberg's catalog with the connections and the commit of a sink.

PyIceberg replaces a table without a condition. Here, a commit is one `alter_table` that requires the location of the
metadata from which it was made, so the metastore rejects it if anything was committed since, also if it arrives late. A
new table is one `create_table`, which the metastore rejects if the table exists.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from hive_metastore.ttypes import (
    AlreadyExistsException,
    Database,
    GetTableRequest,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
)
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.table import CommitTableResponse, StagedTable, Table
from pyiceberg.table.update import TableRequirement, TableUpdate
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties

from sink_job.api.errors import ConfigurationError
from sink_job.tables.catalog import hive_lock
from sink_job.tables.catalog.access import SECTION
from sink_job.tables.catalog.hive_condition import condition, require_conditions
from sink_job.tables.catalog.hive_table import changed_table, location_in, new_table, with_columns_of
from sink_job.tables.catalog.metastore import Metastore, message_of
from sink_job.tables.file_io import SCHEMES

LOCKS: Final = "engine.hive.lock-enabled"
"""The property of a table whose clients use no locks, but all the condition."""
_CHANGED: Final = "has been modified"
_COLUMNS: Final = "incompatible with the existing columns"
"""Unless `hive.metastore.disallow.incompatible.col.type.changes` is false, a nested column must not change."""

_log = logging.getLogger(__name__)


class SinkHiveCatalog(HiveCatalog):
    """A metastore. The methods that a sink uses have the connections of `Metastore`."""

    def __init__(self, name: str, metastore: Metastore, properties: Mapping[str, str]) -> None:
        """Sends no request."""
        super().__init__(name, **properties)
        self._metastore = metastore

    def load_table(self, identifier: str | Identifier) -> Table:
        """Raises TableIncompatible for a table that is not Iceberg's, NoSuchTableError and the errors of Thrift."""
        database, name = self.identifier_to_database_and_table(identifier, NoSuchTableError)
        with self._metastore.client() as client:
            found = _table(client, database, name)
        location_in(found)
        return self._convert_hive_into_iceberg(found)

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """One request that changes the table as it was loaded, or creates it. Raises CommitFailedException and
        TableAlreadyExistsError if it was rejected, ConfigurationError and CommitNotSent if it was not sent, and the
        errors of Thrift if its outcome is not known."""
        database, name = self.identifier_to_database_and_table(table.name(), NoSuchTableError)
        require_conditions(self._metastore, database)
        before = None if isinstance(table, StagedTable) else table
        staged = self._update_and_stage_table(before, table.name(), requirements, updates)
        self._write_metadata(staged.metadata, staged.io, staged.metadata_location)
        if before is None:
            self._create(database, name, staged)
        else:
            self._replace(database, name, before, staged)
        given = {"metadata": staged.metadata, "metadata-location": staged.metadata_location}
        return CommitTableResponse.model_validate(given)

    def create_namespace(self, namespace: str | Identifier, properties: Properties = EMPTY_DICT) -> None:
        """A database. With a warehouse its location is there."""
        name = self.identifier_to_database(namespace)
        warehouse = self.properties.get("warehouse")
        location = None if warehouse is None else f"{warehouse.rstrip('/')}/{name}.db"
        with self._metastore.client() as client:
            try:
                client.create_database(Database(name=name, locationUri=location, parameters=dict(properties)))
            except AlreadyExistsException as error:
                raise NamespaceAlreadyExistsError(f"the database {name} exists") from error

    def load_namespace_properties(self, namespace: str | Identifier) -> Properties:
        name = self.identifier_to_database(namespace, NoSuchNamespaceError)
        with self._metastore.client() as client:
            try:
                found = client.get_database(name)
            except NoSuchObjectException as error:
                raise NoSuchNamespaceError(f"there is no database {name}") from error
        return {**(found.parameters or {}), "location": found.locationUri or ""}

    def _get_default_warehouse_location(self, database_name: str, table_name: str) -> str:
        """In the folder of the database if that is in a bucket, otherwise in the warehouse."""
        location = self.load_namespace_properties(database_name)["location"].rstrip("/")
        if location.partition("://")[0] in SCHEMES:
            return f"{location}/{table_name}"
        warehouse = self.properties.get("warehouse")
        if warehouse is None:
            raise ConfigurationError(
                f"the location of the database {database_name}, {location[:300]!r}, is not in a bucket of S3: set "
                f"{SECTION}.warehouse"
            )
        return f"{warehouse.rstrip('/')}/{database_name}.db/{table_name}"

    def _create(self, database: str, name: str, staged: StagedTable) -> None:
        table = new_table(database, name, staged.metadata, staged.metadata_location)
        with self._metastore.client() as client:
            try:
                client.create_table(table)
            except AlreadyExistsException as error:
                raise TableAlreadyExistsError(f"the table {database}.{name} exists") from error

    def _replace(self, database: str, name: str, table: Table, staged: StagedTable) -> None:
        with self._metastore.client() as client, self._locked(client, database, name, table) as check:
            found = _table(client, database, name)
            if location_in(found) != table.metadata_location:
                raise CommitFailedException(f"the table {database}.{name} has changed since it was loaded")
            changed = changed_table(found, table.metadata, staged.metadata, staged.metadata_location)
            try:
                check()
                _alter(client, changed, table.metadata_location)
            except _ColumnsRejected as error:
                _log.info("%s.%s keeps its columns in the metastore: %s", database, name, error)
                check()
                _alter(client, with_columns_of(changed, found), table.metadata_location)

    @contextmanager
    def _locked(self, client: Any, database: str, name: str, table: Table) -> Iterator[Any]:
        if table.properties.get(LOCKS, "true").lower() == "false":
            yield lambda: None
            return
        with hive_lock.TableLock(self._metastore, database, name, hive_lock.WAIT_S).held(client) as check:
            yield check


class _ColumnsRejected(CommitFailedException):
    """The metastore does not accept the changed columns, and has changed nothing."""


def _alter(client: Any, table: Any, location: str) -> None:
    """Replaces a table whose metadata is at `location`. Raises CommitFailedException if the metastore has rejected it,
    and the errors of Thrift."""
    try:
        client.alter_table_with_environment_context(table.dbName, table.tableName, table, condition(location))
    except InvalidOperationException as error:
        kind = _ColumnsRejected if _COLUMNS in message_of(error) else CommitFailedException
        raise kind(message_of(error)) from error
    except MetaException as error:
        if _CHANGED in message_of(error):
            raise CommitFailedException(message_of(error)) from error
        raise


def _table(client: Any, database: str, name: str) -> Any:
    """The metastore's table, under the name that was asked for. `get_table` does not exist in Hive 4."""
    try:
        found = client.get_table_req(GetTableRequest(database, name)).table
    except NoSuchObjectException as error:
        raise NoSuchTableError(f"there is no table {database}.{name}") from error
    found.dbName, found.tableName = database, name  # a change with another name would rename it
    return found
