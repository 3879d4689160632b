"""Partitions of tables in Hive's metastore, over Thrift."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

from hive_metastore.ttypes import (
    AddPartitionsRequest,
    GetTableRequest,
    InvalidObjectException,
    NoSuchObjectException,
    Partition,
)
from thrift.Thrift import TException

from sink_job.api.errors import TableIncompatible
from sink_job.tables.catalog.access import CatalogAccess
from sink_job.tables.catalog.metastore import Metastore, metastore_error
from sink_job.tables.hive_tables.store import PartitionedTable, PartitionStore, TablePartition, check_location


class HivePartitions(PartitionStore):
    """The tables of a metastore. Each call has a connection of its own."""

    command = "s3sink ddl --dialect hive"

    def __init__(self, uri: str, access: CatalogAccess | None = None) -> None:
        """`uri`: `thrift://host:port`. Sends no request."""
        self._metastore = Metastore(uri, access or CatalogAccess())

    def table(self, name: str) -> PartitionedTable | None:
        database, _, table = name.partition(".")
        with self._client() as client:
            try:
                found = client.get_table_req(GetTableRequest(database, table)).table
            except NoSuchObjectException:
                return None
        keys = tuple(each.name for each in found.partitionKeys or ())
        return PartitionedTable(name, str(found.createTime), found.sd.location or "", keys, found.sd)

    def add(self, table: PartitionedTable, partitions: Sequence[TablePartition]) -> None:
        database, _, name = table.name.partition(".")
        given = [self._partition(table, each) for each in partitions]
        request = AddPartitionsRequest(database, name, given, ifNotExists=True, needResult=True)
        with self._client() as client:
            try:
                added = {tuple(each.values) for each in client.add_partitions_req(request).partitions or ()}
            except InvalidObjectException as error:
                raise TableIncompatible(
                    f"table {table.name}: the metastore rejects the partitions: {error.message}"
                ) from error
            for each in partitions:
                if each.values not in added:
                    check_location(table, each, client.get_partition(database, name, list(each.values)).sd.location)

    @staticmethod
    def _partition(table: PartitionedTable, partition: TablePartition) -> Any:
        database, _, name = table.name.partition(".")
        storage = copy(table.storage)
        storage.location = partition.location
        return Partition(list(partition.values), database, name, 0, 0, storage, {})

    @contextmanager
    def _client(self) -> Iterator[Any]:
        try:
            with self._metastore.client() as client:
                yield client
        except TException as error:
            found = metastore_error(error)
            assert found is not None, "an error of Thrift"
            raise type(found)(f"Hive's metastore {self._metastore.uri}: {found}") from error
