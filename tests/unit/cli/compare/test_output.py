"""The output of `s3sink compare`, as a table and JSON."""

from __future__ import annotations

import json

import pytest

from sink_job.cli.compare.output import ComparisonReport, as_json, exit_code_of, show
from sink_job.compare.results import DifferenceType, PartitionComparison, SideDifference


def report(*partitions: PartitionComparison, deep: bool = False, ignored: int = 0) -> ComparisonReport:
    return ComparisonReport("default.log", "lake", "s3://old/connect", "old", deep, ignored, partitions)


EQUAL = PartitionComparison("log", 0, 0, 1_200, 3, 3, 3, both=((0, 1_199),))
MANY = [SideDifference(DifferenceType.KEY_DIFFERS, offset, "differs", "a", "b") for offset in range(25)]


def test_equal_keys_are_a_short_table(capsys: pytest.CaptureFixture[str]) -> None:
    show(report(EQUAL, ignored=2))
    assert capsys.readouterr().out == (
        "TOPIC  PARTITION  FROM     TO  OBJECTS  OTHER_OBJECTS  EQUAL_KEYS  RESULT\n"
        "log            0     0  1,200        3              3           3  EQUAL\n"
        "\n"
        "note: 2 objects below s3://old/connect have other keys or another format\n"
        "EQUAL: 3 objects have the same keys below s3://old/connect; --deep compares their records\n"
    )


def test_findings_have_the_keys_of_both_sides_and_are_shown_up_to_a_limit(capsys: pytest.CaptureFixture[str]) -> None:
    show(report(PartitionComparison("log", 0, 0, 25, findings=tuple(MANY))))
    lines = capsys.readouterr().out.splitlines()
    assert lines[3] == "DIFFERENT: log-0 offset 0: differs (s3://lake/a, s3://old/b) [KeyDiffers]"
    assert lines[23] == "DIFFERENT: log-0: 5 more findings; -o json lists them"


def test_records_that_the_sink_lacks_decide_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    missing = SideDifference(DifferenceType.RECORDS_MISSING, 7, "missing", None, "b")
    found = report(PartitionComparison("log", 1, 0, 25, findings=(*MANY[:1], missing)), EQUAL)
    show(found)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].endswith("MISSING at 0")
    assert lines[-1] == "MISSING: 1 of 2 topic-partitions; first finding: log-1 offset 0"
    assert exit_code_of(found) == 5


def test_the_first_offset_ranges_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    ranges = tuple((first, first + 4) for first in range(0, 50, 10))
    show(report(PartitionComparison("log", 0, 0, 50, only_other=ranges, findings=tuple(MANY[:1]))))
    assert "offsets: log-0: only the other: 0 to 4, 10 to 14, 20 to 24 and 2 more" in capsys.readouterr().out


def test_a_topic_partition_without_objects_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    show(report(EQUAL, PartitionComparison("log", 1, 5, 5, notes=("why",))))
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].endswith("NOTHING COMPARED")
    assert "note: log-1: why" in lines


def test_json_has_everything() -> None:
    document = json.loads(as_json(report(PartitionComparison("log", 0, 0, 25, findings=tuple(MANY)))))
    assert (document["equal"], document["exitCode"], document["other"]) == (False, 6, "s3://old/connect")
    assert len(document["partitions"][0]["findings"]) == 25
    assert document["partitions"][0]["findings"][3] == {
        "type": "KeyDiffers",
        "offset": 3,
        "message": "differs",
        "key": "a",
        "otherKey": "b",
    }


def test_a_key_with_escapes_of_the_terminal_is_quoted(capsys: pytest.CaptureFixture[str]) -> None:
    finding = SideDifference(DifferenceType.KEY_DIFFERS, 0, "differs", "a", "b\x1b[31m\nc")
    show(report(PartitionComparison("log", 0, 0, 25, findings=(finding,))))
    assert 'differs (s3://lake/a, "s3://old/b\\u001b[31m\\nc") [KeyDiffers]' in capsys.readouterr().out
