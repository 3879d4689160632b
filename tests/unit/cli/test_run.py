"""`s3sink run`: what its arguments mean, and what it refuses before anything is started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sink_job.api.quantities import GI
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
    """What `run_sink` was called with, instead of running anything."""
    from sink_job.driver import run

    seen: list[Any] = []

    def stop_here(sink: object, options: object, signals: object) -> None:
        seen.append(options)
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "run_sink", stop_here)
    return seen


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


def test_arguments_become_the_goal(manifest: Path, options: list[Any]) -> None:
    from sink_job.coordinator.context import StopCondition

    main(["run", str(manifest), "--until-caught-up", "--publish-open", "--take-over", "--start-new-ledger"])
    assert options[0].goal == StopCondition(
        until_caught_up=True, publish_open=True, take_over=True, start_new_ledger=True
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--memory", "3GB"], "write 3Gi (by 1024) or 3G (by 1000)"),
        (["--cores", "0"], "is not a number of tasks"),
        (["--http", "here"], "is not [HOST:]PORT"),
        (["--http", "99999"], "is not [HOST:]PORT"),
        (["--log", "xml"], "invalid choice"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_argument_is_refused_with_2(
    manifest: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["run", str(manifest), *words])
    assert end.value.code == 2
    assert said in capsys.readouterr().err


def test_publish_open_alone_is_a_goal_of_its_own(manifest: Path, options: list[Any]) -> None:
    main(["run", str(manifest), "--publish-open"])
    assert (options[0].goal.until_caught_up, options[0].goal.publish_open) == (False, True)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("state: Paused", "spec.state is Paused"),
        ("state: Stopped", "spec.state is Stopped"),
        ("offsets: {reset: {nonce: a, to: Earliest}}", "spec.offsets.reset"),
    ],
    ids=["paused", "stopped", "a reset of offsets"],
)
def test_what_only_the_operator_does_is_refused_with_a_way_out(
    tmp_path: Path, more: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(write(tmp_path, more))]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert "here, remove the field" in told


def test_all_mistakes_of_a_manifest_are_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, "sparkConf: {spark.master: x}")
    path.write_text(path.read_text().replace("flushSize: 100", "flushSize: 0, interval: 10"))
    assert main(["run", str(path)]) == 2
    told = capsys.readouterr().err
    assert told.startswith("s3sink: InvalidSpec:")
    assert "spec.rotation.flushSize" in told
    assert "spec.rotation.interval" in told
    assert "spark.master" in told


def test_a_secret_that_is_not_given_is_named_with_its_field(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, "")
    path.write_text(path.read_text().replace("bucket: archive", "bucket: archive, credentials: {secret: s3-keys}"))
    assert main(["run", str(path)]) == 7
    assert "SecretNotFound: spec.s3.credentials.secret: s3-keys has no directory" in capsys.readouterr().err


def test_parts_that_do_not_fit_in_memory_are_refused_with_what_would_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, "")
    path.write_text(path.read_text().replace("bucket: archive", "bucket: archive, partSize: 2Gi"))
    assert main(["run", str(path), "--cores", "2", "--memory", "2Gi"]) == 7
    assert "partSize 2Gi: it takes" in capsys.readouterr().err
