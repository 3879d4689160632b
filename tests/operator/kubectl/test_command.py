"""`kubectl s3sink` as a program: its exit codes, and what it prints of objects that others have written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from s3sink_operator.kubectl import command
from s3sink_operator.types import Json
from sink_job.api.errors import BucketNotFound
from tests.operator.fake_cluster import running


def test_a_missing_kubectl_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("KUBECTL", raising=False)
    assert command.main(["status"]) == 1
    assert "kubectl not found" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["reset-offsets", "flights"], ["pause"], ["restart", "a", "--timeout", "soon"]])
def test_a_wrong_command_line_ends_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(words)
    assert ended.value.code == 2
    assert "usage: kubectl s3sink" in capsys.readouterr().err


ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b2J\x7f\u202e"
"""It sets the title of a terminal, clears it, and reverses the direction of the text."""


def with_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sink: Json) -> None:
    """kubectl answers each call with this sink."""
    answer = tmp_path / "answer.json"
    answer.write_text(json.dumps(sink))
    program = tmp_path / "kubectl"
    program.write_text(f"#!/bin/sh\ncat {answer}\n")
    program.chmod(0o755)
    monkeypatch.setenv("KUBECTL", str(program))


@pytest.mark.parametrize("words", [["status", "flights"], ["explain", "flights"], ["logs", "flights", "--previous"]])
@pytest.mark.parametrize("output", ["table", "json"])
def test_control_characters_of_a_sink_are_shown_and_do_not_reach_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str], output: str
) -> None:
    cluster = running(sparkConf={"spark.app.note": ESCAPE})
    cluster.fail(BucketNotFound(f"there is no bucket {ESCAPE}"))
    cluster.converge()
    with_answer(monkeypatch, tmp_path, cluster.sink)
    assert command.main(words if words[0] == "logs" else [*words, "--output", output]) == 0
    shown = capsys.readouterr().out
    # The operator escapes what it writes into a status, and JSON its backslashes.
    assert "\\u001b]0;owned\\u0007\\u001b[2J\\u009b2J\\u007f\\u202e" in shown.replace("\\\\", "\\")
    assert not set("\x1b\x07\x9b\x7f\u202e") & set(shown)
    if output == "json" and words[0] != "logs":
        assert json.loads(shown)


def test_control_characters_in_an_error_do_not_reach_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with_answer(monkeypatch, tmp_path, {})
    (tmp_path / "kubectl").write_text("#!/bin/sh\nprintf 'error: \\033[2J' >&2\nexit 1\n")
    assert command.main(["status", "flights"]) == 1
    assert capsys.readouterr().err == "kubectl s3sink: \\u001b[2J\n"


@pytest.mark.parametrize("levels", [300, 3_000])
def test_a_sink_that_is_nested_too_deeply_does_not_prevent_the_list(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, levels: int
) -> None:
    deep = '{"a":' * levels + "{}" + "}" * levels
    sink = json.dumps(running().sink).replace('"spec": {', f'"spec": {{"driver": {deep}, ', 1)
    with_answer(monkeypatch, tmp_path, {})
    (tmp_path / "answer.json").write_text(f'{{"items": [{sink}]}}')
    assert command.main(["status"]) == 0
    assert "flights" in capsys.readouterr().out


@pytest.mark.parametrize("levels", [102, 150, 300])
def test_explain_names_the_field_that_is_nested_too_deeply(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, levels: int
) -> None:
    deep = '{"a":' * levels + "{}" + "}" * levels
    with_answer(monkeypatch, tmp_path, {})
    sink = json.dumps(running().sink).replace('"spec": {', f'"spec": {{"driver": {{"podTemplate": {deep}}}, ', 1)
    (tmp_path / "answer.json").write_text(sink)
    assert command.main(["explain", "flights"]) == 1
    error = capsys.readouterr().err
    assert "spec.driver.podTemplate.a.a: nested more than 100 levels deep" in error
    assert len(error.splitlines()) == 1
