"""Findings decide the exit code, and are limited for each type."""

from __future__ import annotations

import pytest

from sink_job.compare import results
from sink_job.compare.results import DifferenceType, PartitionComparison, SideDifference, exit_code, limited


def found(*kinds: DifferenceType) -> list[PartitionComparison]:
    findings = tuple(SideDifference(kind, 0, "") for kind in kinds)
    return [PartitionComparison("t", 0, 0, 1), PartitionComparison("t", 1, 0, 1, findings=findings)]


def test_the_exit_code_is_5_if_the_sink_lacks_records_and_else_6() -> None:
    assert exit_code(found()) == 0
    assert exit_code(found(DifferenceType.KEY_DIFFERS)) == 6
    assert exit_code(found(DifferenceType.KEY_DIFFERS, DifferenceType.RECORDS_MISSING)) == 5


def test_each_type_has_a_code() -> None:
    losses = {kind.name for kind in DifferenceType if kind.exit_code == 5}
    assert losses == {"OBJECT_MISSING", "OBJECT_DAMAGED", "OFFSETS_MISSING", "RECORDS_MISSING"}


def test_the_first_findings_of_each_type_remain_with_the_number_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "MAX_FINDINGS", 2)
    many = [SideDifference(DifferenceType.KEY_DIFFERS, offset, "differs") for offset in (9, 3, 7, 5)]
    kept = limited([*many, SideDifference(DifferenceType.RECORDS_MISSING, 8, "missing")])
    assert [(each.offset, each.message) for each in kept] == [
        (3, "differs"),
        (5, "differs; 2 more such findings"),
        (8, "missing"),
    ]


def test_a_result_has_its_topic_partition() -> None:
    assert str(found()[0].topic_partition) == "t-0"
