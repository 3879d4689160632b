"""Partitions of tables in AWS Glue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

from sink_job.api.errors import ConfigurationError, TransientError
from sink_job.api.sections.tables_section import CatalogSpec
from sink_job.tables.catalog.access import SECTION, CatalogAccess
from sink_job.tables.catalog.glue import aws_error, glue_client
from sink_job.tables.hive_tables.store import PartitionedTable, PartitionStore, TablePartition, check_location

_NEEDS: Final = (
    "the driver's identity needs glue:GetTable, BatchCreatePartition and BatchGetPartition, and sts:AssumeRole for "
    f"{SECTION}.assumeRole"
)
_EXISTS: Final = "AlreadyExistsException"


class GluePartitions(PartitionStore):
    """The tables of AWS Glue in a region."""

    command = "s3sink ddl --dialect glue"

    def __init__(self, spec: CatalogSpec, access: CatalogAccess) -> None:
        """Sends no request. Raises ConfigurationError."""
        self._client: Any = glue_client(spec, access)

    def table(self, name: str) -> PartitionedTable | None:
        database, _, table = name.partition(".")
        try:
            found = self._client.get_table(DatabaseName=database, Name=table)["Table"]
        except self._client.exceptions.EntityNotFoundException:
            return None
        except Exception as error:
            _raise(error)
        storage = found.get("StorageDescriptor", {})
        keys = tuple(each["Name"] for each in found.get("PartitionKeys", ()))
        return PartitionedTable(name, str(found.get("CreateTime")), storage.get("Location", ""), keys, storage)

    def add(self, table: PartitionedTable, partitions: Sequence[TablePartition]) -> None:
        database, _, name = table.name.partition(".")
        given = [
            {"Values": list(each.values), "StorageDescriptor": {**table.storage, "Location": each.location}}
            for each in partitions
        ]
        try:
            answer = self._client.batch_create_partition(
                DatabaseName=database, TableName=name, PartitionInputList=given
            )
        except Exception as error:
            _raise(error)
        self._check_existing(table, partitions, answer.get("Errors", ()))

    def _check_existing(
        self, table: PartitionedTable, partitions: Sequence[TablePartition], errors: Sequence[Mapping[str, Any]]
    ) -> None:
        for each in errors:
            detail = each.get("ErrorDetail", {})
            if detail.get("ErrorCode") != _EXISTS:
                raise TransientError(
                    f"table {table.name}: AWS Glue has not added the partition {'/'.join(each['PartitionValues'])}: "
                    f"{detail.get('ErrorCode')}: {detail.get('ErrorMessage')}"
                )
        existing = {tuple(each["PartitionValues"]) for each in errors}
        if not existing:
            return
        database, _, name = table.name.partition(".")
        try:
            answer = self._client.batch_get_partition(
                DatabaseName=database,
                TableName=name,
                PartitionsToGet=[{"Values": list(each)} for each in sorted(existing)],
            )
        except Exception as error:
            _raise(error)
        by_values = {each.values: each for each in partitions}
        for found in answer.get("Partitions", ()):
            location = found.get("StorageDescriptor", {}).get("Location", "")
            check_location(table, by_values[tuple(found["Values"])], location)


def _raise(error: Exception) -> NoReturn:
    known = aws_error(error, _NEEDS)
    if known is None:
        raise error
    raise type(known)(f"AWS Glue: {known}") from (None if isinstance(known, ConfigurationError) else error)
