"""The factory of thread pools. A simulation replaces it by one whose executors run everything in one thread, in an
order that the simulation chooses."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor

Make = Callable[[int, str], Executor]
"""Creates an executor from the number of threads and the prefix of their names."""


def threads(count: int, name: str) -> Executor:
    """An executor with `count` operating-system threads."""
    return ThreadPoolExecutor(count, thread_name_prefix=name)


_make: Make = threads


def pool(count: int, name: str) -> Executor:
    """An executor with `count` threads whose names start with `name`."""
    return _make(count, name)


def replace_factory(make: Make) -> Make:
    """Sets the factory of this process and returns the previous one."""
    global _make
    previous, _make = _make, make
    return previous
