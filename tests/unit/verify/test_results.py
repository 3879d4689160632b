"""Results of a verification: what adds up, and which exit code a finding has."""

from __future__ import annotations

import pytest

from sink_job.api.errors import DataLoss, ObjectConflict
from sink_job.verify.results import MAX_FINDINGS, ComparisonResult, Finding, FindingType, PartitionResult

LOSSES = {
    FindingType.OBJECT_MISSING,
    FindingType.OFFSETS_MISSING,
    FindingType.COMMITTED_OFFSET_AHEAD,
    FindingType.LOG_TRUNCATED,
}


@pytest.mark.parametrize("finding", FindingType)
def test_missing_records_exit_as_data_loss_and_other_records_as_a_conflict(finding: FindingType) -> None:
    assert finding.exit_code == (DataLoss.exit_code if finding in LOSSES else ObjectConflict.exit_code)


def findings(start: int, count: int) -> list[Finding]:
    return [Finding(FindingType.RECORD_MISMATCH, start + n, "differs") for n in range(count)]


def test_the_counts_of_two_comparisons_add_up() -> None:
    total = ComparisonResult(1, 2, 3, 4, 5, findings(0, 1))
    total.add(ComparisonResult(10, 20, 30, 40, 50, findings(5, 1)))
    assert total == ComparisonResult(11, 22, 33, 44, 55, [*findings(0, 1), *findings(5, 1)])


def test_only_the_first_findings_are_kept() -> None:
    total = ComparisonResult(findings=findings(0, MAX_FINDINGS - 1))
    total.add(ComparisonResult(findings=findings(500, 2)))
    assert [each.offset for each in total.findings] == [*range(MAX_FINDINGS - 1), 500]


@pytest.mark.parametrize(("end", "lag"), [(None, None), (10, 3), (7, 0), (6, 0)])
def test_the_lag_is_the_number_of_offsets_up_to_the_log_end(end: int | None, lag: int | None) -> None:
    result = PartitionResult("flights", 0, 0, 7, 9, 1, 7, 70, 2, 0, end=end)
    assert result.lag == lag
