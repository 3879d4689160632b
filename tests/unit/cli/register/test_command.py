"""`s3sink register`: what it prints and ends with, on a sink in memory and a catalog on SQLite."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sink_job.api.enums import OutputFormat
from sink_job.cli import main as cli
from sink_job.tables import sink_tables
from sink_job.tables.ledger_reader import read_ledger
from tests.support.registered_sink import RegisteredSink


def test_each_command_adds_what_is_new(sink: RegisteredSink, capsys: pytest.CaptureFixture[str]) -> None:
    sink.write(25)
    assert sink.register("--from-beginning") == 0
    assert "lake.log (new table): added 3 objects of topic log with 25 records" in capsys.readouterr().out
    assert sink.register() == 0
    assert "lake.log: nothing to add; its position is record" in capsys.readouterr().out
    sink.write(45)
    assert sink.register("-o", "json") == 0
    (table,) = json.loads(capsys.readouterr().out)["tables"]
    assert (table["table"], table["objects"], table["records"], table["created"]) == ("lake.log", 2, 20, False)
    assert table["position"]["generation"] == 1
    assert table["error"] is None


def test_a_dry_run_writes_nothing(sink: RegisteredSink, capsys: pytest.CaptureFixture[str]) -> None:
    sink.write(25)
    assert sink.register("--from-beginning", "--dry-run") == 0
    assert "would add 3 objects" in capsys.readouterr().out
    assert not sink.lake.objects
    assert not [*sink.folder.glob("*.db")]


def test_avro_objects_are_added_and_verified(sink: RegisteredSink, capsys: pytest.CaptureFixture[str]) -> None:
    sink.output = OutputFormat.AVRO
    sink.describe("lake.{topic}")
    sink.write(25)
    assert sink.register("--from-beginning", "--dry-run") == 0
    assert "would add 3 objects" in capsys.readouterr().out
    assert not sink.lake.objects
    assert sink.register("--from-beginning") == 0
    sink.write(45)
    assert sink.register() == 0
    capsys.readouterr()
    assert sink.verify() == 0
    assert "5 objects" in capsys.readouterr().out


def test_objects_that_were_left_out_are_counted_and_can_be_added_later(
    sink: RegisteredSink, capsys: pytest.CaptureFixture[str]
) -> None:
    sink.describe("lake.{topic}", onMissing="Skip")
    sink.write(25)
    key = sink.objects()[1]
    gone = sink.fixture.s3.objects.pop(key)
    assert sink.register("--from-beginning") == 0
    assert "; 1 objects did not exist and are not in it, 1 of them in this run" in capsys.readouterr().out
    assert sink.register("-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["tables"][0]["skipped"] == 0
    sink.fixture.s3.objects[key] = gone
    assert sink.register("--from-beginning") == 0
    assert "added 1 objects of topic log with 10 records" in capsys.readouterr().out
    assert sink.register("--from-beginning") == 0
    assert "did not exist" not in capsys.readouterr().out


def test_the_error_of_a_table_is_its_exit_code_and_others_are_registered(
    sink: RegisteredSink, capsys: pytest.CaptureFixture[str]
) -> None:
    sink.write(25)
    assert sink.register("--from-beginning") == 0
    sink.describe("other.{topic}", "lake.{topic}")
    sink.write(45)
    capsys.readouterr()
    assert sink.register() == 7
    shown = capsys.readouterr()
    assert "lake.log: added 2 objects" in shown.out
    assert "TableNotRegistered: table other.log: the table has no position of this sink yet" in shown.err
    assert sink.register("-o", "json", "--table", "other.log") == 7
    (table,) = json.loads(capsys.readouterr().out)["tables"]
    assert table["error"]["reason"] == "TableNotRegistered"


def test_topics_with_the_same_table_are_an_error_and_the_others_are_registered(
    sink: RegisteredSink, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = read_ledger

    def more(*given: Any) -> Any:
        view, objects = read(*given)
        return view, {"a.b": objects["log"], "a_b": objects["log"], **objects}

    monkeypatch.setattr(sink_tables, "read_ledger", more)
    sink.write(25)
    assert sink.register("--from-beginning") == 7
    shown = capsys.readouterr()
    assert "lake.log (new table): added 3 objects" in shown.out
    assert "the topics a.b and a_b have the same table lake.a_b" in shown.err
    assert sink.verify() == 7
    shown = capsys.readouterr()
    assert "lake.log: OK" in shown.out
    assert "the topics a.b and a_b have the same table lake.a_b" in shown.err


def test_an_unknown_table_is_an_error_with_those_of_the_sink(
    sink: RegisteredSink, capsys: pytest.CaptureFixture[str]
) -> None:
    sink.write(25)
    assert sink.register("--table", "lake.other") == 2
    assert "--table lake.other is no table of this sink. Its tables: lake.log" in capsys.readouterr().err


def test_a_manifest_without_tables_is_an_error(sink_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["register", sink_file]) == 2
    assert "spec.tables is missing" in capsys.readouterr().err


def test_a_missing_package_names_the_extras(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError("No module named 'pyiceberg'", name="pyiceberg")

    monkeypatch.setattr(cli, "import_module", missing)
    assert cli.main(["register", "sink.yaml"]) == 7
    assert "the package pyiceberg is not installed: pip install 's3sink[job,tables]'" in capsys.readouterr().err
