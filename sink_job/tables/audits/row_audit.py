"""Proves by their rows that files of others have the records of the objects that a table does not have any more, each
once: `s3sink verify --table --deep`. Pure.

A compaction replaces objects of the sink by files of its own. The rows of these files must be exactly the records of
the objects that are not in the table. The number and the checksum of the offsets in each component decide; where they
differ, the rows of the sink's own objects in the component are read, too, to find the records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from sink_job.api.errors import TableNotRegistered
from sink_job.ledger.offset_checksum import checksum, hash_offsets
from sink_job.ledger.state import OffsetChecksum
from sink_job.tables.audits.envelope_rows import RowBatch
from sink_job.tables.audits.findings import Findings, TableFinding, TableFindingKind
from sink_job.tables.audits.offset_bits import WINDOW, BitLayout, OffsetBits
from sink_job.tables.audits.offset_ranges import Components, Longs, OffsetComponent
from sink_job.tables.audits.table_files import OtherFile
from sink_job.verify.offset_gaps import find

MAX_LOCATED: Final = 100
"""Maximum number of components in which wrong records are located. Of others, the range is reported."""
MAX_OWN: Final = 10_000
"""Maximum number of the sink's own objects that are read for it."""
_SLICE: Final = 1 << 22
_IN_NO_FILE: Final = "in no file of the table"

NeedsObject = Callable[[int, int, int], bool]
"""Whether an object of a partition with these first and last offsets is needed."""


class OwnRows(NamedTuple):
    """The path of an object in the table, its partition, its first offset, and its rows. `batches`: None if its rows
    have no offsets; reading them raises TableNotRegistered if the object is gone."""

    path: str
    partition: int
    first: int
    batches: Iterator[RowBatch] | None


class TableRows(Protocol):
    """The rows of a table."""

    def others(self) -> Iterable[OtherFile]:
        """The files that are not the sink's."""
        ...

    def read(self, file: OtherFile) -> Iterator[RowBatch]:
        """The rows of such a file."""
        ...

    def own(self, is_needed: NeedsObject) -> Iterator[OwnRows]:
        """The sink's objects in the table that are needed."""
        ...


@dataclass(frozen=True)
class RowResult:
    """`proven`: the number of records that are in rows, each once. `foreign`: of other topics, `without`: without
    topic, partition or offset."""

    proven: int
    foreign: int
    without: int


class _OffsetRun(NamedTuple):
    """Adjacent offsets of a partition, inclusive."""

    partition: int
    first: int
    last: int

    def __str__(self) -> str:
        offsets = f"offset {self.first}" if self.first == self.last else f"offsets {self.first} to {self.last}"
        return f"partition {self.partition}, {offsets}"


