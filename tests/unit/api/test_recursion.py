"""The recursion limit of a process, which blocks of several threads raise."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from sink_job.api.recursion import recursion_limit
from sink_job.connect.limits import deeper
from sink_job.protobuf import converter


def test_the_limit_is_raised_inside_the_block_alone() -> None:
    before = sys.getrecursionlimit()
    with recursion_limit(before + 500):
        assert sys.getrecursionlimit() == before + 500
        with recursion_limit(before + 100):
            assert sys.getrecursionlimit() == before + 500
    assert sys.getrecursionlimit() == before


@pytest.mark.parametrize("second", [deeper, converter.deep_calls], ids=["of values", "of messages"])
def test_blocks_that_overlap_restore_the_limit(second: Callable[[], AbstractContextManager[None]]) -> None:
    before = sys.getrecursionlimit()
    first, other = deeper(), second()
    first.__enter__()
    other.__enter__()
    first.__exit__(None, None, None)
    assert sys.getrecursionlimit() > before
    other.__exit__(None, None, None)
    assert sys.getrecursionlimit() == before
