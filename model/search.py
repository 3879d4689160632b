"""Breadth first search over explicit states: every order of steps, the shortest counter-example first."""

from __future__ import annotations

import gc
from array import array
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Generic, NamedTuple, TypeVar

S = TypeVar("S", bound=Hashable)


class Step(NamedTuple, Generic[S]):
    """One effect outside the process: its description and the state after it."""

    label: str
    state: S


class Violation(NamedTuple):
    """A broken invariant and the steps that lead to it."""

    invariant: str
    message: str
    trace: tuple[str, ...]

    def __str__(self) -> str:
        steps = "\n".join(f"  {n:3}. {label}" for n, label in enumerate(self.trace, 1))
        return f"{self.invariant}: {self.message}\n{steps}"


class Outcome(NamedTuple):
    """The result of a search. `states` is the number of visited states; without a violation these are all states."""

    states: int
    violation: Violation | None


class TooLarge(Exception):
    """The case has more states than the limit of the search."""


class Search(Generic[S]):
    """Explores every state that is reachable from an initial state.

    `broken` returns the first invariant that a state breaks (name, message); `ended` returns whether the work is done
    in a state. If there is no violation, an end must be reachable from every state by steps whose label satisfies
    `relied_on`. Otherwise the invariant `no progress` is broken.
    """

    def __init__(
        self,
        *,
        steps: Callable[[S], Iterable[tuple[str, S]]],
        broken: Callable[[S], tuple[str, str] | None],
        ended: Callable[[S], bool],
        relied_on: Callable[[str], bool],
        limit: int,
    ) -> None:
        self._steps = steps
        self._broken = broken
        self._ended = ended
        self._relied_on = relied_on
        self._limit = limit
        self._numbers: dict[S, int] = {}
        self._labels: list[str] = [""]
        self._parents = array("L", [0])
        self._edges = array("L")

    def run(self, start: S) -> Outcome:
        """Searches until the first violation, or until every reachable state is visited.

        Raises TooLarge if there are more than `limit` states.
        """
        with _no_cyclic_garbage():
            return self._run(start)

    def _run(self, start: S) -> Outcome:
        self._numbers[start] = 0
        waiting = deque([start])
        ends: list[int] = []
        while waiting:
            state = waiting.popleft()
            number = self._numbers[state]
            if self._ended(state):
                ends.append(number)
            for label, after in self._steps(state):
                known = self._numbers.get(after)
                if known is None:
                    known = self._add(after, number, label)
                    waiting.append(after)
                    broken = self._broken(after)
                    if broken:
                        return self._outcome(Violation(*broken, self._trace(known)))
                if self._relied_on(label):
                    self._edges.extend((number, known))
        blocked = self._never_ending(ends)
        if blocked is not None:
            return self._outcome(Violation("no progress", "no driver can finish from this state", self._trace(blocked)))
        return self._outcome(None)

    def _add(self, state: S, parent: int, label: str) -> int:
        number = len(self._numbers)
        if number >= self._limit:
            raise TooLarge(f"more than {self._limit} states")
        self._numbers[state] = number
        self._labels.append(label)
        self._parents.append(parent)
        return number

    def _outcome(self, violation: Violation | None) -> Outcome:
        return Outcome(len(self._numbers), violation)

    def _trace(self, number: int) -> tuple[str, ...]:
        labels = []
        while number:
            labels.append(self._labels[number])
            number = self._parents[number]
        return tuple(reversed(labels))

    def _never_ending(self, ends: list[int]) -> int | None:
        """The first state from which no end is reachable; None if there is no such state."""
        before: dict[int, list[int]] = {}
        for source, target in zip(self._edges[::2], self._edges[1::2], strict=True):
            before.setdefault(target, []).append(source)
        reached = bytearray(len(self._numbers))
        waiting = list(ends)
        for number in waiting:
            reached[number] = 1
        while waiting:
            for source in before.get(waiting.pop(), ()):
                if not reached[source]:
                    reached[source] = 1
                    waiting.append(source)
        missing = reached.find(0)
        return missing if missing >= 0 else None


@contextmanager
def _no_cyclic_garbage() -> Iterator[None]:
    """Pauses the collector of reference cycles. States are tuples without cycles, and looking for cycles among all of
    them takes a quarter of the time of a search."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