class RowAudit:
    """The audit of the rows of a table. `components` are those of the objects whose records the table must have."""

    def __init__(self, components: Components, rows: TableRows, findings: Findings, *, window: int = WINDOW) -> None:
        self._components = components
        self._rows = rows
        self._findings = findings
        self._window = window
        count = len(components)
        self._counts = np.zeros(count, dtype=np.int64)
        self._hashes = np.zeros(count, dtype=np.uint64)
        self._foreign: list[tuple[str, int]] = []
        self._without: list[tuple[str, int]] = []

    def run(self, *, allows_foreign: bool, without: int) -> RowResult:
        """Reads all files. `allows_foreign`: other sinks write records of other topics to the table, or records without
        an envelope; `without`: the number of rows of the sink that must have none."""
        expected = self._components.expected > 0
        layout = BitLayout(self._components, expected, self._window)
        for window in range(layout.windows):
            self._read_window(layout, window)
        self._compare_without(without, allows_foreign=allows_foreign)
        if not allows_foreign:
            for path, count in self._foreign:
                self._add(TableFindingKind.RECORD_UNKNOWN, path, f"{count:,} rows are of other topics")
        is_equal = (self._counts == self._components.expected) & (self._hashes == self._components.hashes)
        self._locate(np.flatnonzero(~is_equal))
        proven = int(self._components.expected[is_equal].sum())
        return RowResult(proven, sum(n for _, n in self._foreign), sum(n for _, n in self._without))

    def _read_window(self, layout: BitLayout, window: int) -> None:
        bits = OffsetBits(layout, window)
        for file in self._rows.others():
            if window and not self._may_be_in(file, *layout.range_of(window)):
                continue
            foreign = without = 0
            for batch in self._rows.read(file):
                components = self._components.of(batch.partitions, batch.offsets)
                foreign, without = foreign + batch.foreign, without + batch.without
                if window == 0:
                    self._count_strays(file, batch, components, layout)
                marked = bits.mark(components, batch.offsets)
                self._count(marked.components, batch.offsets[marked.rows])
                self._add_records(
                    TableFindingKind.RECORD_TWICE,
                    file.path,
                    batch.partitions[marked.repeated],
                    batch.offsets[marked.repeated],
                    "these records were read before in this or another file of others",
                )
            if window == 0:
                self._foreign += [(file.path, foreign)] if foreign else []
                self._without += [(file.path, without)] if without else []

    def _may_be_in(self, file: OtherFile, first: int, last: int) -> bool:
        """Whether the file may have rows of these components."""
        found = self._components
        if file.offsets is None or found.partition[first] != found.partition[last]:
            return True
        low, high = file.offsets
        return bool(low < found.end[last] and high >= found.start[first])

    def _count_strays(self, file: OtherFile, batch: RowBatch, components: Longs, layout: BitLayout) -> None:
        """Rows where no record is expected: outside of all objects, or where the table has all objects."""
        is_outside = components < 0
        self._add_records(
            TableFindingKind.RECORD_UNKNOWN,
            file.path,
            batch.partitions[is_outside],
            batch.offsets[is_outside],
            "the ledger has no such records up to the position of the table",
        )
        is_stray = ~is_outside & (layout.places(components, batch.offsets) < 0)
        self._count(components[is_stray], batch.offsets[is_stray])

    def _count(self, components: Longs, offsets: Longs) -> None:
        np.add.at(self._counts, components, 1)
        np.add.at(self._hashes, components, hash_offsets(offsets))

    def _compare_without(self, expected: int, *, allows_foreign: bool) -> None:
        found = sum(count for _, count in self._without)
        if allows_foreign and found >= expected:
            return
        if not expected:
            for path, count in self._without:
                message = f"{count:,} rows have no topic, partition or offset, and all records of the sink have them"
                self._add(TableFindingKind.RECORD_UNKNOWN, path, message)
        elif found != expected:
            kind = TableFindingKind.RECORD_UNKNOWN if found > expected else TableFindingKind.RECORD_MISSING
            message = (
                f"{found:,} rows have no topic, partition and offset, and the objects without format.envelope that are "
                f"not in the table have {expected:,} records"
            )
            self._add(kind, "", message)

    def _locate(self, wrong: Longs) -> None:
        """Finds the wrong records in these components, or reports the components."""
        small: list[int] = []
        span = own = 0
        for number in wrong.tolist():
            component = self._components[number]
            span += component.end - component.start
            own += component.own
            if len(small) >= MAX_LOCATED or span > self._window or own > MAX_OWN:
                self._report(component, self._checksum(number))
                span, own = span - (component.end - component.start), own - component.own
            else:
                small.append(number)
        if small:
            self._locate_in(np.array(small, dtype=np.int64))

    def _locate_in(self, numbers: Longs) -> None:
        components = self._components.chosen(numbers)
        layout = BitLayout(components, np.ones(len(components), dtype=bool), self._window)
        others, own = OffsetBits(layout, 0), OffsetBits(layout, 0)
        for file in self._rows.others():
            for batch in self._rows.read(file):
                others.mark(components.of(batch.partitions, batch.offsets), batch.offsets)

        def is_needed(partition: int, first: int, last: int) -> bool:
            partitions, offsets = np.array([partition] * 2), np.array([first, last])
            return bool((components.of(partitions, offsets) >= 0).any())

        unread: set[int] = set()
        for o in self._rows.own(is_needed):
            if not self._mark_own(o, components, others, own):
                unread |= set(components.of(np.array([o.partition]), np.array([o.first])).tolist())
        for number in range(len(components)):
            if number in unread:
                self._report(components[number], self._checksum(int(numbers[number])))
            else:
                self._compare(components[number], *layout.place(number), others, own)

    def _mark_own(self, o: OwnRows, components: Components, others: OffsetBits, own: OffsetBits) -> bool:
        """Reads the rows of an object; False if that is not possible."""
        if o.batches is None:
            return False
        try:
            for batch in o.batches:
                found = components.of(batch.partitions, batch.offsets)
                own.mark(found, batch.offsets)
                is_twice = others.test(found, batch.offsets)
                self._add_records(
                    TableFindingKind.RECORD_TWICE,
                    o.path,
                    batch.partitions[is_twice],
                    batch.offsets[is_twice],
                    "these records of the object are in a file of others, too",
                )
        except TableNotRegistered:
            return False
        return True

    def _compare(self, component: OffsetComponent, start: int, end: int, others: OffsetBits, own: OffsetBits) -> None:
        """Compares the offsets of a component that is in one window."""
        found = OffsetChecksum()
        for at in range(start, end, _SLICE):
            until = min(at + _SLICE, end)
            first = component.start + at - start
            is_other, is_own = others.read(at, until), own.read(at, until)
            found += checksum(np.flatnonzero(is_other & ~is_own) + first)
            if component.is_dense:
                offsets = np.flatnonzero(~(is_other | is_own)) + first
                partitions = np.full(len(offsets), component.partition)
                self._add_records(TableFindingKind.RECORD_MISSING, "", partitions, offsets, _IN_NO_FILE)
        if not component.is_dense:
            self._report(component, found)

    def _report(self, component: OffsetComponent, found: OffsetChecksum) -> None:
        """The finding for records that differ from those of the ledger, as precisely as checksums allow."""
        partition, start, end = component.partition, component.start, component.end
        missing, surplus = component.expected - found, found - component.expected
        if missing == OffsetChecksum():
            return
        whole = _OffsetRun(partition, start, end - 1)
        if (first := find(start, end, missing)) is not None:
            self._add_missing(_OffsetRun(partition, first, first + missing.count - 1))
        elif missing.count > 0:
            message = f"{whole}: {missing.count:,} records of them are in no file of the table"
            self._add(TableFindingKind.RECORD_MISSING, "", message, whole)
        elif surplus.count > 0 and (first := find(start, end, surplus)) is not None:
            run = _OffsetRun(partition, first, first + surplus.count - 1)
            message = f"{run}: the ledger does not have these records, or they are in an object, too"
            self._add(TableFindingKind.RECORD_UNKNOWN, "", message, run)
        elif surplus.count > 0:
            message = (
                f"{whole}: files of others have {surplus.count:,} records too many. Whether records are missing, too, "
                "cannot be verified"
            )
            self._add(TableFindingKind.RECORD_MISSING, "", message, whole)
        else:
            message = f"{whole}: files of others have as many records as the ledger, and other ones"
            self._add(TableFindingKind.RECORD_MISSING, "", message, whole)

    def _checksum(self, number: int) -> OffsetChecksum:
        return OffsetChecksum(int(self._counts[number]), int(self._hashes[number]))

    def _add_missing(self, run: _OffsetRun) -> None:
        self._add(TableFindingKind.RECORD_MISSING, "", f"{run}: {_IN_NO_FILE}", run)

    def _add_records(self, kind: TableFindingKind, path: str, partitions: Longs, offsets: Longs, problem: str) -> None:
        """A finding for each run of adjacent offsets."""
        if len(offsets) and not self._findings.count(kind, len(offsets)):
            for run in _runs(partitions, offsets):
                self._add(kind, path, f"{run}: {problem}", run)

    def _add(self, kind: TableFindingKind, path: str, message: str, run: _OffsetRun | None = None) -> None:
        place = (None, None) if run is None else (run.partition, run.first)
        self._findings.add(TableFinding(kind, path, message, *place))


def _runs(partitions: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64]) -> Iterator[_OffsetRun]:
    """The runs of adjacent offsets of these records."""
    order = np.lexsort((offsets, partitions))
    partitions, offsets = partitions[order], offsets[order]
    if not len(offsets):
        return
    is_first = np.concatenate(([True], (np.diff(offsets) > 1) | (np.diff(partitions) != 0)))
    begins = np.flatnonzero(is_first)
    ends = np.concatenate((begins[1:], [len(offsets)])) - 1
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        yield _OffsetRun(int(partitions[begin]), int(offsets[begin]), int(offsets[end]))
