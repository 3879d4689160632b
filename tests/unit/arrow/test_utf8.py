"""Whether values are UTF-8, each one alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.arrow import columns
from sink_job.arrow.utf8 import is_utf8, utf8_error

VALUES = st.lists(st.binary(max_size=3) | st.text(max_size=3).map(str.encode), max_size=5)


def decodes(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


@given(VALUES)
def test_a_column_is_utf8_if_python_decodes_each_value(values: list[bytes]) -> None:
    assert is_utf8(columns.binaries(values)) == all(map(decodes, values))


def test_a_character_must_not_be_cut_between_two_values() -> None:
    first, second = "ä".encode()[:1], "ä".encode()[1:]
    assert not is_utf8(columns.binaries([first, second]))


@given(st.binary(max_size=4))
def test_a_value_has_an_error_unless_python_decodes_it(value: bytes) -> None:
    assert (utf8_error(value) is None) == decodes(value)


@pytest.mark.parametrize(("value", "position"), [(b"\xff", 0), (b"ab\xc3", 2), (b"\xed\xa0\x80", 0)])
def test_the_error_names_the_first_wrong_byte(value: bytes, position: int) -> None:
    assert utf8_error(value) == f"the value is not UTF-8 (byte {position})"
