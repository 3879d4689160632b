"""`s3sink operator`: its arguments and its exit code."""

from __future__ import annotations

import argparse
import ast
from pathlib import Path

import pytest

from s3sink_operator import cli, main

SOURCE = Path(cli.__file__)


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="s3sink")
    cli.add_parser(parser.add_subparsers(dest="command"))
    return parser.parse_args(["operator", *words])


def test_the_command_has_the_flags_of_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    args = parsed("--image", "job:1", "--namespace", "data")
    monkeypatch.setattr(main, "run", lambda given: 7 if given is args else 1)
    assert cli.run(args) == 7
    assert (args.image, args.namespace) == ("job:1", ["data"])


def test_help_describes_the_operator(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed("--help")
    assert ended.value.code == 0
    assert "watches S3Sinks" in " ".join(capsys.readouterr().out.split())


def test_the_other_commands_do_not_import_the_operator() -> None:
    """`s3sink run` lists this command too, and Kopf and aiohttp would double the time of its start."""
    modules = [each for each in ast.parse(SOURCE.read_text(encoding="utf-8")).body if isinstance(each, ast.ImportFrom)]
    assert not [each.module for each in modules if (each.module or "").startswith("s3sink_operator")]
