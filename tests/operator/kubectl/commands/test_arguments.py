"""The arguments that commands share."""

from __future__ import annotations

import argparse

import pytest

from s3sink_operator.kubectl.commands.arguments import add_name, add_output, prints_json


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="kubectl s3sink test")
    add_name(found)
    add_output(found)
    return found


@pytest.mark.parametrize(
    ("words", "is_json"), [([], False), (["-o", "table"], False), (["-o", "json"], True), (["--output=json"], True)]
)
def test_the_output_is_a_table_unless_json_is_requested(words: list[str], is_json: bool) -> None:
    args = parser().parse_args(["flights", *words])
    assert args.name == "flights"
    assert prints_json(args) is is_json


@pytest.mark.parametrize(("words", "error"), [([], "NAME"), (["flights", "-o", "yaml"], "invalid choice: 'yaml'")])
def test_a_missing_name_or_another_format_ends_with_2(
    words: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(words)
    assert ended.value.code == 2
    assert error in capsys.readouterr().err
