"""Values in the answers of a registry."""

from __future__ import annotations

import pytest

from sink_job.registry.answers import is_text


@pytest.mark.parametrize("value", ["", "text", "\x00", "\u00e9", "\U0001f600", "\uffff"])
def test_each_text_that_utf8_can_encode_is_a_text(value: str) -> None:
    assert is_text(value)


@pytest.mark.parametrize("value", ["\ud800", "a\udfffb", "\ude00\ud83d"])
def test_a_lone_surrogate_which_json_can_contain_is_no_text(value: str) -> None:
    assert not is_text(value)


@pytest.mark.parametrize("value", [None, 7, True, 1.5, b"text", ["text"], {"text": 1}])
def test_other_values_are_no_texts(value: object) -> None:
    assert not is_text(value)
