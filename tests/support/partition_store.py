"""A catalog of partitions in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sink_job.tables.hive_tables.store import PartitionedTable, PartitionStore, TablePartition, check_location


class MemoryPartitions(PartitionStore):
    """`before` is called before each addition, with its partitions."""

    command = "s3sink ddl --dialect memory"

    def __init__(self) -> None:
        self.tables: dict[str, PartitionedTable] = {}
        self.partitions: dict[tuple[str, ...], TablePartition] = {}
        self.requests: list[int] = []
        self.before: Callable[[], None] = lambda: None

    def table(self, name: str) -> PartitionedTable | None:
        return self.tables.get(name)

    def add(self, table: PartitionedTable, partitions: Sequence[TablePartition]) -> None:
        self.before()
        self.requests.append(len(partitions))
        for each in partitions:
            check_location(table, each, self.partitions.setdefault(each.values, each).location)
