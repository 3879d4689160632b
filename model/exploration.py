"""Searches a case of the protocol.

The steps of a driver depend on the store (everything but the drivers) and on this driver; those of a fault depend on
the store. The same store occurs with many positions of the other drivers, so these steps, and the invariants, are
computed once for the parts that they depend on. A state of the search is a tuple of numbers: the number of its store,
followed by those of its drivers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from functools import cache
from typing import Generic, TypeVar

from model import commands, faults, protocol
from model.initial_states import begin
from model.invariants import broken
from model.model_state import COMMANDS, NAMES, Case, Driver, ModelState
from model.search import Outcome, Search

LIMIT = 400_000

T = TypeVar("T", bound=Hashable)
Numbers = tuple[int, ...]


class Table(Generic[T]):
    """Numbers from 0 on, one for each content."""

    def __init__(self) -> None:
        self._numbers: dict[T, int] = {}
        self.contents: list[T] = []

    def number(self, content: T) -> int:
        number = self._numbers.setdefault(content, len(self.contents))
        if number == len(self.contents):
            self.contents.append(content)
        return number


class NumberedStates:
    """The states of a case as tuples of numbers, with their steps, ends and broken invariants.

    `only` restricts the invariants to the one of this name.
    """

    def __init__(self, case: Case, only: str | None) -> None:
        self._case = case
        self._only = only
        self._stores = Table[ModelState]()
        self._drivers = Table[Driver]()
        self._driver_steps = cache(self._steps_of_driver)
        self._fault_steps = cache(self._steps_of_faults)
        self._broken = cache(self._first_broken)
        self._is_at_end = cache(self._driver_is_at_end)

    def numbers(self, model: ModelState) -> Numbers:
        store = self._stores.number(_with_drivers(model, ()))
        return store, *[self._drivers.number(d) for d in model.drivers]

    def model(self, store: int, drivers: Iterable[int]) -> ModelState:
        """The state with this store and these drivers."""
        return _with_drivers(self._stores.contents[store], tuple([self._drivers.contents[n] for n in drivers]))

    def steps(self, state: Numbers) -> Iterator[tuple[str, Numbers]]:
        """The steps of `protocol.steps`, in the same order."""
        store, *drivers = state
        rests = self._case.alone and commands.at_work(self.model(store, drivers))
        for place, driver in enumerate(drivers, 1):
            if rests and self._drivers.contents[driver].name not in COMMANDS:
                continue
            before, behind = state[1:place], state[place + 1 :]
            for label, after, moved in self._driver_steps(store, driver, self._seen_by(driver, drivers)):
                yield label, (after, *before, moved, *behind)
        if self._case.alone:
            for label, killed in commands.kill(self.model(store, drivers)):
                yield label, self.numbers(killed)
        seen = state[1:] if protocol.faults_see_drivers(self._case) else ()
        for label, after in self._fault_steps(store, seen):
            yield label, (after, *state[1:])

    def broken(self, state: Numbers) -> tuple[str, str] | None:
        """The first broken invariant. Invariants see the store and the drivers that are done."""
        return self._broken(state[0], tuple([n for n in state[1:] if self._drivers.contents[n].at == "done"]))

    def ended(self, state: Numbers) -> bool:
        ends = [n for n in state[1:] if self._drivers.contents[n].at in protocol.ENDS]
        return any(self._is_at_end(state[0], driver) for driver in ends)

    def _seen_by(self, driver: int, drivers: Iterable[int]) -> Numbers:
        """The drivers that this driver's next step depends on, without itself: none, or the commands."""
        if not self._case.commands or self._drivers.contents[driver].at not in protocol.SEES_COMMANDS:
            return ()
        return tuple(n for n in drivers if n != driver and self._drivers.contents[n].name in COMMANDS)

    def _steps_of_driver(self, store: int, driver: int, seen: Numbers) -> list[tuple[str, int, int]]:
        """The label of each step, and the numbers of the store and of the driver after it."""
        d, model = self._drivers.contents[driver], self.model(store, (driver, *seen))
        found = []
        for label, after in protocol.driver_steps(self._case, model, d):
            after_store, moved, *_ = self.numbers(after)
            found.append((label, after_store, moved))
        return found

    def _steps_of_faults(self, store: int, seen: Numbers) -> list[tuple[str, int]]:
        """The label of each step, and the number of the store after it."""
        happened = faults.happen(self._case, self.model(store, seen))
        return [(label, self.numbers(after)[0]) for label, after in happened]

    def _first_broken(self, store: int, done: Numbers) -> tuple[str, str] | None:
        found = broken(self._case, self.model(store, done))
        return next((b for b in found if self._only in (None, b[0])), None)

    def _driver_is_at_end(self, store: int, driver: int) -> bool:
        return protocol.ended(self._case, self.model(store, (driver,)))


_DRIVERS = ModelState._fields.index("drivers")


def _with_drivers(model: ModelState, drivers: tuple[Driver, ...]) -> ModelState:
    """As `model._replace(drivers=drivers)`, which takes four times as long: a search does it for most steps."""
    return ModelState._make((*model[:_DRIVERS], drivers, *model[_DRIVERS + 1 :]))


def explore(case: Case, *, only: str | None = None, limit: int = LIMIT) -> Outcome:
    """Searches all states of a case for a broken invariant, or for the invariant `only`.

    The last driver must be able to finish alone, whatever happened to the others. If any driver can be the last to
    claim, some driver must be able to finish.
    """
    states = NumberedStates(case, only)
    checks_progress = only in (None, "no progress")
    return Search[Numbers](
        steps=states.steps,
        broken=states.broken,
        ended=states.ended if checks_progress else lambda _: True,
        relied_on=cache(lambda label: checks_progress and relied_on(case, label)),
        limit=limit,
    ).run(states.numbers(begin(case)))


def relied_on(case: Case, label: str) -> bool:
    """Whether the progress of a case may depend on the step with this label."""
    return (
        case.claiming
        or case.drivers > 2
        or label.startswith(NAMES[case.drivers - 1])
        or " is requested " in label
        or " is killed" in label
    )
