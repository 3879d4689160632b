"""What the plug-in prints, and to which stream."""

from __future__ import annotations

import json
import sys

import pytest

from s3sink_operator.kubectl import console

HOSTILE = "a\x1b[2Jb\x07\u202e\ud800"


def test_errors_and_notes_go_to_standard_error_and_output_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    console.write("output")
    console.note("a note")
    assert console.fail("it failed") == 1
    shown = capsys.readouterr()
    assert shown.out == "output\n"
    assert shown.err == "a note\nkubectl s3sink: it failed\n"


def test_an_error_has_the_exit_code_of_its_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert console.fail("a wrong command line", code=2) == 2
    assert capsys.readouterr().err


def test_control_characters_are_escaped_in_each_stream(capsys: pytest.CaptureFixture[str]) -> None:
    console.write(HOSTILE)
    console.write(HOSTILE, file=sys.stderr)
    console.fail(HOSTILE)
    shown = capsys.readouterr()
    assert not {"\x1b", "\x07", "\u202e", "\ud800"} & set(shown.out + shown.err)
    assert shown.out == "a\\u001b[2Jb\\u0007\\u202e\\ud800\n"


def test_json_is_readable_and_valid_whatever_its_texts_are(capsys: pytest.CaptureFixture[str]) -> None:
    data = {"message": HOSTILE, "city": "Zürich", "lines": "a\nb", "quote": '"'}
    console.write_json(data)
    shown = capsys.readouterr().out
    assert json.loads(shown) == data
    assert '"city": "Zürich"' in shown
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)
    assert shown.splitlines()[1].startswith('  "message"')
