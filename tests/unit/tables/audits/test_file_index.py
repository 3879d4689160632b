"""The files of a table, found by their paths."""

from __future__ import annotations

from sink_job.tables.audits.file_index import FileIndex, IndexedFile, TableFile

FILES = [TableFile(f"s3://b/topics/{n}", n, 10 * n, (("k", f"v{n % 2}"),), "x" * (n == 3)) for n in range(50)]
OTHER = TableFile("s3://lake/t/data/1", 7, 70)


def test_a_file_is_found_by_its_path_with_what_the_manifest_has() -> None:
    index = FileIndex([*FILES, FILES[4], OTHER], ["s3://b/topics/"])
    found = index.look_up([each.path for each in FILES])
    assert found == [[IndexedFile(*each[1:])] * (2 if each is FILES[4] else 1) for each in FILES]
    assert index.records == sum(range(50)) + 4 + 7


def test_a_path_without_a_file_has_none() -> None:
    assert FileIndex(FILES, []).look_up(["s3://b/topics/50"]) == [[]]
    empty = FileIndex([], [])
    assert (empty.look_up(["x"]), empty.records, empty.has_unknown, len(empty.others)) == ([[]], 0, False, 0)


def test_files_that_were_not_looked_up_are_unknown_below_the_prefixes_of_the_sink_and_others_elsewhere() -> None:
    index = FileIndex([*FILES, OTHER], ["s3://b/topics/"])
    index.look_up([each.path for each in FILES[1:]])
    assert (index.has_unknown, index.others.tolist()) == (True, [7])
    assert [index.is_found(each.path) for each in (*FILES[:2], OTHER)] == [False, True, False]
    index.look_up([FILES[0].path])
    assert not index.has_unknown
