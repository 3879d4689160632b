"""`s3sink ddl --dialect hive` and `HivePartitions` with Hive's own metastore server, and Hive's reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from devtools import hive_metastore
from devtools.hive_metastore import in_hive
from tests.support.compared_sink import ComparedSink, log_of
from tests.support.hive_partitions import check_partitions, partition_statements
from tests.support.memory_sink import MemorySinkFixture
from tests.unit.ddl.table_objects import TableObjects, connected

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(hive_metastore.why_not() is not None, reason=f"no namespace: {hive_metastore.why_not()}"),
]


def written(
    folder: Path, output: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, paths: bool
) -> str:
    """Writes the objects of a sink and returns the statement without its comments."""
    folder.mkdir()
    sink = ComparedSink(MemorySinkFixture(folder, monkeypatch), folder / "sink.yaml")
    connected(sink, monkeypatch)
    sink.output = output
    objects = TableObjects(sink, folder / "bucket")
    sink.write(log_of(output, 12, paths=2), paths=paths)
    objects.write()
    printed = objects.statement(capsys, "hive")
    return "\n".join(line for line in printed.splitlines() if not line.startswith("--")).strip().removesuffix(";")


def test_hives_metastore_accepts_tables_and_partitions_and_its_readers_return_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One server for all tables: it takes several seconds to start."""
    parquet = written(tmp_path / "parquet", "Parquet", monkeypatch, capsys, paths=True)
    lines = written(tmp_path / "lines", "Bytes", monkeypatch, capsys, paths=False).replace("`log`", "`lines`")
    statements = [
        parquet,
        "MSCK REPAIR TABLE log",
        "SELECT `partition`, offset, kind FROM log ORDER BY offset",
        "SELECT offset FROM log WHERE kind = 'k1' ORDER BY offset",
        lines,
        "SHOW TABLES",
        *partition_statements(tmp_path / "days"),
    ]
    _, _, rows, chosen, _, tables, *partitions = in_hive(statements, tmp_path / "hive")
    assert rows == [[0, offset, f"k{offset % 2}"] for offset in range(12)]
    assert chosen == [[offset] for offset in range(1, 12, 2)]
    assert [name for _, name, _ in tables] == ["lines", "log"]
    check_partitions(partitions)
