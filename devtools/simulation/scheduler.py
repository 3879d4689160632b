"""A deterministic scheduler: exactly one actor runs at a time, and a seed decides which one, how long, and the time.

Each actor has a thread, because product code is not written as coroutines. Only one thread runs at a time; threads pass
a baton. An actor passes a *step* before and after each external effect. A killed actor passes no further step: it
unwinds, and none of its later calls has an effect.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

NEVER = 1 << 62
STACK_BYTES = 512 << 10


class Killed(BaseException):
    """Unwinds the thread of a killed actor. No handler of product code catches it."""


class Actor:
    """A process, or a late attempt of a task. It sleeps until the time `wake` (ms); its host's clock is `ahead` ms
    ahead. `unproven`: it has polled log ends since it last put or read a record of the ledger."""

    def __init__(self, name: str, work: Callable[[], object], *, ahead: int = 0) -> None:
        self.name = name
        self.work = work
        self.ahead = ahead
        self.wake = 0
        self.killed = False
        self.done = False
        self.error: BaseException | None = None
        self.faults: set[str] = set()
        self.outage_until = -1
        self.about_writes = False
        self.outage_of_ledger: bool | None = None
        self.unproven = False
        self.baton = threading.Lock()
        self.baton.acquire()


class _Worker(threading.Thread):
    """A thread that runs actors one after another; threads are reused between runs."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="simulated")
        self.ready = threading.Lock()
        self.ready.acquire()
        self.actor: Actor | None = None
        self.scheduler: Scheduler | None = None

    def run(self) -> None:
        while True:
            self.ready.acquire()
            actor, scheduler = self.actor, self.scheduler
            assert actor is not None
            assert scheduler is not None
            actor.baton.acquire()
            try:
                if not actor.killed:
                    actor.work()
            except BaseException as error:
                actor.error = error
            actor.done = True
            self.actor = self.scheduler = None
            _idle.append(self)
            scheduler.left(actor)
            del actor, scheduler


_idle: list[_Worker] = []


def in_simulation(controlling: threading.Thread) -> bool:
    """Whether the calling thread is that of an actor, or the one that controls the run. Other threads of the process,
    such as a driver that another test has left, must not change a run."""
    current = threading.current_thread()
    return current is controlling or isinstance(current, _Worker)


class Scheduler:
    """Chooses the next actor. `now` is the true time in ms; `steps` counts the turns."""

    def __init__(self, rng: random.Random, *, now: int, stay: float, tick: int) -> None:
        """`stay` is the probability that the running actor continues at a step; `tick` is the maximum time of a step in
        ms."""
        self.now = now
        self.steps = 0
        self.limit = NEVER
        self.actors: list[Actor] = []
        self.current: Actor | None = None
        self.failure: BaseException | None = None
        self.on_step: Callable[[Actor], None] = lambda actor: None
        self._rng = rng
        self._stay = stay
        self._tick = tick
        self._control = threading.Lock()
        self._control.acquire()

    def spawn(self, name: str, work: Callable[[], object], *, ahead: int = 0) -> Actor:
        actor = Actor(name, work, ahead=ahead)
        worker = _idle.pop() if _idle else None
        if worker is None:
            threading.stack_size(STACK_BYTES)
            worker = _Worker()
            worker.start()
        worker.actor, worker.scheduler = actor, self
        worker.ready.release()
        self.actors.append(actor)
        return actor

    # -- called by the thread of an actor ----------------------------------------------------------------------------

    def step(self) -> None:
        """A point at which the running actor can be paused or killed. Raises Killed. No effect outside of actors."""
        me = self.current
        if me is None:
            return
        if me.killed:
            raise Killed
        self.steps += 1
        self.now += self._rng.randrange(self._tick + 1)
        try:
            self.on_step(me)
        except Exception as error:
            self.fail(error)
        if self.steps >= self.limit or self.failure is not None:
            self._wait(me, None)
        elif not self._is_alive(me) or me.wake > self.now or self._rng.random() >= self._stay:
            self._yield(me)
        if not self._is_alive(me):
            raise Killed

    def sleep(self, ms: int) -> None:
        """Lets the running actor sleep. Raises Killed."""
        me = self.current
        if me is None:
            self.now += ms
            return
        if me.killed:
            raise Killed
        me.wake = self.now + ms
        self.step()

    @staticmethod
    def _is_alive(actor: Actor) -> bool:
        return not actor.killed

    def fail(self, error: BaseException) -> None:
        """Ends the run: keeps the first failure, and returns control at the next step."""
        if self.failure is None:
            self.failure = error

    def left(self, actor: Actor) -> None:
        """Called by the thread when its actor has ended."""
        self.actors.remove(actor)
        target = None if self.failure is not None or self.steps >= self.limit else self._choose()
        self._pass(target)

    # -- called by the controlling thread ----------------------------------------------------------------------------

    def run(self, limit: int = NEVER) -> None:
        """Runs actors until none is left, a check has failed, or `limit` more steps have passed."""
        self.limit = NEVER if limit == NEVER else self.steps + limit
        target = self._choose()
        if target is None:
            return
        self._pass(target)
        self._control.acquire()

    def unwind(self) -> None:
        """Ends the threads of all actors, as if killed."""
        while self.actors:
            actor = self.actors[-1]
            actor.killed = True
            self.limit = self.steps
            self._pass(actor)
            self._control.acquire()

    # -- turns -------------------------------------------------------------------------------------------------------

    def _choose(self) -> Actor | None:
        """The next actor; if all sleep, time advances."""
        if not self.actors:
            return None
        ready = [actor for actor in self.actors if actor.wake <= self.now or actor.killed]
        if not ready:
            wake = min(actor.wake for actor in self.actors)
            if wake >= NEVER:
                return None
            self.now = wake
            ready = [actor for actor in self.actors if actor.wake <= wake]
        return ready[self._rng.randrange(len(ready))] if len(ready) > 1 else ready[0]

    def _yield(self, me: Actor) -> None:
        target = self._choose()
        if target is not me:
            self._wait(me, target)

    def _wait(self, me: Actor, target: Actor | None) -> None:
        self._pass(target)
        me.baton.acquire()
        self.current = me

    def _pass(self, target: Actor | None) -> None:
        if target is None:
            self.current = None
            self._control.release()
        else:
            self.current = target
            target.baton.release()


class Pause(threading.Event):
    """A driver's stop event whose waits take simulated time."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        self._scheduler = scheduler

    def wait(self, timeout: float | None = None) -> bool:
        if not self.is_set():
            self._scheduler.sleep(int((timeout or 0) * 1000))
        return self.is_set()
