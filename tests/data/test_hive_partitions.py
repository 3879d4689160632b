"""Partitions of a table in Hive's own metastore server, and Hive's reader."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from devtools import hive_metastore
from devtools.hive_metastore import SCRIPT, in_hive

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(hive_metastore.why_not() is not None, reason=f"no namespace: {hive_metastore.why_not()}"),
]

_ADD: Final = f"""{SCRIPT}
import json, sys
from concurrent.futures import ThreadPoolExecutor
from sink_job.api.errors import TableIncompatible, TransientError
from sink_job.tables.hive_tables.hive_partitions import HivePartitions
from sink_job.tables.hive_tables.store import TablePartition

store = HivePartitions(sys.argv[1])
table = store.table("default.log")
texts = enumerate(("a", "b ü/%", "c"))
found = [TablePartition((text,), f"{{table.location}}/day={{number}}") for number, text in texts]

def add(_):
    try:
        store.add(table, found)
        return "added"
    except TransientError:  # another one has added them meanwhile: the next registration repeats
        return "later"

with ThreadPoolExecutor(3) as pool:
    results = sorted(pool.map(add, range(3)))
store.add(table, found)
try:
    store.add(table, [TablePartition(("a",), f"{{table.location}}/other")])
    incompatible = "no error"
except TableIncompatible as error:
    incompatible = str(error)
print(json.dumps([[list(table.keys), set(results) <= {{"added", "later"}} and "added" in results, incompatible],
                  [store.table("default.none")]]))
"""


def test_partitions_are_added_once_and_hives_reader_returns_their_rows(tmp_path: Path) -> None:
    bucket = tmp_path / "bucket"
    for number in range(3):
        (bucket / f"day={number}").mkdir(parents=True)
        (bucket / f"day={number}" / "a.txt").write_text(f"row{number}\n")
    statements = [
        "CREATE EXTERNAL TABLE log (line string) PARTITIONED BY (day string) STORED AS TEXTFILE "
        f"LOCATION 'file://{bucket}'",
        _ADD,
        "SELECT day, line FROM log ORDER BY line",
        "SELECT line FROM log WHERE day = 'b ü/%'",
    ]
    _, ((keys, is_added, incompatible), (none,)), rows, chosen = in_hive(statements, tmp_path / "hive")
    assert (keys, is_added, none) == (["day"], True, None)
    assert "the partition day=a exists with the location" in incompatible
    assert rows == [["a", "row0"], ["b ü/%", "row1"], ["c", "row2"]]
    assert chosen == [["row1"]]
