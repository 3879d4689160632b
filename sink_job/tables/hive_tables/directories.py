"""Which partitions the directories of published objects are. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sink_job.api.errors import TableIncompatible
from sink_job.ledger.state import ClosedObject
from sink_job.tables.hive_tables.store import PartitionedTable, TablePartition, split_location


def partitions_of(table: PartitionedTable, objects: Iterable[ClosedObject], bucket: str) -> Sequence[TablePartition]:
    """The partitions of the objects, sorted. Values are the texts of the path; locations have
    the scheme of the table. Raises TableIncompatible if the table
    has no partition columns, or an object is not in a directory of them."""
    if not table.keys:
        raise TableIncompatible(
            f"table {table.name} has no partition columns: it has all objects below its location, and needs no "
            "registration. Remove it from spec.tables"
        )
    place, prefix = split_location(table.location)
    found: dict[str, TablePartition] = {}
    for o in objects:
        directory = o.key.rpartition("/")[0]
        if directory not in found:
            found[directory] = _partition(table, o.key, directory, bucket, prefix if place == bucket else None)
    return sorted(found.values())


def _partition(table: PartitionedTable, key: str, directory: str, bucket: str, prefix: str | None) -> TablePartition:
    if prefix is None or not key.startswith(prefix):
        raise TableIncompatible(
            f"table {table.name} is in {table.location}, and the object s3://{bucket}/{key} is not. After an offset "
            "reset into a new prefix, or another topicsDir, create another table"
        )
    elements = [each.partition("=") for each in directory[len(prefix) :].split("/")]
    names = tuple(name.lower() for name, _, _ in elements)
    if names != tuple(each.lower() for each in table.keys) or not all(equals for _, equals, _ in elements):
        raise TableIncompatible(
            f"table {table.name} has the partition columns {', '.join(table.keys)}, and the object s3://{bucket}/{key} "
            f"is in {directory[len(prefix) :] or 'no directory'}: only directories name=value of these columns, in "
            "this order, can be added"
        )
    return TablePartition(
        tuple(value for _, _, value in elements), f"{table.location.partition('://')[0]}://{bucket}/{directory}/"
    )
