"""Java's .properties format."""

from __future__ import annotations

import pytest

from sink_job.api.errors import InvalidConnector
from sink_job.migrate.inputs.properties_text import read_properties


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("a=1", {"a": "1"}),
        ("a = 1 \n b:2\r\nc : 3", {"a": "1 ", "b": "2", "c": "3"}),
        ("# x\n! y\n\n \na=1", {"a": "1"}),
        ("a=1\\\n   2\\\n  3", {"a": "123"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a\\=b=c=d", {"a=b": "c=d"}),
        ("a=\\t\\u00e9\\n", {"a": "\té\n"}),
        ("path.format='year'=YYYY", {"path.format": "'year'=YYYY"}),
        ("a=", {"a": ""}),
        ("flush.size 1000\na\t b c", {"flush.size": "1000", "a": "b c"}),
        ("a=x#y", {"a": "x#y"}),
        ("", {}),
    ],
)
def test_properties_are_read_as_java_does(text: str, properties: dict[str, str]) -> None:
    assert read_properties(text) == properties


@pytest.mark.parametrize("text", ["a", "=x", "{"])
def test_a_line_without_a_key_or_a_value_is_an_error(text: str) -> None:
    with pytest.raises(InvalidConnector, match="line 1, column 1: the line is not a property"):
        read_properties(text)


def test_a_key_that_occurs_twice_is_an_error_without_its_value() -> None:
    with pytest.raises(InvalidConnector, match="line 3, column 1: the key a is there twice, first in line 1") as raised:
        read_properties("a=hunter2\nb=1\na=hunter3")
    assert "hunter" not in str(raised.value)
