"""`s3sink convert`: arguments, exit codes, files, and what the command does not import."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sink_job.api.parser import load_sink
from sink_job.cli import common
from sink_job.cli import convert as convert_command
from sink_job.cli import main as cli
from sink_job.driver.secret_registry import Redactor
from sink_job.migrate import conversion
from tests.unit.migrate.inputs.test_worker_rest import as_json, worker
from tests.unit.migrate.test_conversion import MINIMAL

HEAVY = ("pyspark", "boto3", "botocore", "pyarrow", "py4j", "rich", "pydantic", "confluent_kafka", "httpx2", "babel")
EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "kafka-connect" / "connector.json"


@pytest.fixture
def connector(tmp_path: Path) -> Any:
    def write(settings: dict[str, str], name: str | None = "flights") -> str:
        document: dict[str, Any] = {"config": {**MINIMAL, **settings}} | ({"name": name} if name else {})
        file = tmp_path / "connector.json"
        file.write_text(json.dumps(document))
        return str(file)

    return write


def test_a_manifest_is_printed(connector: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["convert", connector({})]) == 0
    done = capsys.readouterr()
    assert (load_sink(done.out).name, done.err) == ("flights", "")


def test_differences_are_listed_on_standard_error_too(connector: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["convert", connector({"store.kafka.keys": "true"})]) == 8
    done = capsys.readouterr()
    assert done.err.splitlines()[0] == "s3sink: flights: some settings mean something else here"
    assert done.err.splitlines()[1].startswith("  store.kafka.keys=true: ")
    assert "#   store.kafka.keys=true: " in done.out


def test_reasons_are_listed_and_nothing_is_printed(connector: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["convert", connector({"transforms": "a"})]) == 9
    done = capsys.readouterr()
    assert (done.out, done.err.count("\n")) == ("", 2)


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    content = json.dumps({**MINIMAL, "name": "flights"}).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert cli.main(["convert", "-"]) == 0
    assert load_sink(capsys.readouterr().out).group_id == "connect-flights"


def test_name_and_group_are_arguments(connector: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["convert", connector({}, name=None), "--name", "archive", "--group", "mine"]) == 0
    sink = load_sink(capsys.readouterr().out)
    assert (sink.name, sink.group_id) == ("archive", "mine")


def test_the_group_is_of_the_connector_s_name_also_with_another_name_of_the_sink(
    connector: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["convert", connector({}), "--name", "archive"]) == 0
    assert load_sink(capsys.readouterr().out).group_id == "connect-flights"


def test_settings_of_the_worker_are_read(connector: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "worker.properties"
    file.write_text("bootstrap.servers=kafka:9092\n")
    assert cli.main(["convert", connector({}), "--worker", str(file)]) == 0
    assert load_sink(capsys.readouterr().out).spec.kafka.bootstrap_servers == "kafka:9092"


def test_a_running_worker_is_read_and_a_remark_says_what_it_does_not_publish(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answers = {
        "/connectors/flights": as_json({"name": "flights", "config": MINIMAL}),
        "/": as_json({"version": "4.1.0", "kafka_cluster_id": "abc"}),
    }
    with worker(answers) as (url, _):
        assert cli.main(["convert", f"{url}/connectors/flights", "--worker", url]) == 0
    assert "--worker FILE" in capsys.readouterr().err


TWO = """
kind: KafkaConnector
metadata: {{name: {first}}}
spec: {{class: io.confluent.connect.s3.S3SinkConnector, config: {{topics: a}}}}
---
kind: KafkaConnector
metadata: {{name: {second}}}
spec: {{class: io.confluent.connect.s3.S3SinkConnector, config: {{topics: b}}}}
"""


def test_files_are_written_one_for_each_connector_and_never_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, folder = tmp_path / "two.yaml", tmp_path / "manifests"
    file.write_text(TWO.format(first="a", second="b"))
    assert cli.main(["convert", str(file), "-o", str(folder)]) == 8
    assert capsys.readouterr().out.splitlines() == [str(folder / "a.yaml"), str(folder / "b.yaml")]
    assert [load_sink(each.read_text()).name for each in sorted(folder.iterdir())] == ["a", "b"]
    assert cli.main(["convert", str(file), "-o", str(folder)]) == 2
    assert "exists: remove it" in capsys.readouterr().err


def test_two_connectors_of_one_name_are_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "two.yaml"
    file.write_text(TWO.format(first="a.b", second="a_b"))
    assert cli.main(["convert", str(file)]) == 2
    assert "2 connectors become an S3Sink with the name a-b" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--name", "Not_A_Name"], "is not a valid name"),
        (["--worker", "missing.properties"], "cannot be read"),
        (["-o", "/dev/null/x"], "cannot be written"),
    ],
)
def test_wrong_arguments_have_one_message(
    words: list[str], message: str, connector: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["convert", connector({}), *words]) == 2
    assert message in capsys.readouterr().err


def test_a_configuration_without_a_name_needs_one(connector: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["convert", connector({}, name=None)]) == 2
    assert "use --name NAME" in capsys.readouterr().err


def test_name_and_group_are_for_one_connector(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "two.yaml"
    file.write_text(TWO.format(first="a", second="b"))
    assert cli.main(["convert", str(file), "--name", "x"]) == 2
    assert "the input has 2" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[]", b"<html>"])
def test_input_that_is_none_ends_with_2(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x"
    file.write_bytes(content)
    assert cli.main(["convert", str(file)]) == 2
    assert capsys.readouterr().err.startswith("s3sink: InvalidConnector: ")


def test_a_missing_file_ends_with_2(tmp_path: Path) -> None:
    assert cli.main(["convert", str(tmp_path / "missing")]) == 2
    assert cli.main(["convert", str(tmp_path)]) == 2


def test_a_defect_shows_no_secret_with_debug(
    connector: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fresh = Redactor()  # the one of this process would hide these values in all later tests
    for module in (common, convert_command):
        monkeypatch.setattr(module, "SECRETS", fresh)
    monkeypatch.setattr(conversion, "convert", lambda *args, **more: {}[args[0].settings["aws.secret.access.key"]])
    assert cli.main(["convert", connector({"aws.secret.access.key": "hunter2hunter2"}), "--debug"]) == 1
    done = capsys.readouterr()
    assert "KeyError" in done.err
    assert "hunter2" not in done.out + done.err


def test_the_command_needs_no_models_and_takes_below_half_a_second_of_cpu() -> None:
    code = (
        "import resource, sys; from sink_job.cli.main import main; "
        f"main(['convert', {str(EXAMPLE)!r}]); usage = resource.getrusage(resource.RUSAGE_SELF); "
        f"print([n for n in {HEAVY!r} if n in sys.modules], usage.ru_utime + usage.ru_stime, sep=';', file=sys.stderr)"
    )
    seconds = []
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        imported, cpu = done.stderr.strip().split(";")
        assert imported == "[]"
        seconds.append(float(cpu))
    assert min(seconds) < 0.5


def test_a_name_with_escapes_of_the_terminal_is_quoted(connector: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["convert", connector({"store.kafka.keys": "true"}, "a\x1b[31m\nb")]) == 8
    assert capsys.readouterr().err.startswith('s3sink: "a\\u001b[31m\\nb": some settings')
