"""The factory of thread pools, and its replacement."""

from __future__ import annotations

import threading
from concurrent.futures import Executor, ThreadPoolExecutor

from sink_job.engine.thread_pools import pool, replace_factory, threads


def test_a_pool_has_as_many_threads_as_it_is_asked_for_and_their_names() -> None:
    together = threading.Barrier(3)

    def name(_: int) -> str:
        together.wait(timeout=30)  # passes only if three threads run at once
        return threading.current_thread().name

    with pool(3, "s3sink-test") as executor:
        names = set(executor.map(name, range(6)))
    assert len(names) == 3
    assert all(each.startswith("s3sink-test") for each in names)


def test_a_replaced_factory_makes_the_pools_until_the_previous_one_is_back() -> None:
    asked: list[tuple[int, str]] = []

    def make(count: int, name: str) -> Executor:
        asked.append((count, name))
        return ThreadPoolExecutor(1)

    previous = replace_factory(make)
    try:
        pool(7, "x").shutdown()
        assert asked == [(7, "x")]
    finally:
        assert replace_factory(previous) is make
    assert previous is threads
    pool(1, "y").shutdown()
    assert asked == [(7, "x")]
