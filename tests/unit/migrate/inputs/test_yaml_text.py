"""YAML with all scalars as text."""

from __future__ import annotations

import pytest

from sink_job.api.errors import InvalidConnector
from sink_job.migrate.inputs.yaml_text import read_yaml


def test_scalars_are_as_they_are_written() -> None:
    assert read_yaml("a: 007\nb: yes\nc: 1e3\nd: '5'\n") == [{"a": "007", "b": "yes", "c": "1e3", "d": "5"}]


def test_empty_documents_are_left_out() -> None:
    assert read_yaml("---\n---\na: 1\n---\n") == [{"a": "1"}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "line 1, column 5: invalid YAML"),
        ("a: 1\na: 2", "line 2, column 1: the key a is there twice, first in line 1"),
        ("? [a]\n: 1", "a key must be text"),
        ("a: *b", "an alias"),
        ("a: \x07", "a character that is not allowed"),
        ("a: !x!y z", "unknown tag"),
        ("a: {{ .Values.x }}", "line 1"),
    ],
)
def test_errors_have_line_and_column(text: str, message: str) -> None:
    with pytest.raises(InvalidConnector, match=message.replace("(", "\\(")):
        read_yaml(text)


def test_aliases_cannot_multiply_the_document() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(InvalidConnector, match="aliases"):
        read_yaml("\n".join(lines))
