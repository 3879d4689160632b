"""What `s3sink verify` prints and ends with."""

from __future__ import annotations

import json

import msgspec
import pytest

from sink_job.cli import verify_output
from sink_job.cli.verify_output import VerifyReport
from sink_job.verify.results import ComparisonResult, Finding, FindingType, PartitionResult

MISSING = Finding(
    FindingType.OBJECT_MISSING, 1500, "the object of offsets 1500 to 1599 is not in the bucket", "topics/t/k.json"
)
DIFFERS = Finding(FindingType.OBJECT_MISMATCH, 1200, "another object stands there")


def verdict(
    partition: int = 0, *wrong: Finding, compared: ComparisonResult | None = None, notes: tuple[str, ...] = ()
) -> PartitionResult:
    return PartitionResult(
        topic="flights",
        partition=partition,
        start=1000,
        committed=2000,
        next=2010,
        objects=10,
        records=990,
        bytes=123_456,
        pending_records=7,
        gaps=13,
        end=2345,
        notes=notes,
        findings=wrong,
        compared=compared,
    )


def of(*verdicts: PartitionResult, foreign: int = 0, notes: tuple[str, ...] = ()) -> VerifyReport:
    return VerifyReport(
        sink_id="default.flights", bucket="b", record=12, foreign=foreign, notes=notes, partitions=verdicts
    )


def shown(found: VerifyReport, capsys: pytest.CaptureFixture[str]) -> list[str]:
    verify_output.show(found)
    return capsys.readouterr().out.splitlines()


def test_all_right_ends_with_0() -> None:
    assert verify_output.exit_code(of(verdict(0), verdict(1))) == 0


def test_what_is_missing_decides_on_the_exit_code() -> None:
    assert verify_output.exit_code(of(verdict(0, DIFFERS, MISSING))) == 5
    assert verify_output.exit_code(of(verdict(0, DIFFERS), verdict(1))) == 6


def test_the_table_is_plain_columns_where_it_is_piped(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(of(verdict(0), verdict(11)), capsys)
    assert lines[:3] == [
        "TOPIC    PARTITION   FROM  COMMITTED    END  LAG  OBJECTS  RECORDS     BYTES  GAPS  RESULT",
        "flights          0  1,000      2,000  2,345  345       10      990  123.5 kB    13  OK",
        "flights         11  1,000      2,000  2,345  345       10      990  123.5 kB    13  OK",
    ]
    assert lines[-1] == (
        "OK: every record up to the committed offsets is in exactly one object: 20 objects with 1,980 records "
        "(246.9 kB); 14 more records are in open objects"
    )


def test_what_is_wrong_is_told_with_its_offset_and_the_first_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(of(verdict(0), verdict(1, DIFFERS, MISSING)), capsys)
    assert lines[2].endswith("FAILED at 1,200")
    assert lines[-3:] == [
        "FAILED: flights-1 offset 1200: another object stands there [ObjectMismatch]",
        "FAILED: flights-1 offset 1500: the object of offsets 1500 to 1599 is not in the bucket "
        "(s3://b/topics/t/k.json) [ObjectMissing]",
        "FAILED: 1 of 2 topic-partitions; first flights-1 offset 1200",
    ]


def test_a_flood_of_findings_is_cut_short(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(of(verdict(0, *[DIFFERS] * 100)), capsys)
    assert "FAILED: flights-0: 80 more findings; -o json lists all" in lines


def test_what_was_compared_has_its_columns(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(of(verdict(compared=ComparisonResult(objects=8, expired_objects=2))), capsys)
    assert lines[0].split()[-3:] == ["COMPARED", "EXPIRED", "RESULT"]
    assert lines[1].split()[-3:] == ["8", "2", "OK"]


def test_notes_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(of(verdict(notes=("the last commit was lost",)), foreign=3, notes=("topic x is gone",)), capsys)
    assert "note: flights-0: the last commit was lost" in lines
    assert "note: topic x is gone" in lines
    assert "note: 3 objects under the topic prefixes were not written by this sink" in lines


def test_json_holds_all() -> None:
    document = json.loads(verify_output.as_json(of(verdict(0, DIFFERS), verdict(1))))
    assert (document["passed"], document["exitCode"], document["sinkId"]) == (False, 6, "default.flights")
    assert document["partitions"][0]["findings"] == [
        {"type": "ObjectMismatch", "offset": 1200, "message": "another object stands there"}
    ]
    assert (document["partitions"][1]["committed"], document["partitions"][1]["lag"]) == (2000, 345)
    assert msgspec.json.decode(verify_output.as_json(of(verdict())))["passed"] is True
