"""What `s3sink verify` prints and ends with."""

from __future__ import annotations

import json

import msgspec
import pytest

from sink_job.cli import verify_output
from sink_job.cli.verify_output import Proof
from sink_job.verify.audit import Compared, Finding, Verdict, Wrong

MISSING = Finding(
    Wrong.OBJECT_MISSING, 1500, "the object of offsets 1500 to 1599 is not in the bucket", "topics/t/k.json"
)
DIFFERS = Finding(Wrong.OBJECT_DIFFERS, 1200, "another object stands there")


def verdict(
    partition: int = 0, *wrong: Finding, compared: Compared | None = None, notes: tuple[str, ...] = ()
) -> Verdict:
    return Verdict(
        topic="flights",
        partition=partition,
        start=1000,
        committed=2000,
        next=2010,
        objects=10,
        records=990,
        bytes=123_456,
        waiting=7,
        holes=13,
        end=2345,
        notes=notes,
        wrong=wrong,
        compared=compared,
    )


def of(*verdicts: Verdict, foreign: int = 0, notes: tuple[str, ...] = ()) -> Proof:
    return Proof(sink_id="default.flights", bucket="b", record=12, foreign=foreign, notes=notes, partitions=verdicts)


def shown(found: Proof, capsys: pytest.CaptureFixture[str]) -> list[str]:
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
        "TOPIC    PARTITION   FROM  COMMITTED    END  LAG  OBJECTS  RECORDS     BYTES  HOLES  VERDICT",
        "flights          0  1,000      2,000  2,345  345       10      990  123.5 kB     13  right",
        "flights         11  1,000      2,000  2,345  345       10      990  123.5 kB     13  right",
    ]
    assert lines[-1] == (
        "right: every record up to the committed offsets is in exactly one object: 20 objects with 1,980 records "
        "(246.9 kB); 14 more records are in open objects"
    )


def test_what_is_wrong_is_told_with_its_offset_and_the_first_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(of(verdict(0), verdict(1, DIFFERS, MISSING)), capsys)
    assert lines[2].endswith("wrong at 1,200")
    assert lines[-3:] == [
        "wrong: flights-1 offset 1200: another object stands there [ObjectDiffers]",
        "wrong: flights-1 offset 1500: the object of offsets 1500 to 1599 is not in the bucket "
        "(s3://b/topics/t/k.json) [ObjectMissing]",
        "wrong: 1 of 2 topic-partitions; first flights-1 offset 1200",
    ]


def test_a_flood_of_findings_is_cut_short(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(of(verdict(0, *[DIFFERS] * 100)), capsys)
    assert "wrong: flights-0: and 80 more; -o json has all" in lines


def test_what_was_compared_has_its_columns(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(of(verdict(compared=Compared(objects=8, gone=2))), capsys)
    assert lines[0].split()[-4:] == ["COMPARED", "NOT", "HELD", "VERDICT"]
    assert lines[1].split()[-3:] == ["8", "2", "right"]


def test_notes_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(of(verdict(notes=("the last commit was lost",)), foreign=3, notes=("topic x is gone",)), capsys)
    assert "note: flights-0: the last commit was lost" in lines
    assert "note: topic x is gone" in lines
    assert "note: 3 other objects lie below the topics' prefixes; this sink makes no such keys" in lines


def test_json_holds_all() -> None:
    document = json.loads(verify_output.as_json(of(verdict(0, DIFFERS), verdict(1))))
    assert (document["right"], document["exitCode"], document["sinkId"]) == (False, 6, "default.flights")
    assert document["partitions"][0]["wrong"] == [
        {"wrong": "ObjectDiffers", "offset": 1200, "message": "another object stands there"}
    ]
    assert (document["partitions"][1]["committed"], document["partitions"][1]["lag"]) == (2000, 345)
    assert msgspec.json.decode(verify_output.as_json(of(verdict())))["right"] is True
