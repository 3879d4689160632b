"""A catalog with tables of Hive's kind: it knows the directories of a table as partitions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sink_job.api.errors import TableIncompatible

SCHEMES: Final = ("s3", "s3a", "s3n")


@dataclass(frozen=True)
class PartitionedTable:
    """A table. `identity` differs for a table that was dropped and created again, `location` is the URL of the
    directory of its objects, `keys` are the names of its partition columns, `storage` is the description of its
    storage, which its partitions get."""

    name: str
    identity: str
    location: str
    keys: tuple[str, ...]
    storage: Any = field(compare=False, default=None)


@dataclass(frozen=True, order=True)
class TablePartition:
    """The values of the partition columns, in their order, and the URL of the directory."""

    values: tuple[str, ...]
    location: str


class PartitionStore(ABC):
    """A catalog. Names of tables are `database.name`."""

    command: str
    """What creates a table in it, for messages."""

    @abstractmethod
    def table(self, name: str) -> PartitionedTable | None:
        """The table; None if it does not exist. Raises ConfigurationError and TransientError."""

    @abstractmethod
    def add(self, table: PartitionedTable, partitions: Sequence[TablePartition]) -> None:
        """Adds those that do not exist. Raises TableIncompatible for one that exists with another location, and
        ConfigurationError and TransientError; some may have been added then."""


def check_location(table: PartitionedTable, partition: TablePartition, found: str) -> None:
    """Raises TableIncompatible if an existing partition has another location than the objects."""
    if split_location(found) != split_location(partition.location):
        shown = "/".join(f"{key}={value}" for key, value in zip(table.keys, partition.values, strict=True))
        raise TableIncompatible(
            f"table {table.name}: the partition {shown} exists with the location {found}, and the objects are in "
            f"{partition.location}. Drop the partition, or use another table"
        )


def split_location(location: str) -> tuple[str, str]:
    """Bucket and prefix of a location; the prefix ends with `/`, or is empty. For other places than S3 the scheme and a
    colon are before what is in place of the bucket."""
    scheme, _, rest = location.partition(":")
    place, _, key = rest.lstrip("/").partition("/") if rest.startswith("//") and rest[2:3] != "/" else ("", "", rest)
    key = key.strip("/")
    return place if scheme in SCHEMES else f"{scheme}:{place}", f"{key}/" if key else ""
