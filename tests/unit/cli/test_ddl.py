"""`s3sink ddl`: what it prints and ends with, on a sink in memory."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sink_job.cli import main as cli
from tests.support.compared_sink import ComparedSink, log_of
from tests.support.memory_sink import MemorySinkFixture
from tests.support.sink_fixture import manifest


@pytest.fixture
def sink(sink_fixture: MemorySinkFixture, tmp_path: Path) -> ComparedSink:
    return ComparedSink(sink_fixture, tmp_path / "tables.yaml")


def written(path: Path, **spec: Any) -> str:
    path.write_text(manifest("archive", "http://127.0.0.1:9", flush_size=5, spec=spec))
    return str(path)


def test_a_table_of_each_topic_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kafka = {"bootstrapServers": "127.0.0.1:9", "groupId": "g", "topics": ["one", "two"]}
    path = written(tmp_path / "sink.yaml", kafka=kafka)
    assert cli.main(["ddl", path, "--dialect", "athena"]) == 0
    assert capsys.readouterr().out.count("CREATE EXTERNAL TABLE") == 2
    assert cli.main(["ddl", path, "--dialect", "athena", "--topic", "two"]) == 0
    assert "`one`" not in capsys.readouterr().out


def test_the_columns_of_containers_are_in_the_ledger(sink: ComparedSink, capsys: pytest.CaptureFixture[str]) -> None:
    sink.output = "Parquet"
    sink.write(log_of("Parquet", 12))
    assert cli.main(["ddl", str(sink.path), "--dialect", "hive"]) == 0
    assert "`offset` bigint" in capsys.readouterr().out


def test_values_can_be_sampled_from_standard_input(
    sink_file: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b'{"price": 1.5}\n')))
    assert cli.main(["ddl", sink_file, "--dialect", "trino", "--records", "-"]) == 0
    assert '"price" double' in capsys.readouterr().out


def test_the_columns_of_transformed_values_are_those_of_their_schema_and_the_transforms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}, {"name": "m", "type": "int"}]}
    transforms: list[dict[str, Any]] = [
        {"type": "Insert", "field": "of_one", "source": "Topic", "when": {"topic": "one"}},
        {"type": "Drop", "fields": ["m"]},
    ]
    kafka = {"bootstrapServers": "127.0.0.1:9", "groupId": "g", "topics": ["one", "two"]}
    formats = {"converter": "Avro", "schema": {"text": json.dumps(schema)}}
    path = written(tmp_path / "sink.yaml", kafka=kafka, format=formats, transforms=transforms)
    assert cli.main(["ddl", path, "--dialect", "trino", "--topic", "one"]) == 0
    printed = capsys.readouterr().out
    assert '"n" bigint' in printed
    assert '"of_one" varchar' in printed
    assert '"m"' not in printed
    assert cli.main(["ddl", path, "--dialect", "trino", "--topic", "two"]) == 0
    assert "of_one" not in capsys.readouterr().out
    assert cli.main(["ddl", path, "--dialect", "trino", "--records", "/dev/null"]) == 2
    assert "--records cannot be used: the columns are those of the values' schema" in capsys.readouterr().err
    transforms[1]["when"] = {"field": "n"}
    written(tmp_path / "sink.yaml", kafka=kafka, format=formats, transforms=transforms)
    assert cli.main(["ddl", path, "--dialect", "trino"]) != 0
    assert "spec.transforms[1] (Drop) applies to some records of one only" in capsys.readouterr().err


def test_what_cannot_be_expressed_ends_with_8(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    partitioner = {"type": "Time", "pathFormat": "YYYY/MM/dd", "duration": "1d", "timezone": "UTC"}
    path = written(tmp_path / "sink.yaml", partitioner=partitioner)
    assert cli.main(["ddl", path, "--dialect", "spark"]) == 8
    assert "-- NOT EXPRESSED: spark has no columns for the path {}/{}/{}" in capsys.readouterr().out
    assert cli.main(["ddl", path, "--dialect", "athena"]) == 0


def test_the_ledgers_folder_is_never_in_the_place_of_a_table(
    sink_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for dialect in ("athena", "hive", "trino", "spark", "duckdb", "clickhouse", "glue"):
        assert cli.main(["ddl", sink_file, "--dialect", dialect]) == 0
        printed = capsys.readouterr().out
        assert "archive/topics/log/" in printed
        assert "_s3sink" not in printed


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--topic", "x"], 2, "--topic x is not in spec.kafka.topics: log"),
        (["--records", "/nonexistent"], 2, "--records: /nonexistent cannot be read"),
        (["--records", "/dev/null"], 2, "--records: the file has no values"),
    ],
)
def test_bad_arguments_are_errors(
    sink_file: str, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    assert cli.main(["ddl", sink_file, "--dialect", "hive", *arguments]) == code
    assert message in capsys.readouterr().err


def test_records_of_text_are_an_error_that_names_the_converter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "sink.yaml", format={"converter": "Text"})
    assert cli.main(["ddl", path, "--dialect", "hive", "--records", "/dev/null"]) == 2
    assert "with the converter Text each value is one text" in capsys.readouterr().err


def test_standard_input_is_one_of_manifest_and_records(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["ddl", "-", "--dialect", "hive", "--records", "-"]) == 2
    assert "standard input cannot be both" in capsys.readouterr().err


def test_objects_with_a_schema_take_no_sample(sink: ComparedSink, capsys: pytest.CaptureFixture[str]) -> None:
    sink.output = "Avro"
    sink.write(log_of("Avro", 3))
    assert cli.main(["ddl", str(sink.path), "--dialect", "hive", "--records", "/dev/null"]) == 2
    assert "other objects have a schema" in capsys.readouterr().err


def test_containers_without_an_object_have_no_columns_yet(
    tmp_path: Path, sink_fixture: MemorySinkFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "sink.yaml", format={"converter": "ConnectJson", "output": "Avro"})
    assert cli.main(["ddl", path, "--dialect", "hive"]) == 7
    assert "topic log: the schema of its records is not known" in capsys.readouterr().err


def test_glue_prints_json_below_its_comments(sink_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["ddl", sink_file, "--dialect", "glue"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("--")]
    assert json.loads("\n".join(lines))["Name"] == "log"
