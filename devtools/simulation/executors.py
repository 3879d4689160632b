"""Executors without threads: the calling thread does the work, in an order that the seed determines."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar
from unittest.mock import patch

from devtools.simulation.scheduler import in_simulation
from sink_job.engine import thread_pools
from sink_job.writer import object_writer

P = ParamSpec("P")
T = TypeVar("T")


class AtOnce(Executor):
    """Runs a submitted call before `submit` returns."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        _run(future, lambda: fn(*args, **kwargs))
        return future


class _Deferred(Future[T]):
    def __init__(self, settle: Callable[[], None]) -> None:
        super().__init__()
        self._settle = settle

    def result(self, timeout: float | None = None) -> T:
        self._settle()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._settle()
        return super().exception(timeout)


class Shuffled(Executor):
    """Runs submitted calls in any order when the first result is requested."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._waiting: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = _Deferred(self._settle)
        self._waiting.append((future, lambda: fn(*args, **kwargs)))
        return future

    def _settle(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._rng.shuffle(waiting)
        for future, work in waiting:
            _run(future, work)


def _run(future: Future[T], work: Callable[[], T]) -> None:
    """Stores errors in the future; the exception of a killed actor passes through."""
    try:
        future.set_result(work())
    except Exception as error:
        future.set_exception(error)


@contextmanager
def without_threads(rng: random.Random) -> Iterator[None]:
    """Replaces the thread pools of the simulation by these executors."""
    controlling = threading.current_thread()

    def make(count: int, name: str) -> Executor:
        return Shuffled(rng) if in_simulation(controlling) else before(count, name)

    def upload_pool(threads: int) -> Executor:
        return AtOnce() if in_simulation(controlling) else shared(threads)

    before, shared = thread_pools.replace_factory(make), object_writer._pool
    try:
        with patch.object(object_writer, "_pool", upload_pool):
            yield
    finally:
        thread_pools.replace_factory(before)
