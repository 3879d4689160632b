"""`s3sink register`: what it prints and ends with, on a sink in memory and a catalog on SQLite."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sink_job.api.parser import load_sink
from sink_job.cli import main as cli
from sink_job.tables import file_io
from tests.support.memory_s3 import MemoryS3
from tests.support.memory_sink import MemorySinkFixture
from tests.support.sink_fixture import manifest
from tests.support.table_sink import FORMAT, parquet_log


class RegisteredSink:
    """The sink, its manifest in `path`, and the bucket of the table's metadata."""

    def __init__(self, fixture: MemorySinkFixture, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fixture = fixture
        self.path = folder / "tables.yaml"
        self.folder = folder
        self.lake = MemoryS3()
        buckets: dict[str, Any] = {"archive": fixture.s3, "lake": self.lake}
        monkeypatch.setattr(file_io, "connect", lambda settings: buckets[settings.bucket])
        self.describe("lake.{topic}")

    def describe(self, *names: str) -> None:
        catalog = {"type": "Sql", "uri": f"sqlite:///{self.folder}/catalog.db", "warehouse": "s3://lake/tables"}
        spec = {"format": FORMAT, "tables": [{"catalog": catalog, "name": name} for name in names]}
        text = manifest("archive", "http://127.0.0.1:9", flush_size=10, spec=spec)
        self.path.write_text(text)
        self.fixture.sink = load_sink(text)

    def write(self, records: int) -> None:
        self.fixture.run(parquet_log(records))

    def register(self, *arguments: str) -> int:
        return cli.main(["register", str(self.path), *arguments])


@pytest.fixture
def sink(
    sink_fixture: MemorySinkFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log_formats: list[str]
) -> RegisteredSink:
    return RegisteredSink(sink_fixture, tmp_path, monkeypatch)


def test_each_command_adds_what_is_new(sink: RegisteredSink, capsys: pytest.CaptureFixture[str]) -> None:
    sink.write(25)
    assert sink.register("--from-beginning") == 0
    assert "lake.log (new table): added 3 objects of topic log with 25 records" in capsys.readouterr().out
    assert sink.register() == 0
    assert "lake.log: nothing to add; it has all objects up to record" in capsys.readouterr().out
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
