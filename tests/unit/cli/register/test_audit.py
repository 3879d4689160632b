"""`s3sink verify --table`: what it prints and ends with."""

from __future__ import annotations

import json

import pytest

from sink_job.cli import main as cli
from sink_job.cli.register.audit import exit_code
from sink_job.tables.audit import TableAudit, TableFinding, TableFindingKind
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


def test_objects_are_not_read_with_it(sink: RegisteredSink, capsys: pytest.CaptureFixture[str]) -> None:
    assert sink.verify("--deep") == 2
    assert "--table cannot be combined with --deep" in capsys.readouterr().err


def test_a_manifest_without_tables_is_an_error(sink_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["verify", sink_file, "--table"]) == 2
    assert "spec.tables is missing" in capsys.readouterr().err
