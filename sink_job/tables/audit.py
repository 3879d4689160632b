"""Compares the files of a table with the ledger: `s3sink verify --table`. Pure.

Files outside of the sink's prefixes are those of a compaction or of another writer. They may hold records of objects
that are not in the table any more. By metadata alone, a missing object is no finding if they have as many records; with
their rows (`sink_job.tables.audits.row_audit`) the records decide.

Neither the files nor the objects of a table are in memory at the same time: both may be millions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from sink_job.ledger.state import ClosedObject
from sink_job.tables.audits.file_index import FileIndex, IndexedFile, TableFile
from sink_job.tables.audits.findings import Findings, TableFinding, TableFindingKind
from sink_job.tables.missing.skipped import NONE_SKIPPED, NOTHING, SkippedObjects
from sink_job.tables.position import TablePosition

_OBJECTS: Final = 4_096
"""Number of objects that are looked up together."""

PathTexts = Callable[[ClosedObject], Mapping[str, str]]
SeeObject = Callable[[ClosedObject, bool], None]
"""Called with an object whose records the table must have, and whether it has the object."""


def _no_texts(o: ClosedObject) -> Mapping[str, str]:
    return {}


def _ignore(o: ClosedObject, is_in_table: bool) -> None:
    pass


@dataclass(frozen=True)
class TableAudit:
    """The result for a table. `objects` are those of the sink in it, `waiting` those that are published and not
    registered yet, `others` files outside of the sink's prefixes. `more` is the number of findings that are not listed.
    `moved` is the number of records whose objects are not in the table; `proven`: those of them that are in rows of
    other files, each once; None if no rows were read. `notes` are about what could not be verified. `skipped`: the
    number of objects that did not exist when the table was registered (`onMissing: Skip`)."""

    objects: int
    records: int
    waiting: int
    others: int
    findings: Sequence[TableFinding]
    more: int = 0
    moved: int = 0
    proven: int | None = None
    notes: Sequence[str] = ()
    skipped: int = 0


def canonical(path: str) -> str:
    """The path of a file as this sink writes it: readers take s3a, s3n and further slashes behind the bucket alike."""
    return re.sub(r"^s3[an]?://([^/]+)/+", r"s3://\1/", path)


def audit_table(
    files: Iterable[TableFile],
    objects: Iterable[tuple[str, ClosedObject]],
    position: TablePosition,
    copied_from: int,
    own: Collection[str],
    *,
    is_rolled_back: bool = False,
    texts: PathTexts = _no_texts,
    skipped: SkippedObjects = NONE_SKIPPED,
) -> TableAudit:
    """The audit by metadata alone. `own`: the prefixes of the sink's paths; other arguments are those of
    `MetadataAudit`. `objects` can be iterated again."""
    found = MetadataAudit(FileIndex(files, own), files, position, copied_from, texts)
    found.skip(skipped, objects)
    found.compare(objects)
    return found.result(is_rolled_back=is_rolled_back)


@dataclass(frozen=True)
class _Skips:
    """The skipped objects of a table among those that it lacks. `keys`: those of the skipped ones; None: all that it
    lacks are. `unknown`: the number of their records, if it is not certain which they are."""

    skipped: SkippedObjects = NONE_SKIPPED
    keys: Collection[str] | None = ()
    unknown: int = 0

    @classmethod
    def of(cls, skipped: SkippedObjects, absent: Iterable[ClosedObject]) -> _Skips:
        every, listed = NOTHING, NOTHING
        for o in absent:
            every = every.with_objects([o])
            listed = listed.with_objects([o] if o.key in skipped.keys else [])
        if every == skipped.total:
            return cls(skipped, None)
        is_listed = listed == skipped.total
        return cls(skipped, skipped.keys if is_listed else (), 0 if is_listed else skipped.total.records)

    def has(self, o: ClosedObject) -> bool:
        """Whether an object that the table lacks was skipped."""
        return self.keys is None or o.key in self.keys

    @property
    def note(self) -> str:
        """What a finding of a missing object has to say."""
        count = self.skipped.total.objects
        return f". The table was registered without {count:,} objects, and it lacks others, too" if self.unknown else ""


class MetadataAudit:
    """Compares the files of `index` with the acknowledged objects by path. Objects that were acknowledged up to
    `copied_from` have records that were copied again. `texts`: what the path of an object has for the columns that only
    paths have. `files` are those of the index, which are read again to name files below the sink's prefixes that are no
    objects."""

    def __init__(
        self,
        index: FileIndex,
        files: Iterable[TableFile],
        position: TablePosition,
        copied_from: int,
        texts: PathTexts = _no_texts,
    ) -> None:
        self._files = files
        self.index = index
        self._position = position
        self._after = copied_from if position.record > copied_from else 0
        """A table of the generation before has its objects."""
        self._texts = texts
        self.findings = Findings()
        self._missing = Findings()
        self._objects = self._waiting = self._moved = 0
        self._skips = _Skips()

    def skip(self, skipped: SkippedObjects, objects: Iterable[tuple[str, ClosedObject]]) -> None:
        """Finds out which of the objects are the skipped ones; before `compare`."""
        if skipped.total.objects:
            self._skips = _Skips.of(skipped, self._absent(objects))

    def _absent(self, objects: Iterable[tuple[str, ClosedObject]]) -> Iterator[ClosedObject]:
        rest = iter(objects)
        while batch := list(islice(rest, _OBJECTS)):
            for (_, o), found in zip(batch, self.index.look_up([path for path, _ in batch]), strict=True):
                if not found and self._is_expected(o):
                    yield o

    def compare(self, objects: Iterable[tuple[str, ClosedObject]], see: SeeObject = _ignore) -> None:
        """Compares the objects, with their paths."""
        rest = iter(objects)
        while batch := list(islice(rest, _OBJECTS)):
            for (path, o), found in zip(batch, self.index.look_up([path for path, _ in batch]), strict=True):
                self._compare(path, o, found)
                if found or (self._is_expected(o) and not self._skips.has(o)):
                    see(o, bool(found))

    def result(self, *, is_rolled_back: bool = False, by_rows: bool = False) -> TableAudit:
        """The result after all objects were compared. `by_rows`: rows show which records are missing, if there are
        files of others."""
        others = self.index.others
        if is_rolled_back:
            message = "the snapshot of the position is not in the history of the table: it was rolled back or replaced"
            self.findings.add(TableFinding(TableFindingKind.ROLLED_BACK, "", message))
        if self.index.has_unknown:
            for path in self._unknown():
                message = "the file is below a prefix of the sink, and the ledger does not list it for this topic"
                self.findings.add(TableFinding(TableFindingKind.FILE_UNKNOWN, path, message))
        unknown = self._skips.unknown
        is_missing = self._moved - unknown > int(others.sum()) or (unknown and self._moved and not len(others))
        if is_missing and not (by_rows and len(others)):
            self.findings.merge(self._missing)
        return TableAudit(
            objects=self._objects,
            records=self.index.records,
            waiting=self._waiting,
            others=len(others),
            findings=self.findings.sorted(),
            more=self.findings.more,
            moved=self._moved,
            skipped=self._skips.skipped.total.objects,
        )

    def _unknown(self) -> Iterator[str]:
        seen: set[str] = set()
        for file in self._files:
            if file.path.startswith(self.index.own) and file.path not in seen and not self.index.is_found(file.path):
                seen.add(file.path)
                yield file.path

    def _is_expected(self, o: ClosedObject) -> bool:
        return self._after < o.acknowledged <= self._position.record

    def _compare(self, path: str, o: ClosedObject, files: Sequence[IndexedFile]) -> None:
        is_ahead = o.acknowledged > self._position.record
        self._waiting += is_ahead
        if not files:
            if self._is_expected(o) and not self._skips.has(o):
                self._moved += o.offsets.count
                self._missing.add(_missing(path, o, self._skips.note))
            return
        self._objects += 1
        for kind, message in self._problems(o, files):
            self.findings.add(TableFinding(kind, path, message))
        if o.acknowledged <= self._after:
            message = (
                f"record {o.acknowledged:,} has acknowledged the object, before the offset reset of record "
                f"{self._after:,}: its records were copied again, and are in the table twice"
            )
            self.findings.add(TableFinding(TableFindingKind.BEFORE_RESET, path, message))
        if o.key in self._skips.skipped.keys:
            message = "the object did not exist when the table was registered, and another writer has added it since"
            self.findings.add(TableFinding(TableFindingKind.FILE_UNKNOWN, path, message))
        if is_ahead:
            message = (
                f"record {o.acknowledged:,} has acknowledged the object, and the table has {self._position}: a "
                "registration would add it again"
            )
            self.findings.add(TableFinding(TableFindingKind.AHEAD, path, message))

    def _problems(self, o: ClosedObject, files: Sequence[IndexedFile]) -> Iterator[tuple[TableFindingKind, str]]:
        if len(files) > 1:
            yield TableFindingKind.FILE_TWICE, f"the file is in the table {len(files)} times"
        expected = self._texts(o)
        for file in dict.fromkeys(files):
            if (file.records, file.size) != (o.offsets.count, o.bytes):
                yield (
                    TableFindingKind.FILE_MISMATCH,
                    f"the table says {file.records:,} records and {file.size:,} bytes, the ledger {o.offsets.count:,} "
                    f"and {o.bytes:,}",
                )
            if problem := _partition_problem(file, expected):
                message = f"the partition of the file is not that of its rows: {problem}. Filters may lose its rows"
                yield TableFindingKind.PARTITION_WRONG, message


def _partition_problem(file: IndexedFile, expected: Mapping[str, str]) -> str:
    found = dict(file.texts)
    if file.problem:
        return file.problem
    for name in sorted({*expected, *found}):
        if expected.get(name) != found.get(name):
            return f"field {name} is {found.get(name)!r}, and the path has {expected.get(name)!r}"
    return ""


def _missing(path: str, o: ClosedObject, note: str) -> TableFinding:
    message = (
        f"record {o.acknowledged:,} has acknowledged the object, and its {o.offsets.count:,} records are missing{note}"
    )
    return TableFinding(TableFindingKind.OBJECT_MISSING, path, message)
