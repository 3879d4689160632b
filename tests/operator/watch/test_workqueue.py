"""The queue of sinks to reconcile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from s3sink_operator.watch.workqueue import PRIORITY, WorkQueue


class Clock:
    """Seconds that the test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def play(scene: Callable[[WorkQueue[str], Clock], Awaitable[None]]) -> None:
    clock = Clock()

    async def run() -> None:
        await asyncio.wait_for(scene(WorkQueue(clock), clock), 10)

    asyncio.run(run())


def test_a_key_that_is_added_twice_is_taken_once() -> None:
    async def scene(queue: WorkQueue[str], _: Clock) -> None:
        queue.add("a")
        queue.add("a")
        queue.add("b")
        assert [await queue.take(), await queue.take()] == ["a", "b"]
        queue.done("a")
        queue.done("b")
        assert len(queue) == 0

    play(scene)


def test_a_key_that_is_added_while_a_worker_has_it_comes_again_when_it_is_done() -> None:
    async def scene(queue: WorkQueue[str], _: Clock) -> None:
        queue.add("a")
        assert await queue.take() == "a"
        queue.add("a")
        other = asyncio.ensure_future(queue.take())
        await asyncio.sleep(0)
        assert not other.done()
        queue.done("a")
        assert await other == "a"

    play(scene)


def test_an_immediate_requeue_replaces_a_later_one() -> None:
    async def scene(queue: WorkQueue[str], clock: Clock) -> None:
        queue.add("a", 60)
        queue.add("a")
        assert await queue.take() == "a"
        queue.done("a")
        clock.now = 100
        assert len(queue) == 0

    play(scene)


def test_keys_come_in_the_order_of_their_time() -> None:
    async def scene(queue: WorkQueue[str], clock: Clock) -> None:
        queue.add("late", 20)
        queue.add("early", 10)
        clock.now = 30
        assert [await queue.take(), await queue.take()] == ["early", "late"]

    play(scene)


def test_a_worker_that_waits_is_woken_by_a_key_that_is_due_sooner() -> None:
    async def scene(queue: WorkQueue[str], _: Clock) -> None:
        queue.add("late", 1000)
        waiting = asyncio.ensure_future(queue.take())
        await asyncio.sleep(0)
        queue.add("now")
        assert await waiting == "now"

    play(scene)


def test_what_is_urgent_comes_before_what_was_due_already() -> None:
    async def scene(queue: WorkQueue[str], clock: Clock) -> None:
        queue.add("first")
        clock.now = 10
        queue.add("urgent", PRIORITY)
        assert [await queue.take(), await queue.take()] == ["urgent", "first"]

    play(scene)


def test_what_has_waited_for_long_is_not_overtaken_by_what_is_urgent() -> None:
    async def scene(queue: WorkQueue[str], clock: Clock) -> None:
        queue.add("waits")
        clock.now = -PRIORITY + 1
        queue.add("urgent", PRIORITY)
        assert [await queue.take(), await queue.take()] == ["waits", "urgent"]

    play(scene)


def test_many_keys_of_one_namespace_delay_a_key_of_another_by_one_turn() -> None:
    async def scene() -> None:
        queue: WorkQueue[str] = WorkQueue(Clock(), lambda key: key[0])
        for number in range(1000):
            queue.add(f"a{number}", PRIORITY)
        assert await queue.take() == "a0"
        queue.add("b0")
        assert {await queue.take(), await queue.take()} == {"a1", "b0"}
        queue.add("b0")
        queue.done("b0")
        assert {await queue.take(), await queue.take()} == {"a2", "b0"}

    asyncio.run(asyncio.wait_for(scene(), 10))


def test_a_group_whose_keys_are_forgotten_or_moved_holds_up_no_other() -> None:
    async def scene() -> None:
        clock = Clock()
        queue: WorkQueue[str] = WorkQueue(clock, lambda key: key[0])
        queue.add("a", 1)
        queue.add("b", 1)
        queue.add("c", 1)
        clock.now = 2
        waiting = asyncio.ensure_future(queue.take())
        assert await waiting == "a"
        queue.forget("b")
        queue.add("c", -3)
        assert await queue.take() == "c"
        queue.done("a")
        queue.done("c")
        assert len(queue) == 0

    asyncio.run(asyncio.wait_for(scene(), 10))


def test_a_due_key_wakes_one_of_the_waiting_workers() -> None:
    async def scene(queue: WorkQueue[str], _: Clock) -> None:
        workers = [asyncio.ensure_future(queue.take()) for _ in range(3)]
        await asyncio.sleep(0)
        queue.add("a")
        await asyncio.wait(workers, return_when=asyncio.FIRST_COMPLETED)
        assert sum(each.done() for each in workers) == 1
        queue.add("b")
        queue.add("c")
        assert sorted(await asyncio.gather(*workers)) == ["a", "b", "c"]

    play(scene)


def test_keys_that_become_due_together_wake_a_worker_each() -> None:
    async def scene(queue: WorkQueue[str], _: Clock) -> None:
        queue = WorkQueue(asyncio.get_running_loop().time)
        workers = [asyncio.ensure_future(queue.take()) for _ in range(2)]
        queue.add("a", 0.01)
        queue.add("b", 0.01)
        assert sorted(await asyncio.gather(*workers)) == ["a", "b"]

    play(scene)


def test_a_worker_that_is_cancelled_as_it_is_woken_leaves_the_key_to_the_next_one() -> None:
    async def scene(queue: WorkQueue[str], _: Clock) -> None:
        first, second = (asyncio.ensure_future(queue.take()) for _ in range(2))
        await asyncio.sleep(0)
        queue.add("a")
        first.cancel()
        assert await second == "a"

    play(scene)
