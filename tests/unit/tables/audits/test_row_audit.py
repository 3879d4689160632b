"""Rows of files that others have written, compared with the offsets of the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np
import pytest

from sink_job.api.errors import TableNotRegistered
from sink_job.ledger.offset_checksum import checksum
from sink_job.ledger.state import ClosedObject
from sink_job.tables.audits.envelope_rows import RowBatch
from sink_job.tables.audits.findings import Findings, TableFinding, TableFindingKind
from sink_job.tables.audits.offset_ranges import OffsetRanges
from sink_job.tables.audits.row_audit import NeedsObject, OwnRows, RowAudit, RowResult
from sink_job.tables.audits.table_files import OtherFile
from tests.unit.tables.parquet_objects import listed

MISSING, TWICE, UNKNOWN = (
    TableFindingKind.RECORD_MISSING,
    TableFindingKind.RECORD_TWICE,
    TableFindingKind.RECORD_UNKNOWN,
)
Record = tuple[int, int]
"""The partition and offset of a record."""


def batch(records: Iterable[Record], foreign: int = 0, without: int = 0) -> RowBatch:
    rows = [*records]
    partitions = np.array([partition for partition, _ in rows], dtype=np.int64)
    return RowBatch(partitions, np.array([offset for _, offset in rows], dtype=np.int64), foreign, without)


@dataclass
class FakeTable:
    """Objects by their records, those of them that are in the table, and files of others by their rows."""

    objects: Sequence[Sequence[Record]]
    own: frozenset[int] = frozenset()
    files: Sequence[Sequence[Record]] = ()
    foreign: int = 0
    without: int = 0
    knows_bounds: bool = True
    unreadable: bool = False
    reads: Counter[str] = field(default_factory=Counter)

    def others(self) -> list[OtherFile]:
        return [OtherFile(f"f{n}", len(rows), True, self._bounds(rows)) for n, rows in enumerate(self.files)]

    def _bounds(self, rows: Sequence[Record]) -> tuple[int, int] | None:
        offsets = [offset for _, offset in rows]
        return (min(offsets), max(offsets)) if offsets and self.knows_bounds else None

    def read(self, file: OtherFile) -> Iterator[RowBatch]:
        self.reads[file.path] += 1
        rows = self.files[int(file.path[1:])]
        yield batch(rows[:7], self.foreign, self.without)
        yield batch(rows[7:])

    def closed(self, number: int) -> ClosedObject:
        records = self.objects[number]
        offsets = [offset for _, offset in records]
        o = listed(f"o{number}", b"", len(records))
        changes = {
            "partition": records[0][0],
            "first": min(offsets),
            "last": max(offsets),
            "offsets": checksum(np.array(offsets, dtype=np.int64)),
        }
        return ClosedObject(**{name: getattr(o, name) for name in o.__struct_fields__} | changes)

    def own_rows(self, number: int) -> Iterator[RowBatch]:
        if self.unreadable:
            raise TableNotRegistered("it is gone")
        yield batch(self.objects[number])

    def own_objects(self, is_needed: NeedsObject) -> Iterator[OwnRows]:
        for number in sorted(self.own):
            o = self.closed(number)
            if is_needed(o.partition, o.first, o.last):
                self.reads[o.key] += 1
                yield OwnRows(o.key, o.partition, o.first, self.own_rows(number))

    def audit(
        self, window: int = 64, *, allows_foreign: bool = False, without: int = 0
    ) -> tuple[RowResult, list[TableFinding]]:
        ranges, findings = OffsetRanges(), Findings()
        for number in range(len(self.objects)):
            ranges.add(self.closed(number), is_own=number in self.own)
        audit = RowAudit(ranges.components(), _Rows(self), findings, window=window)
        return audit.run(allows_foreign=allows_foreign, without=without), findings.sorted()


@dataclass
class _Rows:
    table: FakeTable

    def others(self) -> list[OtherFile]:
        return self.table.others()

    def read(self, file: OtherFile) -> Iterator[RowBatch]:
        return self.table.read(file)

    def own(self, is_needed: NeedsObject) -> Iterator[OwnRows]:
        return self.table.own_objects(is_needed)


def found(findings: list[TableFinding]) -> list[tuple[TableFindingKind, int | None, int | None]]:
    return [(each.kind, each.partition, each.offset) for each in findings]


def rows(partition: int, *offsets: int) -> list[Record]:
    return [(partition, offset) for offset in offsets]


TEN = [rows(0, *range(10)), rows(0, *range(10, 20)), rows(1, *range(10))]


def test_records_that_are_in_rows_once_are_proven() -> None:
    result, findings = FakeTable(TEN, frozenset({1}), [[*TEN[2], *reversed(TEN[0])]]).audit()
    assert (result, findings) == (RowResult(20, 0, 0), [])


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([[*TEN[0][:4], *TEN[0][5:], *TEN[1]]], [(MISSING, 0, 4)]),
        ([[*TEN[0][:4], *TEN[0][6:8], *TEN[1]]], [(MISSING, 0, 4), (MISSING, 0, 8)]),
        ([TEN[0], TEN[1], rows(0, 13)], [(TWICE, 0, 13)]),
        ([[*TEN[0], *TEN[1], *rows(0, 3)]], [(TWICE, 0, 3)]),
        ([[*TEN[0], *TEN[1], *rows(0, 20, 21, 30)]], [(UNKNOWN, 0, 20), (UNKNOWN, 0, 30)]),
        ([[*TEN[0], *TEN[1], *rows(7, 1)]], [(UNKNOWN, 7, 1)]),
        ([[*TEN[0], *TEN[1], *rows(1, 4, 5)]], [(TWICE, 1, 4)]),
        ([TEN[0]], [(MISSING, 0, 10)]),
    ],
    ids=[
        "lost",
        "several lost",
        "in two files",
        "twice in a file",
        "later",
        "partition",
        "in an object, too",
        "object",
    ],
)
def test_a_difference_is_found_with_its_offsets(
    files: list[list[Record]], expected: list[tuple[TableFindingKind, int, int]]
) -> None:
    _, findings = FakeTable(TEN, frozenset({2}), files).audit()
    assert sorted(found(findings)) == sorted(expected)


def test_a_record_of_an_object_in_the_table_is_found_beside_its_neighbours_of_another_path() -> None:
    interleaved = [rows(0, *range(0, 20, 2)), rows(0, *range(1, 20, 2))]
    result, findings = FakeTable(interleaved, frozenset({1}), [interleaved[0]]).audit()
    assert (result.proven, findings) == (10, [])
    result, findings = FakeTable(interleaved, frozenset({1}), [[*interleaved[0], (0, 7)]]).audit()
    assert found(findings) == [(TWICE, 0, 7)]
    assert findings[0].path == "o1"


def test_wrong_records_between_gaps_are_found_by_their_checksum() -> None:
    gaps = [rows(0, *range(0, 40, 3))]
    for files, expected in (
        ([[each for each in gaps[0] if each[1] != 9]], [(MISSING, 0, 9)]),
        ([[*gaps[0], (0, 10)]], [(UNKNOWN, 0, 10)]),
        ([[*gaps[0][1:-1], (0, 10)]], [(MISSING, 0, 0)]),
        ([[*gaps[0][:-1], (0, 10)]], [(MISSING, 0, 0)]),
        ([[*gaps[0][:-1], (0, 10), (0, 20)]], [(MISSING, 0, 0)]),
    ):
        assert found(FakeTable(gaps, files=files).audit()[1]) == expected


def test_an_own_object_that_cannot_be_read_leaves_the_range() -> None:
    interleaved = [rows(0, *range(0, 20, 2)), rows(0, *range(1, 20, 2))]
    table = FakeTable(interleaved, frozenset({1}), [interleaved[0][1:-1]], unreadable=True)
    (finding,) = table.audit()[1]
    assert finding.message == "partition 0, offsets 0 to 19: 2 records of them are in no file of the table"


def test_no_object_of_the_sink_is_read_if_nothing_differs() -> None:
    interleaved = [rows(0, *range(0, 20, 2)), rows(0, *range(1, 20, 2))]
    table = FakeTable(interleaved, frozenset({1}), [interleaved[0]])
    table.audit()
    assert table.reads == {"f0": 1}


def test_files_are_read_only_for_windows_that_have_their_offsets() -> None:
    objects = [rows(0, *range(start, start + 100)) for start in range(0, 1_000, 100)]
    table = FakeTable(objects, files=objects)
    result, findings = table.audit(window=250)
    assert (result.proven, findings) == (1_000, [])
    assert table.reads["f9"] == 2  # in the first one, and in its own
    assert table.reads["f0"] == 1


def test_rows_of_other_topics_are_unknown_unless_another_sink_writes_the_table() -> None:
    table = FakeTable(TEN[:1], files=TEN[:1], foreign=3)
    assert found(table.audit()[1]) == [(UNKNOWN, None, None)]
    result, findings = table.audit(allows_foreign=True)
    assert (result.foreign, findings) == (3, [])


def test_rows_without_an_envelope_may_be_of_another_sink_of_the_table() -> None:
    table = FakeTable(TEN[:1], files=TEN[:1], without=3)
    assert table.audit(allows_foreign=True, without=2) == (RowResult(10, 0, 3), [])
    assert found(table.audit(allows_foreign=True, without=4)[1]) == [(MISSING, None, None)]


@pytest.mark.parametrize(("expected", "kinds"), [(0, [UNKNOWN]), (2, [UNKNOWN]), (3, []), (4, [MISSING])])
def test_rows_without_an_envelope_are_counted(expected: int, kinds: list[TableFindingKind]) -> None:
    table = FakeTable(TEN[:1], files=TEN[:1], without=3)
    assert [each.kind for each in table.audit(without=expected)[1]] == kinds


@pytest.mark.parametrize("seed", range(150))
def test_any_difference_is_found_and_nothing_else(seed: int) -> None:
    random = Random(seed)
    objects: list[list[Record]] = []
    for partition in range(random.randint(1, 3)):
        paths: list[list[Record]] = [[] for _ in range(random.randint(1, 4))]
        for offset in range(random.randint(1, 120)):
            if random.random() < 0.95 or seed % 2:
                random.choice(paths).append((partition, offset))
            if random.random() < 0.05:
                objects += [each for each in paths if each]
                paths = [[] for _ in paths]
        objects += [each for each in paths if each]
    own = frozenset(n for n in range(len(objects)) if random.random() < 0.4)
    expected = [record for n, o in enumerate(objects) if n not in own for record in o]
    of_own = [record for n in own for record in objects[n]]
    written = list(expected)
    lost = random.sample(expected, min(len(expected), random.choice([0, 0, 1, 3])))
    for record in lost:
        written.remove(record)
    twice = random.sample(written, min(len(written), random.choice([0, 0, 1, 3])))
    again = random.sample(of_own, min(len(of_own), random.choice([0, 0, 1, 3])))
    unknown = rows(0, 500, 510)[: random.choice([0, 0, 1, 2])]
    written += twice + again + unknown
    random.shuffle(written)
    files = [written[start : start + 30] for start in range(0, len(written), 30)]
    table = FakeTable(objects, own, files, knows_bounds=random.random() < 0.5)
    result, findings = table.audit(window=random.choice([16, 64, 1 << 12]))
    kinds = {each.kind for each in findings}
    assert (MISSING in kinds) >= bool(lost)
    assert {(TWICE, *record) for record in twice} <= set(found(findings)) | _within(findings, twice)
    assert (kinds != set()) == bool(lost or twice or again or unknown)
    assert {(UNKNOWN, *record) for record in unknown} <= set(found(findings))
    if not findings:
        assert result.proven == len(expected)


def _within(findings: list[TableFinding], records: list[Record]) -> set[tuple[TableFindingKind, int, int]]:
    """Those of `records` that are in the run of a finding."""
    covered = set()
    for each in findings:
        first, _, last = each.message.partition(": ")[0].partition(" to ")
        if each.kind is TWICE and last:
            start = int(first.split()[-1])
            covered |= {(each.partition, offset) for offset in range(start, int(last) + 1)}
    return {(TWICE, *record) for record in records if record in covered}
