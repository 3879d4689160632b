"""Thread pools of the rounds, made in one place: a simulation puts an executor of its own here, which runs everything
in one thread and in an order that it chooses."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor

Make = Callable[[int, str], Executor]
"""Makes an executor of so many threads, whose names begin as given."""


def threads(count: int, name: str) -> Executor:
    """An executor of real threads."""
    return ThreadPoolExecutor(count, thread_name_prefix=name)


_make: Make = threads


def pool(count: int, name: str) -> Executor:
    """An executor of `count` threads whose names begin with `name`."""
    return _make(count, name)


def replace_factory(make: Make) -> Make:
    """Sets what makes executors from now on in this process; returns what did before."""
    global _make
    before, _make = _make, make
    return before
