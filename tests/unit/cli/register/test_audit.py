"""`s3sink verify --table`: what it prints and ends with."""

from __future__ import annotations

import json

import pytest

from sink_job.cli import main as cli
from sink_job.cli.register.audit import exit_code, show
from sink_job.tables.audit import TableAudit
from sink_job.tables.audits.findings import TableFinding, TableFindingKind
from tests.support.registered_sink import RegisteredSink


def test_a_registered_table_is_ok(sink: RegisteredSink, capsys: pytest.CaptureFixture[str]) -> None:
    sink.write(25)
    sink.register("--from-beginning")
    sink.write(45)
    capsys.readouterr()
    assert sink.verify() == 0
    assert capsys.readouterr().out == (
        "lake.log: OK; 3 objects of the sink, 25 records in all files; 2 published objects are not registered yet\n"
    )
    assert sink.verify("-o", "json") == 0
    (table,) = json.loads(capsys.readouterr().out)["tables"]
    assert (table["table"], table["objects"], table["waiting"], table["findings"]) == ("lake.log", 3, 2, [])


def test_objects_that_were_skipped_are_a_note(sink: RegisteredSink, capsys: pytest.CaptureFixture[str]) -> None:
    sink.describe("lake.{topic}", onMissing="Skip")
    sink.write(25)
    del sink.fixture.s3.objects[sink.objects()[1]]
    sink.register("--from-beginning")
    capsys.readouterr()
    assert sink.verify() == 0
    shown = capsys.readouterr().out
    assert shown.startswith("lake.log: OK; 2 objects of the sink, 15 records in all files")
    assert "note: 1 objects did not exist when the table was registered, and are not in it (onMissing: Skip)" in shown
    sink.verify("-o", "json")
    assert json.loads(capsys.readouterr().out)["tables"][0]["skipped"] == 1


def test_a_table_that_does_not_exist_is_an_error(sink: RegisteredSink, capsys: pytest.CaptureFixture[str]) -> None:
    sink.write(25)
    assert sink.verify() == 7
    assert "TableNotRegistered: table lake.log does not exist" in capsys.readouterr().err


def test_findings_decide_about_the_exit_code() -> None:
    def audit(*kinds: TableFindingKind) -> TableAudit:
        return TableAudit(0, 0, 0, 0, [TableFinding(kind, "", "") for kind in kinds])

    assert exit_code([audit(), audit()]) == 0
    assert exit_code([audit(), audit(TableFindingKind.FILE_TWICE)]) == 6
    assert exit_code([audit(TableFindingKind.FILE_TWICE), audit(TableFindingKind.OBJECT_MISSING)]) == 5


def test_the_bucket_is_not_listed_with_it(sink: RegisteredSink, capsys: pytest.CaptureFixture[str]) -> None:
    assert sink.verify("--removed-before", "2026-01-01T00:00:00Z") == 2
    assert "--table cannot be combined with --removed-before" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("deep", "has_envelope", "text"),
    [
        (True, True, "Of the 30 records whose objects are not in the table, 29 are in the rows of these files, each"),
        (False, True, "Whether records are missing cannot be verified by metadata: --deep reads the rows"),
        (False, False, "cannot be verified by metadata; format.envelope makes rows verifiable"),
    ],
)
def test_the_text_says_what_is_known_of_files_of_others(
    capsys: pytest.CaptureFixture[str], deep: bool, has_envelope: bool, text: str
) -> None:
    finding = TableFinding(TableFindingKind.RECORD_MISSING, "", "partition 0, offset 7: lost", 0, 7)
    audit = TableAudit(1, 40, 0, 2, [finding], moved=30, proven=29 if deep else None, notes=["why"])
    show("lake.log", audit, has_envelope=has_envelope)
    lines = capsys.readouterr().out.splitlines()
    assert text in lines[1]
    assert lines[2:] == ["  note: why", "  TableRecordMissing: partition 0, offset 7: lost"]


def test_a_manifest_without_tables_is_an_error(sink_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["verify", sink_file, "--table"]) == 2
    assert "spec.tables is missing" in capsys.readouterr().err
