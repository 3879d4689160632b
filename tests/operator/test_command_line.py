"""The flags of the operator: a wrong one is named before the API server is asked for anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from s3sink_operator.main import main


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ([], "--image is required"),
        (["--image", "job", "--resync", "0s"], "--resync 0s is below 0.1 s"),
        (["--image", "job", "--node-lost-timeout", "soon"], "--node-lost-timeout"),
        (["--image", "job", "--config", "/nosuch"], "--config /nosuch: No such file or directory"),
        (["--image", "job", "--run-as-user", "root"], "root is neither a uid nor Cluster"),
        (["--image", "job", "--namespace-memory", "1h"], "--namespace-memory: is not a size"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_flag_is_named_and_ends_with_2(flags: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(flags) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "flags", [["--workers", "0"], ["--workers", "many"], ["--port", "70000"], ["--port", "http"]], ids=" ".join
)
def test_a_number_out_of_range_is_named_and_ends_with_2(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--image", "job", *flags])
    assert ended.value.code == 2
    assert f"argument {flags[0]}: {flags[1]} is not a number from" in capsys.readouterr().err


def test_a_number_in_the_environment_is_checked_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("S3SINK_OPERATOR_WORKERS", "0")
    with pytest.raises(SystemExit):
        main(["--image", "job"])
    assert "0 is not a number from 1 to 1000" in capsys.readouterr().err


def test_default_memory_below_the_minimum_ends_with_2_at_the_start(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text('sinkDefaults: {executor: {memory: {min: "16Gi"}}}')
    assert main(["--image", "job", "--config", str(path)]) == 2
    assert (
        "sinkDefaults.executor.memory: Value error, min 16Gi is above max 8Gi, its default" in capsys.readouterr().err
    )
