"""A table in Hive's metastore whose partitions `HivePartitions` adds, for a server that other tests have started."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from devtools.hive_metastore import SCRIPT

_ADD: Final = f"""{SCRIPT}
import json, sys
from concurrent.futures import ThreadPoolExecutor
from sink_job.api.errors import TableIncompatible, TransientError
from sink_job.tables.hive_tables.hive_partitions import HivePartitions
from sink_job.tables.hive_tables.store import TablePartition

store = HivePartitions(sys.argv[1])
table = store.table("default.days")
texts = enumerate(("a", "b ü/%", "c"))
found = [TablePartition((text,), f"{{table.location}}/day={{number}}") for number, text in texts]

def add(_):
    try:
        store.add(table, found)
        return "added"
    except TransientError:  # another one has added them meanwhile: the next registration repeats
        return "later"

with ThreadPoolExecutor(3) as pool:
    results = set(pool.map(add, range(3)))
store.add(table, found)
try:
    store.add(table, [TablePartition(("a",), f"{{table.location}}/other")])
    incompatible = "no error"
except TableIncompatible as error:
    incompatible = str(error)
print(json.dumps([[list(table.keys), "added" in results, incompatible, store.table("default.none")]]))
"""


def partition_statements(folder: Path) -> Sequence[str]:
    """Statements for `in_hive`: a table with three directories of a row each, three additions at once, and queries."""
    for number in range(3):
        (folder / f"day={number}").mkdir(parents=True)
        (folder / f"day={number}" / "a.txt").write_text(f"row{number}\n")
    return (
        "CREATE EXTERNAL TABLE days (line string) PARTITIONED BY (day string) STORED AS TEXTFILE "
        f"LOCATION 'file://{folder}'",
        _ADD,
        "SELECT day, line FROM days ORDER BY line",
        "SELECT line FROM days WHERE day = 'b ü/%'",
    )


def check_partitions(results: Sequence[list[list[Any]]]) -> None:
    """`results`: those of `partition_statements`."""
    _, ((keys, is_added, incompatible, none),), rows, chosen = results
    assert (keys, is_added, none) == (["day"], True, None)
    assert "the partition day=a exists with the location" in incompatible
    assert rows == [["a", "row0"], ["b ü/%", "row1"], ["c", "row2"]]
    assert chosen == [["row1"]]
