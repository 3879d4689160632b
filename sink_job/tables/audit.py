"""Compares the files of a table with the ledger: `s3sink verify --table`. Pure.

Files outside of the sink's prefixes are those of a compaction or of another writer. They may hold records of objects
that are not in the table any more, so a missing object is no finding if they have as many records.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from sink_job.ledger.state import ClosedObject
from sink_job.tables.position import TablePosition


class TableFile(NamedTuple):
    """A data file of a table: its path, and its records and size in bytes as the manifest has them. `texts` are the
    values of columns that only paths have, by name; `problem` is what is wrong with other values of its partition."""

    path: str
    records: int
    size: int
    texts: tuple[tuple[str, str | None], ...] = ()
    problem: str = ""


class TableFindingKind(StrEnum):
    """What is wrong. Records are missing only with OBJECT_MISSING and ROLLED_BACK."""

    OBJECT_MISSING = "TableObjectMissing"
    FILE_TWICE = "TableFileTwice"
    FILE_UNKNOWN = "TableFileUnknown"
    FILE_MISMATCH = "TableFileMismatch"
    PARTITION_WRONG = "TablePartitionWrong"
    AHEAD = "TableAhead"
    ROLLED_BACK = "TableRolledBack"

    @property
    def is_missing(self) -> bool:
        """Whether the table lacks records."""
        return self in (TableFindingKind.OBJECT_MISSING, TableFindingKind.ROLLED_BACK)


PathTexts = Callable[[ClosedObject], Mapping[str, str]]


def _no_texts(o: ClosedObject) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class TableFinding:
    """A finding. `path` is that of a file or object; empty: of the whole table."""

    kind: TableFindingKind
    path: str
    message: str


@dataclass(frozen=True)
class TableAudit:
    """The result for a table. `objects` are those of the sink in it, `waiting` those that are published and not
    registered yet, `others` files outside of the sink's prefixes."""

    objects: int
    records: int
    waiting: int
    others: int
    findings: Sequence[TableFinding]


def canonical(path: str) -> str:
    """The path of a file as this sink writes it: readers take s3a, s3n and further slashes behind the bucket alike."""
    return re.sub(r"^s3[an]?://([^/]+)/+", r"s3://\1/", path)


def audit_table(
    files: Iterable[TableFile],
    objects: Mapping[str, ClosedObject],
    position: TablePosition,
    copied_from: int,
    own: Collection[str],
    *,
    is_rolled_back: bool = False,
    texts: PathTexts = _no_texts,
) -> TableAudit:
    """Compares `files` with the acknowledged `objects` by path. Objects that were acknowledged up to `copied_from` have
    records that were copied again. `own` are the prefixes of the sink's paths. `texts`: what the path of an object has
    for the columns that only paths have."""
    all_files = list(files)
    counts = Counter(file.path for file in all_files)
    known = [file for file in all_files if file.path in objects]
    others = [file for file in all_files if file.path not in objects and not file.path.startswith(tuple(own))]
    after = copied_from if position.record > copied_from else 0  # a table of the generation before has its objects
    expected = {path: o for path, o in objects.items() if after < o.acknowledged <= position.record}
    missing = {path: o for path, o in expected.items() if path not in counts}
    findings = [
        *_of_table(is_rolled_back=is_rolled_back),
        *_of_files(all_files, objects, tuple(own)),
        *(_twice(path, count) for path, count in counts.items() if count > 1),
        *_partitions(known, objects, texts),
        *_ahead(known, objects, position),
    ]
    if sum(o.offsets.count for o in missing.values()) > sum(file.records for file in others):
        findings += [_missing(path, o) for path, o in missing.items()]
    return TableAudit(
        objects=len({file.path for file in known}),
        records=sum(file.records for file in all_files),
        waiting=sum(o.acknowledged > position.record for o in objects.values()),
        others=len(others),
        findings=sorted(findings, key=lambda each: (each.kind, each.path)),
    )


def _of_table(*, is_rolled_back: bool) -> Iterator[TableFinding]:
    if is_rolled_back:
        message = "the snapshot of the position is not in the history of the table: it was rolled back or replaced"
        yield TableFinding(TableFindingKind.ROLLED_BACK, "", message)


def _of_files(
    files: Iterable[TableFile], objects: Mapping[str, ClosedObject], own: tuple[str, ...]
) -> Iterator[TableFinding]:
    for file in dict.fromkeys(files):
        o = objects.get(file.path)
        if o is None and file.path.startswith(own):
            message = "the file is below a prefix of the sink, and the ledger does not list it for this topic"
            yield TableFinding(TableFindingKind.FILE_UNKNOWN, file.path, message)
        elif o is not None and (file.records, file.size) != (o.offsets.count, o.bytes):
            message = (
                f"the table says {file.records:,} records and {file.size:,} bytes, the ledger {o.offsets.count:,} and "
                f"{o.bytes:,}"
            )
            yield TableFinding(TableFindingKind.FILE_MISMATCH, file.path, message)


def _partitions(
    files: Iterable[TableFile], objects: Mapping[str, ClosedObject], texts: PathTexts
) -> Iterator[TableFinding]:
    for file in dict.fromkeys(files):
        problem, expected, found = file.problem, texts(objects[file.path]), dict(file.texts)
        for name in sorted({*expected, *found}):
            if expected.get(name) != found.get(name):
                problem = problem or f"field {name} is {found.get(name)!r}, and the path has {expected.get(name)!r}"
        if problem:
            message = f"the partition of the file is not that of its rows: {problem}. Filters may lose its rows"
            yield TableFinding(TableFindingKind.PARTITION_WRONG, file.path, message)


def _twice(path: str, count: int) -> TableFinding:
    return TableFinding(TableFindingKind.FILE_TWICE, path, f"the file is in the table {count} times")


def _ahead(
    files: Iterable[TableFile], objects: Mapping[str, ClosedObject], position: TablePosition
) -> Iterator[TableFinding]:
    for path in {file.path for file in files}:
        if (record := objects[path].acknowledged) > position.record:
            message = (
                f"record {record:,} has acknowledged the object, and the table has {position}: a registration would "
                "add it again"
            )
            yield TableFinding(TableFindingKind.AHEAD, path, message)


def _missing(path: str, o: ClosedObject) -> TableFinding:
    message = f"record {o.acknowledged:,} has acknowledged the object, and its {o.offsets.count:,} records are missing"
    return TableFinding(TableFindingKind.OBJECT_MISSING, path, message)
