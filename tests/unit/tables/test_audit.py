"""What a table has, compared with the ledger."""

from __future__ import annotations

import pytest

from sink_job.tables.audit import TableAudit, audit_table, canonical
from sink_job.tables.audits.file_index import TableFile
from sink_job.tables.audits.findings import TableFindingKind
from sink_job.tables.position import TablePosition
from tests.unit.tables.parquet_objects import listed

OWN = ["s3://b/topics/"]
OBJECTS = {f"s3://b/topics/{n}": listed(f"topics/{n}", b"x" * (n + 1), 10 * n, acknowledged=n) for n in range(1, 6)}
FILES = [TableFile(path, o.offsets.count, o.bytes) for path, o in OBJECTS.items()]


def audit(files: list[TableFile], record: int = 5, copied_from: int = 0, *, is_rolled_back: bool = False) -> TableAudit:
    position = TablePosition("l", 1, record, 1)
    return audit_table(files, OBJECTS.items(), position, copied_from, OWN, is_rolled_back=is_rolled_back)


def found(result: TableAudit) -> list[tuple[str, str]]:
    return [(each.kind, each.path.rpartition("/")[2]) for each in result.findings]


def test_a_table_with_each_object_once_has_no_findings() -> None:
    result = audit(FILES)
    assert (found(result), result.objects, result.records, result.waiting) == ([], 5, 150, 0)


def test_objects_after_the_position_wait() -> None:
    result = audit(FILES[:3], record=3)
    assert (found(result), result.waiting) == ([], 2)


def test_objects_whose_records_were_copied_again_are_not_expected() -> None:
    assert found(audit(FILES[2:], copied_from=2)) == []


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (FILES[1:], [("TableObjectMissing", "1")]),
        ([*FILES, FILES[2]], [("TableFileTwice", "3")]),
        ([*FILES, TableFile("s3://b/topics/other", 1, 1)], [("TableFileUnknown", "other")]),
        ([FILES[0]._replace(records=9), *FILES[1:]], [("TableFileMismatch", "1")]),
        ([FILES[0]._replace(size=9), *FILES[1:]], [("TableFileMismatch", "1")]),
    ],
    ids=["missing", "twice", "unknown", "records", "size"],
)
def test_a_difference_is_found(files: list[TableFile], expected: list[tuple[str, str]]) -> None:
    assert found(audit(files)) == expected


def test_an_object_that_is_in_the_table_before_its_registration_is_found() -> None:
    assert found(audit(FILES, record=4)) == [("TableAhead", "5")]


def test_objects_from_before_an_offset_reset_are_found_in_the_table_of_the_new_generation() -> None:
    kind = "TableFileBeforeReset"
    assert found(audit(FILES[1:], copied_from=3)) == [(kind, "2"), (kind, "3")]
    assert found(audit(FILES[:3], record=3, copied_from=3)) == []  # the table of the generation before


def test_a_rolled_back_table_lacks_records() -> None:
    (finding,) = audit(FILES, is_rolled_back=True).findings
    assert finding.kind is TableFindingKind.ROLLED_BACK
    assert finding.kind.is_missing


def test_files_of_a_compaction_may_have_the_records_of_missing_objects() -> None:
    result = audit([TableFile("s3://lake/t/data/1", 150, 7)])
    assert (found(result), result.others, result.records) == ([], 1, 150)


def test_missing_objects_with_more_records_than_all_other_files_are_found() -> None:
    result = audit([FILES[0], TableFile("s3://lake/t/data/1", 1, 7)])
    assert found(result) == [("TableObjectMissing", f"{n}") for n in range(2, 6)]


def test_a_table_of_the_generation_before_an_offset_reset_has_its_objects() -> None:
    assert found(audit(FILES[:3], record=3, copied_from=4)) == []
    assert found(audit(FILES[1:3], record=3, copied_from=4)) == [("TableObjectMissing", "1")]


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (FILES[0]._replace(texts=(("k", "x"),)), []),
        (FILES[0]._replace(texts=(("k", "y"),)), ["field k is 'y', and the path has 'x'. Filters may lose its rows"]),
        (FILES[0], ["field k is None, and the path has 'x'. Filters may lose its rows"]),
        (FILES[0]._replace(texts=(("k", "x"),), problem="why"), ["why. Filters may lose its rows"]),
    ],
    ids=["equal", "another text", "none", "bounds"],
)
def test_a_partition_that_is_not_that_of_the_path_or_the_rows_is_found(file: TableFile, expected: list[str]) -> None:
    position = TablePosition("l", 1, 1, 1)
    result = audit_table([file], OBJECTS.items(), position, 0, OWN, texts=lambda o: {"k": "x"})
    assert [each.message.partition(" of its rows: ")[2] for each in result.findings] == expected
    assert {each.kind for each in result.findings} <= {TableFindingKind.PARTITION_WRONG}


@pytest.mark.parametrize("path", ["s3://b/k/x", "s3a://b/k/x", "s3n://b/k/x", "s3://b//k/x", "s3a://b///k/x"])
def test_paths_that_readers_take_alike_are_one_file(path: str) -> None:
    assert canonical(path) == "s3://b/k/x"
