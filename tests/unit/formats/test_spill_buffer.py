"""Buffers within the memory of a task: spilling changes no byte and no order."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.formats.spill_buffer import SpillPool

STEPS = st.lists(st.tuples(st.integers(0, 2), st.none() | st.binary(max_size=12)), max_size=25)
"""A buffer, and what is added to it; None takes its chunks."""


@given(STEPS, st.integers(0, 40))
def test_each_buffer_returns_its_bytes_in_order_and_the_memory_stays_within_the_limit(
    steps: list[tuple[int, bytes | None]], limit: int
) -> None:
    with SpillPool(limit) as pool:
        buffers, expected = [pool.hold() for _ in range(3)], [b""] * 3
        for number, data in [*steps, (0, None), (1, None), (2, None)]:
            buffer = buffers[number]
            assert buffer.size == len(expected[number])
            if data is None:
                assert b"".join(buffer.take()) == expected[number]
                assert (buffer.size, buffer.in_memory) == (0, 0)
                expected[number] = b""
            else:
                buffer.add(data)
                expected[number] += data
            assert pool.used == sum(each.in_memory for each in buffers) <= limit
        assert pool.used == 0


def test_nothing_is_spilled_up_to_the_limit() -> None:
    with SpillPool(10) as pool:
        buffer = pool.hold()
        buffer.add(b"x" * 10)
        assert (pool.used, pool.peak, pool.spilled) == (10, 10, 0)
        buffer.add(b"y")
        assert (pool.used, pool.peak, pool.spilled) == (0, 11, 11)


def test_the_largest_buffers_are_spilled_until_half_of_the_limit_is_free() -> None:
    with SpillPool(10) as pool:
        small, large, middle = pool.hold(), pool.hold(), pool.hold()
        small.add(b"a")
        large.add(b"b" * 6)
        middle.add(b"c" * 4)
        assert (small.in_memory, large.in_memory, middle.in_memory) == (1, 0, 4)
        assert pool.spilled == 6


def test_chunks_that_are_spilled_together_become_one() -> None:
    with SpillPool(4) as pool:
        buffer = pool.hold()
        for chunk in (b"ab", b"cd", b"e", b"", b"f"):
            buffer.add(memoryview(chunk))
        assert list(map(bytes, buffer.take())) == [b"abcde", b"f"]


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_the_file_has_no_name_and_ends_with_the_pool(tmp_path: Path) -> None:
    descriptors = open_files()
    with SpillPool(0, str(tmp_path)) as pool:
        pool.hold().add(b"x")
        assert list(tmp_path.iterdir()) == []
        assert open_files() == descriptors + 1
    assert open_files() == descriptors


def test_the_file_is_in_the_given_directory(tmp_path: Path) -> None:
    with SpillPool(0, str(tmp_path / "absent")) as pool, pytest.raises(FileNotFoundError):
        pool.hold().add(b"x")
