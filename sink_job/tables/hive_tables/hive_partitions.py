"""Partitions of tables in Hive's metastore, over Thrift: without TLS and without a login, as a metastore has neither by
default. No secret is sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any, Final
from urllib.parse import urlsplit

from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import AddPartitionsRequest, InvalidObjectException, NoSuchObjectException, Partition
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from sink_job.api.errors import TableIncompatible, TransientError
from sink_job.tables.hive_tables.store import PartitionedTable, PartitionStore, TablePartition, check_location

PORT: Final = 9083
TIMEOUT_S: Final = 60.0


class HivePartitions(PartitionStore):
    """The tables of a metastore. Each call has a connection of its own."""

    command = "s3sink ddl --dialect hive"

    def __init__(self, uri: str, timeout_s: float = TIMEOUT_S) -> None:
        """`uri`: `thrift://host:port`. `timeout_s`: maximum time without a response. Sends no request."""
        self._uri = uri
        self._timeout_s = timeout_s

    def table(self, name: str) -> PartitionedTable | None:
        database, _, table = name.partition(".")
        with self._client() as client:
            try:
                found = client.get_table(database, table)
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
        url = urlsplit(self._uri)
        socket = TSocket(url.hostname, url.port or PORT)
        socket.setTimeout(self._timeout_s * 1000)
        transport = TBufferedTransport(socket)
        try:
            transport.open()
            yield Client(TBinaryProtocol(transport))
        except (TException, OSError) as error:
            text = getattr(error, "message", None) or error
            raise TransientError(f"Hive's metastore {self._uri}: {type(error).__name__}: {text}") from error
        finally:
            transport.close()
