"""Breadth first search over explicit states: every order of steps, the shortest counter-example first."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, NamedTuple, TypeVar

S = TypeVar("S", bound=Hashable)


class Step(NamedTuple, Generic[S]):
    """One effect on the outside world: what it is, and the state after it."""

    label: str
    state: S


class Violation(NamedTuple):
    """An invariant that does not hold, and the steps that lead there."""

    invariant: str
    message: str
    trace: tuple[str, ...]

    def __str__(self) -> str:
        steps = "\n".join(f"  {n:3}. {label}" for n, label in enumerate(self.trace, 1))
        return f"{self.invariant}: {self.message}\n{steps}"


class Outcome(NamedTuple):
    """How a search ended. `states` is how many were seen; without a violation they are all there are."""

    states: int
    violation: Violation | None


class TooLarge(Exception):
    """The case has more states than the search may hold."""


class Search(Generic[S]):
    """Explores everything that follows from a state.

    `broken` names the first invariant that a state breaks; `ended` tells whether the work is done there. When there is
    no violation, an end must be reachable from every state by steps that may be `relied_on`: otherwise the invariant
    `stuck` is broken.
    """

    def __init__(
        self,
        *,
        steps: Callable[[S], Iterable[Step[S]]],
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
        """Searches until the first violation, or until there is nothing left.

        Raises TooLarge when more than `limit` states turn up.
        """
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
        stuck = self._never_ending(ends)
        if stuck is not None:
            return self._outcome(Violation("stuck", "from here on no driver can ever finish", self._trace(stuck)))
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
        """The first state from which no end can be reached; None when there is none."""
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
