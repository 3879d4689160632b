"""Whether a metastore checks the condition of a commit.

A metastore without HIVE-26882 ignores the condition, without an error. So before the first commit to it, a view of
s3sink's own is changed with a condition that does not hold, which has to fail, and then with one that does, which has
to succeed. A view has no folder, and no other program uses it.
"""

from __future__ import annotations

import logging
import threading
import uuid
from copy import copy
from typing import Any, Final

from hive_metastore.ttypes import (
    EnvironmentContext,
    FieldSchema,
    GetTableRequest,
    InvalidOperationException,
    MetaException,
    SerDeInfo,
    StorageDescriptor,
)
from hive_metastore.ttypes import Table as HiveTable
from thrift.Thrift import TException
from thrift.transport.TTransport import TTransportException

from sink_job.api.errors import ConfigurationError
from sink_job.tables.catalog.access import CommitNotSent
from sink_job.tables.catalog.hive_table import LOCATION
from sink_job.tables.catalog.metastore import Metastore, message_of, metastore_error

PROBE: Final = "s3sink_probe_"
"""The beginning of the names of views."""
_VERSIONS: Final = "Hive 2.3.10, or 4.0.1 or later"

_log = logging.getLogger(__name__)
_checked: Final[set[str]] = set()
"""The URIs of the metastores that check conditions."""
_lock: Final = threading.Lock()


def condition(location: str) -> Any:
    """The context of a change of a table that requires the present `location` of its metadata."""
    return EnvironmentContext(
        {
            "DO_NOT_UPDATE_STATS": "true",  # it would list the table's folder
            "expected_parameter_key": LOCATION,
            "expected_parameter_value": location,
        }
    )


def require_conditions(metastore: Metastore, database: str) -> None:
    """Once per process and metastore. `database` exists. Raises ConfigurationError for a metastore that does not check
    conditions, and CommitNotSent if that cannot be found out now."""
    with _lock:
        if metastore.uri in _checked:
            return
        try:
            with metastore.client() as client:
                _probe(client, metastore.uri, database)
        except TException as error:
            found = metastore_error(error)
            if isinstance(found, ConfigurationError):
                raise found from error
            raise CommitNotSent(
                f"whether Hive's metastore {metastore.uri} checks the condition of a commit is not known: {found}. For "
                f"that it has to allow s3sink to create, change and drop a view {PROBE}… in the database {database}"
            ) from error
        _checked.add(metastore.uri)


def _probe(client: Any, uri: str, database: str) -> None:
    view = _view(database, f"{PROBE}{uuid.uuid4().hex}")
    client.create_table(view)
    try:
        if _changed(client, view, before="1", after="2") or _state(client, view) != "0":
            raise ConfigurationError(
                f"Hive's metastore {uri} does not check the condition of a commit (HIVE-26882): a delayed commit could "
                f"replace later ones. Use a metastore of {_VERSIONS}, or a REST catalog in front of it"
            )
        if not _changed(client, view, before="0", after="1"):
            raise CommitNotSent(
                f"Hive's metastore {uri} rejects changes of the view {database}.{view.tableName}, with which s3sink "
                "tests the condition of a commit"
            )
    finally:
        _drop(client, view)


def _view(database: str, name: str) -> Any:
    return HiveTable(
        tableName=name,
        dbName=database,
        owner="s3sink",
        sd=StorageDescriptor(cols=[FieldSchema("one", "int")], serdeInfo=SerDeInfo(parameters={}), parameters={}),
        partitionKeys=[],
        parameters={LOCATION: "0"},
        viewOriginalText="SELECT 1 AS one",
        viewExpandedText="SELECT 1 AS one",
        tableType="VIRTUAL_VIEW",
    )


def _changed(client: Any, view: Any, *, before: str, after: str) -> bool:
    """Changes the view on the condition that its parameter is `before`. Whether the metastore has accepted that."""
    changed = copy(view)
    changed.parameters = {LOCATION: after}
    try:
        client.alter_table_with_environment_context(view.dbName, view.tableName, changed, condition(before))
    except (MetaException, InvalidOperationException) as error:
        _log.debug("the metastore has rejected a change of %s: %s", view.tableName, message_of(error))
        return False
    return True


def _state(client: Any, view: Any) -> Any:
    return client.get_table_req(GetTableRequest(view.dbName, view.tableName)).table.parameters.get(LOCATION)


def _drop(client: Any, view: Any) -> None:
    try:
        client.drop_table(view.dbName, view.tableName, False)
    except (TException, TTransportException) as error:
        _log.warning("the view %s.%s stays, drop it: %s", view.dbName, view.tableName, message_of(error))
