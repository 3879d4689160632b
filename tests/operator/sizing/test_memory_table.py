"""The sizes in docs/memory.md are those of the operator's formula."""

from __future__ import annotations

from tools.memory_picture import PICTURE, picture
from tools.memory_table import PAGE, page


def test_the_table_of_sizes_is_current() -> None:
    assert page(PAGE.read_text()) == PAGE.read_text(), "run `python tools/memory_table.py`"


def test_the_picture_of_sizes_is_current() -> None:
    assert picture() == PICTURE.read_text(), "run `python -m tools.memory_picture`"
