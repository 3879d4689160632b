"""The output and exit code of `s3sink verify`."""

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
DIFFERS = Finding(FindingType.OBJECT_MISMATCH, 1200, "an object with different content exists there")


def result(
    partition: int = 0, *findings: Finding, compared: ComparisonResult | None = None, notes: tuple[str, ...] = ()
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
        findings=findings,
        compared=compared,
    )


def of(*results: PartitionResult, foreign: int = 0, notes: tuple[str, ...] = ()) -> VerifyReport:
    return VerifyReport(
        sink_id="default.flights", bucket="b", record=12, foreign=foreign, notes=notes, partitions=results
    )


def shown(found: VerifyReport, capsys: pytest.CaptureFixture[str]) -> list[str]:
    verify_output.show(found)
    return capsys.readouterr().out.splitlines()


def test_without_findings_the_exit_code_is_0() -> None:
    assert verify_output.exit_code(of(result(0), result(1))) == 0


def test_missing_records_determine_the_exit_code() -> None:
    assert verify_output.exit_code(of(result(0, DIFFERS, MISSING))) == 5
    assert verify_output.exit_code(of(result(0, DIFFERS), result(1))) == 6


def test_the_table_has_plain_columns_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(of(result(0), result(11)), capsys)
    assert lines[:3] == [
        "TOPIC    PARTITION   FROM  COMMITTED    END  LAG  OBJECTS  RECORDS     BYTES  GAPS  RESULT",
        "flights          0  1,000      2,000  2,345  345       10      990  123.5 kB    13  OK",
        "flights         11  1,000      2,000  2,345  345       10      990  123.5 kB    13  OK",
    ]
    assert lines[-1] == (
        "OK: every record up to the committed offsets is in exactly one object: 20 objects with 1,980 records "
        "(246.9 kB); 14 more records are in open objects"
    )


@pytest.mark.parametrize(
    ("objects", "where"),
    [(2, "which are in 4 of the objects"), (0, "which are in their topic")],
    ids=["objects", "topic"],
)
def test_the_total_has_the_dead_letters_and_their_objects(
    objects: int, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    one = msgspec.structs.replace(result(), dead_letters=30, dead_letter_objects=objects)
    lines = shown(of(one, one), capsys)
    assert f"20 objects with 1,980 records and 60 dead letters, {where} (246.9 kB); 14 more" in lines[-1]


def test_findings_have_their_offsets_and_the_last_line_repeats_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(of(result(0), result(1, DIFFERS, MISSING)), capsys)
    assert lines[2].endswith("FAILED at 1,200")
    assert lines[-4:-2] == [
        "FAILED: flights-1 offset 1200: an object with different content exists there [ObjectMismatch]",
        "FAILED: flights-1 offset 1500: the object of offsets 1500 to 1599 is not in the bucket "
        "(s3://b/topics/t/k.json) [ObjectMissing]",
    ]
    assert lines[-1] == "FAILED: 1 of 2 topic-partitions; first finding: flights-1 offset 1200"


@pytest.mark.parametrize(
    ("finding", "commands"),
    [
        (FindingType.OBJECT_MISSING, ["s3sink repair SINK.yaml restores"]),
        (FindingType.OBJECT_MISMATCH, ["s3sink repair SINK.yaml restores"]),
        (FindingType.RECORD_MISMATCH, ["s3sink repair SINK.yaml --key"]),
        (FindingType.DUPLICATE_OFFSETS, []),
    ],
)
def test_findings_that_repair_restores_name_the_command(
    finding: FindingType, commands: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(of(result(0, Finding(finding, 3, "…"))), capsys)
    found = [line for line in lines if "s3sink repair" in line]
    assert len(found) == len(commands)
    assert all(command in line for command, line in zip(commands, found, strict=True))


def test_the_number_of_printed_findings_is_limited(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(of(result(0, *[DIFFERS] * 100)), capsys)
    assert "FAILED: flights-0: 80 more findings; -o json lists all" in lines


def test_a_deep_verification_has_its_own_columns(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(of(result(compared=ComparisonResult(objects=8, kafka_gone_objects=2))), capsys)
    assert lines[0].split()[-3:] == ["COMPARED", "KAFKA_GONE", "RESULT"]
    assert lines[1].split()[-3:] == ["8", "2", "OK"]


def test_notes_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(of(result(notes=("the last commit was lost",)), foreign=3, notes=("topic x is gone",)), capsys)
    assert "note: flights-0: the last commit was lost" in lines
    assert "note: topic x is gone" in lines
    assert "note: 3 objects under the topic prefixes were not written by this sink" in lines


def test_json_contains_all_findings() -> None:
    document = json.loads(verify_output.as_json(of(result(0, DIFFERS), result(1))))
    assert (document["passed"], document["exitCode"], document["sinkId"]) == (False, 6, "default.flights")
    assert document["partitions"][0]["findings"] == [
        {"type": "ObjectMismatch", "offset": 1200, "message": "an object with different content exists there"}
    ]
    assert (document["partitions"][1]["committed"], document["partitions"][1]["lag"]) == (2000, 345)
    assert msgspec.json.decode(verify_output.as_json(of(result())))["passed"] is True


def test_removed_objects_have_a_column_if_there_are_any(capsys: pytest.CaptureFixture[str]) -> None:
    header = shown(of(result(0)), capsys)[0].split()
    assert "REMOVED" not in header
    lines = shown(of(result(0), msgspec.structs.replace(result(1), removed=1_200)), capsys)
    at = lines[0].split().index("REMOVED")
    assert [line.split()[at] for line in lines[1:3]] == ["0", "1,200"]
