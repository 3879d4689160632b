"""Catalogs of tables: load, stage, commit. PyIceberg speaks to them.

A commit is sent once. Its outcome is one of three: done, `CommitRejected` (the catalog has not applied it), or
`CommitUnknown` (it may have been applied, and may be applied later).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol, TypeVar

import requests
from pydantic import ValidationError
from pyiceberg.catalog import Catalog, MetastoreCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    ForbiddenError,
    NoSuchTableError,
    RESTError,
    TableAlreadyExistsError,
    UnauthorizedError,
)
from pyiceberg.schema import Schema
from pyiceberg.table import CreateTableTransaction, StagedTable, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import SetPropertiesUpdate, TableRequirement, TableUpdate
from pyiceberg.typedef import EMPTY_DICT
from pyiceberg.types import LongType, NestedField

from sink_job.api.enums import CatalogType
from sink_job.api.errors import AccessDenied, ConfigurationError, SinkError, TransientError
from sink_job.api.sections.tables_section import CatalogSpec
from sink_job.tables.catalog.access import SECTION, CatalogAccess, CommitNotSent
from sink_job.tables.catalog.rest import SinkRestCatalog
from sink_job.tables.catalog.untrusted import delete_all, old_metadata_files
from sink_job.tables.file_io import ClientOf, SinkFileIO, file_properties

CATALOG_NAME: Final = "default"
"""The name of a catalog in a SQL database, which other clients have to use, too."""
_PLACEHOLDER: Final = Schema(NestedField(1, "placeholder", LongType(), required=False))
"""A catalog assigns ids of its own to the columns of a new table. The first commit replaces them."""

_MAX_TEXT: Final = 300
"""Characters of the answer of a service that an error contains."""
_STATUS: Final = re.compile(r"RESTError (4\d\d):")
_REPEATED: Final = ("408", "425", "429")
"""HTTP status of requests that may be sent again."""

_log = logging.getLogger(__name__)
_C = TypeVar("_C", bound=Catalog)


class CommitRejected(Exception):
    """The catalog has not applied a commit: the table is not as the commit requires."""


class CommitUnknown(Exception):
    """The catalog may have applied a commit, or may apply it later."""


class TableCatalog(Protocol):
    """A catalog. Names of tables are `namespace.name`."""

    def load(self, name: str) -> Table | None:
        """The table; None if it does not exist. Raises ConfigurationError and TransientError."""
        ...

    def stage(self, name: str, properties: Mapping[str, str]) -> StagedTable:
        """A table that does not exist yet, with the location where it will be. Creates its namespace. Raises
        ConfigurationError and TransientError."""
        ...

    def commit(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> None:
        """One request. Raises CommitRejected, CommitUnknown, and if it was not sent ConfigurationError or
        CommitNotSent."""
        ...


class IcebergCatalog:
    """A catalog of PyIceberg."""

    def __init__(
        self, catalog: Catalog, label: str, known: Callable[[Exception], SinkError | None] = lambda error: None
    ) -> None:
        """`label` names the catalog in messages, `known` is what an error of its client means."""
        self._catalog = catalog
        self._label = label
        self._known = known

    def load(self, name: str) -> Table | None:
        try:
            return self._catalog.load_table(name)
        except NoSuchTableError:
            return None
        except Exception as error:
            raise self._failure(error) from error

    def stage(self, name: str, properties: Mapping[str, str]) -> StagedTable:
        try:
            self._create_namespace(name.rpartition(".")[0])
            transaction: CreateTableTransaction = self._catalog.create_table_transaction(
                name, _PLACEHOLDER, properties=dict(properties)
            )
        except Exception as error:
            raise self._failure(error) from error
        staged = transaction._table
        assert isinstance(staged, StagedTable), "a transaction that creates a table has a staged one"
        return staged

    def _create_namespace(self, namespace: str) -> None:
        try:
            self._catalog.create_namespace_if_not_exists(namespace)
        except Exception:  # another registration has created it meanwhile
            if not self._catalog.namespace_exists(namespace):
                raise

    def commit(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> None:
        try:
            done = self._catalog.commit_table(table, requirements, updates)
        except (CommitFailedException, TableAlreadyExistsError, NoSuchTableError) as error:
            raise CommitRejected(str(error)) from error
        except (ForbiddenError, UnauthorizedError) as error:
            raise self._failure(error) from error
        except (ConfigurationError, CommitNotSent):  # of the login or the store: the commit was not sent
            raise
        except Exception as error:
            known = self._known(error)
            if isinstance(known, ConfigurationError):
                raise self._failure(error) from error
            raise CommitUnknown(f"{type(error).__name__}: {error}") from error
        if not _is_applied(done.metadata, updates):
            raise CommitUnknown("the catalog has answered with a table that does not have the commit")
        if isinstance(self._catalog, MetastoreCatalog):  # the server of a REST catalog does it itself
            self._delete_old_metadata(table, done.metadata)

    def _delete_old_metadata(self, table: Table, after: TableMetadata) -> None:
        """Deletes the metadata files that the table does not list any more, if its properties ask for that."""
        try:
            delete_all(table.io, old_metadata_files(table.location(), table.metadata, after))
        except Exception as error:
            _log.warning("old metadata files of %s stay: %s", ".".join(table.name()), error)

    def _failure(self, error: Exception) -> SinkError:
        if isinstance(error, SinkError):  # of the store of the table's metadata
            return error
        text = f"the catalog {self._label} has not answered: {type(error).__name__}: {error}"
        known = self._known(error)
        if known is not None:
            return type(known)(f"the catalog {self._label}: {known}")
        if isinstance(error, (ForbiddenError, UnauthorizedError)):
            return AccessDenied(f"the catalog {self._label} does not allow the request: {error}")
        return TransientError(text)


def open_catalog(spec: CatalogSpec, client_of: ClientOf, access: CatalogAccess | None = None) -> IcebergCatalog:
    """The catalog of a manifest. `client_of` reads and writes the metadata of its tables, `access` is how the catalog
    is reached. Raises ConfigurationError and TransientError."""
    properties = file_properties(client_of)
    if spec.uri is not None:
        properties["uri"] = spec.uri
    if spec.warehouse is not None:
        properties["warehouse"] = spec.warehouse
    label = f"{spec.type} at {spec.uri or spec.region}"
    try:
        return _opened(spec, properties, access or CatalogAccess(), label)
    except SinkError:
        raise
    except (ForbiddenError, UnauthorizedError) as error:
        raise AccessDenied(f"the catalog {label} does not allow the request: {error}{_advice(spec)}") from error
    except requests.exceptions.SSLError as error:
        raise ConfigurationError(
            f"the certificate of the catalog {label} is not trusted: set its certificate authority in "
            f"{SECTION}.caSecret ({error})"
        ) from error
    except (RESTError, ValidationError) as error:
        raise _other_service(label, error) from error
    except Exception as error:
        raise TransientError(f"the catalog {label} cannot be opened: {type(error).__name__}: {error}") from error


def _other_service(label: str, error: Exception) -> SinkError:
    """What it means that a REST catalog has not answered as one."""
    text = f"{type(error).__name__}: {error}"
    text = f"the catalog {label} cannot be opened: {text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + '…'}"
    status = _STATUS.match(str(error))
    if isinstance(error, RESTError) and (status is None or status[1] in _REPEATED):
        return TransientError(text)
    return ConfigurationError(f"{text}. Check {SECTION}.uri: another service answers at this address")


def _opened(spec: CatalogSpec, properties: Mapping[str, str], access: CatalogAccess, label: str) -> IcebergCatalog:
    if spec.type is CatalogType.SQL:
        file = Path(properties["uri"].removeprefix("sqlite:///"))
        if not file.parent.is_dir():
            raise ConfigurationError(f"the folder {file.parent} does not exist: create it, or fix {SECTION}.uri")
        if access.creates_nothing and not file.exists():
            properties = {**properties, "uri": "sqlite:///:memory:"}
        return IcebergCatalog(_with_own_files(_sql_catalog(properties), properties), label)
    if spec.type is CatalogType.GLUE:
        from sink_job.tables.catalog import glue  # only here: it loads boto3

        opened = glue.open_glue(CATALOG_NAME, spec, access, properties)
        return IcebergCatalog(_with_own_files(opened, properties), label, glue.aws_error)
    if spec.type is CatalogType.HIVE:
        from sink_job.tables.catalog.hive import SinkHiveCatalog  # only here: it loads Thrift
        from sink_job.tables.catalog.metastore import Metastore, metastore_error

        hive = SinkHiveCatalog(CATALOG_NAME, Metastore(properties["uri"], access), properties)
        return IcebergCatalog(_with_own_files(hive, properties), label, metastore_error)
    return IcebergCatalog(_with_own_files(SinkRestCatalog(CATALOG_NAME, access, properties), properties), label)


def _is_applied(after: TableMetadata, updates: tuple[TableUpdate, ...]) -> bool:
    """Whether a table has the properties that a commit sets, one of which is the position."""
    properties = [each.updates for each in updates if isinstance(each, SetPropertiesUpdate)]
    return all(after.properties.get(name) == value for given in properties for name, value in given.items())


def _with_own_files(catalog: _C, properties: Mapping[str, str]) -> _C:
    """The catalog, which reads and writes the files of all tables with the client of `properties`. PyIceberg would load
    the class that the properties of a table, or the configuration of a server, name as `py-io-impl`."""
    given = dict(properties)

    def own(properties: Mapping[str, str] = EMPTY_DICT, location: str | None = None) -> SinkFileIO:
        return SinkFileIO(given)

    vars(catalog)["_load_file_io"] = own
    return catalog


def _sql_catalog(properties: Mapping[str, str]) -> SqlCatalog:
    """The catalog in a database, whose tables another process may create at the same time."""
    try:
        return SqlCatalog(CATALOG_NAME, **properties)
    except Exception:
        return SqlCatalog(CATALOG_NAME, **properties)


def _advice(spec: CatalogSpec) -> str:
    where = f"{SECTION}.credentials"
    return f". Set {where}" if spec.credentials is None else f". Fix the Secret of {where}, or the grants of its client"
