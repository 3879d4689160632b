"""What an audit of a table has found. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MAX_LISTED: Final = 10_000
"""Maximum number of findings of a kind that are listed. The others are counted."""


class TableFindingKind(StrEnum):
    """What is wrong. Records are missing only with OBJECT_MISSING, RECORD_MISSING and ROLLED_BACK."""

    OBJECT_MISSING = "TableObjectMissing"
    FILE_TWICE = "TableFileTwice"
    FILE_UNKNOWN = "TableFileUnknown"
    FILE_MISMATCH = "TableFileMismatch"
    PARTITION_WRONG = "TablePartitionWrong"
    AHEAD = "TableAhead"
    BEFORE_RESET = "TableFileBeforeReset"
    ROLLED_BACK = "TableRolledBack"
    RECORD_MISSING = "TableRecordMissing"
    RECORD_TWICE = "TableRecordTwice"
    RECORD_UNKNOWN = "TableRecordUnknown"

    @property
    def is_missing(self) -> bool:
        """Whether the table lacks records."""
        kinds = (TableFindingKind.OBJECT_MISSING, TableFindingKind.RECORD_MISSING, TableFindingKind.ROLLED_BACK)
        return self in kinds


@dataclass(frozen=True)
class TableFinding:
    """A finding. `path` is that of a file or object; empty: of the whole table. `partition` and `offset`: the first
    record of a finding about records."""

    kind: TableFindingKind
    path: str
    message: str
    partition: int | None = None
    offset: int | None = None


class Findings:
    """Collects findings, at most MAX_LISTED of a kind."""

    def __init__(self) -> None:
        self._listed: list[TableFinding] = []
        self._counts: Counter[TableFindingKind] = Counter()

    def add(self, finding: TableFinding) -> None:
        """Adds a finding, or counts it."""
        self._counts[finding.kind] += 1
        if self._counts[finding.kind] <= MAX_LISTED:
            self._listed.append(finding)

    def count(self, kind: TableFindingKind, number: int) -> bool:
        """Counts findings without listing them, if MAX_LISTED of the kind are listed; whether it has done so."""
        is_full = self._counts[kind] >= MAX_LISTED
        self._counts[kind] += number if is_full else 0
        return is_full

    def merge(self, others: Findings) -> None:
        """Adds the findings of `others`."""
        self._listed += others._listed
        self._counts += others._counts

    @property
    def more(self) -> int:
        """The number of findings that are not listed."""
        return self._counts.total() - len(self._listed)

    def sorted(self) -> list[TableFinding]:
        """Those that are listed, by kind, path and place."""
        return sorted(self._listed, key=lambda f: (f.kind, f.path, f.partition or 0, f.offset or 0))
