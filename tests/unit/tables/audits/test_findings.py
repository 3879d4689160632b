"""What an audit lists."""

from __future__ import annotations

import pytest

from sink_job.tables.audits import findings
from sink_job.tables.audits.findings import Findings, TableFinding, TableFindingKind


def test_findings_above_the_limit_of_a_kind_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "MAX_LISTED", 2)
    found = Findings()
    for path in ("c", "b", "a"):
        found.add(TableFinding(TableFindingKind.FILE_TWICE, path, ""))
    found.add(TableFinding(TableFindingKind.OBJECT_MISSING, "d", ""))
    assert ([each.path for each in found.sorted()], found.more) == (["b", "c", "d"], 1)


def test_findings_are_counted_alone_once_the_limit_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "MAX_LISTED", 1)
    found = Findings()
    assert not found.count(TableFindingKind.RECORD_TWICE, 5)
    found.add(TableFinding(TableFindingKind.RECORD_TWICE, "", ""))
    assert found.count(TableFindingKind.RECORD_TWICE, 5)
    assert (len(found.sorted()), found.more) == (1, 5)


def test_findings_are_in_the_order_of_their_records() -> None:
    found = Findings()
    for partition, offset in ((1, 0), (0, 10), (0, 9)):
        found.add(TableFinding(TableFindingKind.RECORD_MISSING, "", "", partition, offset))
    assert [(each.partition, each.offset) for each in found.sorted()] == [(0, 9), (0, 10), (1, 0)]
