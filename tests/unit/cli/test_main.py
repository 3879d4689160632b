"""`s3sink` selects the command, and reports every failure with its reason and exit code."""

from __future__ import annotations

import json
import subprocess
import sys
import types
from typing import Any

import pytest

from sink_job.api import errors
from sink_job.cli import main as cli

HEAVY = ("pyspark", "boto3", "botocore", "pyarrow", "py4j", "rich", "pydantic")


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    """A command `status` that calls `command.does`."""

    def add_parser(subparsers: Any) -> None:
        parser = subparsers.add_parser("status")
        parser.add_argument("--log", default="text")

    module = types.SimpleNamespace(add_parser=add_parser, does=lambda: 0)
    module.run = lambda args: module.does()
    monkeypatch.setattr(cli, "import_module", lambda name: module)
    return module


def fails_with(command: types.SimpleNamespace, error: BaseException) -> None:
    def does() -> int:
        raise error

    command.does = does


def test_help_imports_no_large_packages() -> None:
    imported = f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    code = f"import sys; sys.argv = ['s3sink']; from sink_job.cli.main import main; main(); {imported}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert "exit codes:" in done.stdout


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_each_command_shows_its_help_without_spark_and_s3(name: str) -> None:
    imported = f"print([name for name in {HEAVY[:5]!r} if name in sys.modules], file=sys.stderr)"
    run = f'exec(\'try: main(["{name}", "--help"])\\nexcept SystemExit as end: assert end.code == 0\')'
    code = f"import sys; from sink_job.cli.main import main; {run}; {imported}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert "--debug" in done.stdout


def test_without_a_command_the_help_is_shown_and_the_exit_code_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert "simulate" in capsys.readouterr().out


def test_an_unknown_command_exits_with_2() -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["copy"])
    assert end.value.code == 2


def test_the_result_of_a_command_is_the_exit_code(command: types.SimpleNamespace) -> None:
    command.does = lambda: 5
    assert cli.main(["status"]) == 5


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidSpec(["spec.s3.bucket: is missing"]), 2),
        (errors.LedgerFenced("another driver"), 3),
        (errors.DataError("flights", 0, 17, "is not JSON"), 4),
        (errors.DataLoss("offsets 3 to 5"), 5),
        (errors.ObjectConflict("another object"), 6),
        (errors.BucketNotFound("no bucket"), 7),
        (errors.SecretNotFound("no secret"), 7),
        (errors.TopicNotFound("no topic"), 7),
        (errors.TransientError("no answer"), 75),
        (errors.SinkError("something"), 1),
        (ValueError("something"), 1),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_each_failure_has_its_exit_code_and_its_reason_on_standard_error(
    command: types.SimpleNamespace, error: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    fails_with(command, error)
    assert cli.main(["status"]) == code
    output = capsys.readouterr()
    reason = error.reason if isinstance(error, errors.SinkError) else "InternalError"
    assert output.err.startswith(f"s3sink: {reason}: ")
    assert output.out == ""


def test_an_unexpected_error_is_one_line_with_a_hint_at_debug(
    command: types.SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    fails_with(command, ValueError("first line\nsecond line"))
    cli.main(["status"])
    assert capsys.readouterr().err.splitlines() == [
        "s3sink: InternalError: ValueError: first line second line",
        "s3sink: unexpected error; use --debug for a stack trace",
    ]


def test_debug_shows_the_traceback(command: types.SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> None:
    fails_with(command, ValueError("something"))
    cli.main(["status", "--debug"])
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_each_error_of_a_manifest_is_on_its_own_line(
    command: types.SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    fails_with(command, errors.InvalidSpec(["spec.a: one", "spec.b: two"]))
    cli.main(["status"])
    assert capsys.readouterr().err == "s3sink: InvalidSpec: \n  spec.a: one\n  spec.b: two\n"


def test_with_json_logs_the_failure_is_json(command: types.SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> None:
    fails_with(command, errors.DataLoss("offsets 3 to 5"))
    cli.main(["status", "--log", "json"])
    assert json.loads(capsys.readouterr().err) == {
        "level": "ERROR",
        "reason": "DataLoss",
        "message": "offsets 3 to 5",
        "exitCode": 5,
    }


def test_a_missing_package_is_reported_with_the_command_to_install_it(
    command: types.SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    fails_with(command, ModuleNotFoundError("No module named 'pyspark'", name="pyspark"))
    assert cli.main(["status"]) == 7
    assert "pip install 's3sink[job]'" in capsys.readouterr().err


def test_a_password_in_an_error_is_redacted(command: types.SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> None:
    fails_with(command, errors.SinkError('bad: sasl.jaas.config=x required username="u" password="hunter22";'))
    cli.main(["status", "--debug"])
    output = capsys.readouterr().err
    assert "hunter22" not in output
    assert 'username="u"' in output
