"""`s3sink run`: its arguments, and errors before the start of the driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sink_job.api.units.quantities import GI
from sink_job.cli.main import main

MANIFEST = """
apiVersion: s3sink.io/v1alpha1
kind: S3Sink
metadata: {{name: flights}}
spec:
  kafka: {{bootstrapServers: "localhost:9092", topics: [flights]}}
  rotation: {{flushSize: 100}}
  s3: {{bucket: archive}}
  {more}
"""


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    return write(tmp_path, "")


def write(folder: Path, more: str) -> Path:
    path = folder / "sink.yaml"
    path.write_text(MANIFEST.format(more=more))
    return path


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The options of the calls of `run_sink`, which runs nothing here."""
    from sink_job.driver import run

    calls: list[Any] = []

    def stop_here(sink: object, options: object, signals: object) -> None:
        calls.append(options)
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "run_sink", stop_here)
    return calls


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["--memory", "3Gi"], "memory", 3 * GI),
        (["--cores", "3"], "cores", 3),
        (["--http", "0"], "http", ("127.0.0.1", 0)),
        (["--http", "0.0.0.0:8080"], "http", ("0.0.0.0", 8080)),
        (["--http", "[::1]:8080"], "http", ("::1", 8080)),
        (["--log", "json"], "log", "json"),
        (["--progress", "never"], "screen", False),
        ([], "screen", True),
        ([], "http", None),
        (["--debug"], "debug", True),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_arguments_become_options(
    manifest: Path, options: list[Any], words: list[str], name: str, value: object
) -> None:
    main(["run", str(manifest), *words])
    assert getattr(options[0], name) == value


def test_the_schema_in_a_config_map_is_read_before_the_driver_starts(
    tmp_path: Path, options: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    schema = "format: {converter: Avro, schema: {configMap: flights-schema, key: flight.avsc}}"
    manifest = write(tmp_path, schema)
    assert main(["run", str(manifest)]) == 7
    assert "use --config-map flights-schema=DIRECTORY" in capsys.readouterr().err
    (tmp_path / "flight.avsc").write_text('"long"')
    main(["run", str(manifest), "--config-map", f"flights-schema={tmp_path}"])
    assert len(options) == 1


def test_arguments_become_the_stop_condition(manifest: Path, options: list[Any]) -> None:
    from sink_job.coordinator.context import StopCondition

    main(["run", str(manifest), "--until-caught-up", "--publish-open", "--take-over", "--start-new-ledger"])
    assert options[0].goal == StopCondition(
        until_caught_up=True, publish_open=True, take_over=True, start_new_ledger=True
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--memory", "3GB"], "use 3Gi (1024) or 3G (1000)"),
        (["--cores", "0"], "is not a number of tasks"),
        (["--http", "here"], "is not [HOST:]PORT"),
        (["--http", "99999"], "is not [HOST:]PORT"),
        (["--log", "xml"], "invalid choice"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_invalid_argument_exits_with_2(
    manifest: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["run", str(manifest), *words])
    assert end.value.code == 2
    assert message in capsys.readouterr().err


def test_publish_open_can_be_used_alone(manifest: Path, options: list[Any]) -> None:
    main(["run", str(manifest), "--publish-open"])
    assert (options[0].goal.until_caught_up, options[0].goal.publish_open) == (False, True)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("state: Paused", "spec.state is Paused"),
        ("state: Stopped", "spec.state is Stopped"),
        ("offsets: {reset: {nonce: a, to: Earliest}}", "spec.offsets.reset"),
    ],
    ids=["paused", "stopped", "a reset of offsets"],
)
def test_a_field_for_the_operator_is_rejected_with_the_action_to_take(
    tmp_path: Path, more: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(write(tmp_path, more))]) == 2
    output = capsys.readouterr().err
    assert message in output
    assert "remove it for s3sink run" in output


def test_all_errors_of_a_manifest_are_printed_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, "sparkConf: {spark.master: x}")
    path.write_text(path.read_text().replace("flushSize: 100", "flushSize: 0, interval: 10"))
    assert main(["run", str(path)]) == 2
    output = capsys.readouterr().err
    assert output.startswith("s3sink: InvalidSpec:")
    assert "spec.rotation.flushSize" in output
    assert "spec.rotation.interval" in output
    assert "spark.master" in output


def test_a_missing_secret_is_reported_with_its_field(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, "")
    path.write_text(path.read_text().replace("bucket: archive", "bucket: archive, credentials: {secret: s3-keys}"))
    assert main(["run", str(path)]) == 7
    assert "SecretNotFound: spec.s3.credentials.secret: the Secret s3-keys is not mounted" in capsys.readouterr().err


def test_parts_that_do_not_fit_exit_with_7_and_the_required_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, "")
    path.write_text(path.read_text().replace("bucket: archive", "bucket: archive, partSize: 2Gi"))
    assert main(["run", str(path), "--cores", "2", "--memory", "2Gi"]) == 7
    assert "partSize 2Gi: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--dry-run"], "--dry-run needs --from-connector"),
        (["--start-at-objects"], "--start-at-objects needs --from-connector"),
        (["--stop-connector", "http://w/connectors/c"], "--stop-connector needs --from-connector"),
        (["--from-connector", "--start-new-ledger"], "--from-connector and --start-new-ledger exclude each other"),
        (["--from-connector", "--publish-open"], "--publish-open without --until-caught-up exclude each other"),
        (["--from-connector", "--take-over-from", "a/b/c/d"], "--take-over-from exclude each other"),
        (["--from-connector", "--stop-connector", "http://w:8083"], "the URL names no connector"),
        (["--from-connector", "--stop-connector", "w/connectors/c"], "the URL names no connector"),
    ],
)
def test_contradicting_arguments_are_rejected_before_anything_is_read(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sink.yaml"
    path.write_text(MANIFEST.format(more=""))
    assert main(["run", str(path), *words]) == 2
    assert message in capsys.readouterr().err


def test_the_password_of_a_worker_is_in_no_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from sink_job.driver import run

    def fail(sink: object, options: Any, signals: object) -> None:
        raise RuntimeError(f"could not reach {options.from_connector.stop_url}")

    monkeypatch.setattr(run, "run_sink", fail)
    path = tmp_path / "sink.yaml"
    path.write_text(MANIFEST.format(more=""))
    url = "http://connect:s3cr3t-word@w:8083/connectors/flights"
    assert main(["run", str(path), "--debug", "--from-connector", "--stop-connector", url]) == 1
    shown = capsys.readouterr()
    assert "could not reach" in shown.err
    assert "s3cr3t-word" not in shown.err + shown.out
