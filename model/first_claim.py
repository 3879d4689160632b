"""The first claim in the place of another writer (P5), as a small model of its own.

A topic-partition has three records. The writer has committed offset 1: it has written record 0, perhaps record 1, which
it has not committed, and it has started an upload of record 2, which a task that was not stopped may complete at any
time. Two drivers start, each at any time, and may stop for ever after any step. A step is one effect. The sink's own
object holds all records from its start on.

The claim, the listing of uploads, the check of the head, the abort and the listing of objects are those of
`sink_job.ledger.first_claim` and of the coordinator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from model.search import Outcome, Search

RECORDS: Final = 3
COMMITTED: Final = 1
TASK: Final = -1
"""The upload of the writer's task; the others are those of the drivers, by number."""

FIRST_CLAIM_RULES: Final = {
    "first.compared": "A start behind objects needs their records to be Kafka's.",
    "first.checks-again": "After its claim a driver lists the objects again; any but the accepted ones ends the start.",
    "first.aborts-first": "The unfinished uploads are aborted before the objects are listed.",
    "first.repeated": "Every driver does both until one of them has recorded that it has checked.",
    "first.head": "The head is checked after the uploads are listed and before they are aborted.",
}
OMITTED: Final = {
    "first.compared": "lost",
    "first.checks-again": "duplicate",
    "first.aborts-first": "duplicate",
    "first.repeated": "duplicate",
    "first.head": "removed in use",
}
"""The invariant that breaks without a rule."""


class Written(NamedTuple):
    """A visible object with the records `[first, end)`; `is_equal`: they are Kafka's."""

    writer: str
    first: int
    end: int
    is_equal: bool = True


class Starting(NamedTuple):
    """A driver: its next step, its epoch, the start that it has found, and the uploads that it has listed."""

    step: str = "new"
    epoch: int = 0
    start: int = 0
    accepted: frozenset[Written] = frozenset()
    listed: frozenset[int] = frozenset()


class World(NamedTuple):
    """The bucket, the ledger and the drivers. `uploads` are unfinished; `used` are those of the driver that owns the
    ledger."""

    objects: frozenset[Written]
    uploads: frozenset[int]
    drivers: tuple[Starting, ...] = (Starting(), Starting())
    claims: int = 0
    start: int = 0
    accepted: frozenset[Written] = frozenset()
    is_checked: bool = False
    has_round: bool = False
    removed: bool = False


@dataclass(frozen=True)
class FirstClaim:
    """The model without the rules `omitted`. `beyond`: the object of record 1, or None."""

    beyond: Written | None
    omitted: frozenset[str] = frozenset()

    def search(self) -> Outcome:
        """Searches all states."""
        first = Written("writer", 0, COMMITTED)
        start = World(frozenset(filter(None, (first, self.beyond))), frozenset({TASK}))
        return Search(
            steps=self._steps, broken=broken, ended=is_done, relied_on=lambda label: True, limit=1_000_000
        ).run(start)

    def _has(self, rule: str) -> bool:
        return rule not in self.omitted

    def _steps(self, world: World) -> Iterator[tuple[str, World]]:
        if TASK in world.uploads:
            written = Written("writer", 2, 3)
            yield (
                "the task completes its upload of record 2",
                world._replace(objects=world.objects | {written}, uploads=world.uploads - {TASK}),
            )
        for number, driver in enumerate(world.drivers):
            for label, changed, after in self._of_driver(world, number, driver):
                drivers = (*after.drivers[:number], changed, *after.drivers[number + 1 :])
                yield f"driver {number}: {label}", after._replace(drivers=drivers)

    def _of_driver(self, world: World, number: int, it: Starting) -> Iterator[tuple[str, Starting, World]]:
        match it.step:
            case "new" if not world.claims:
                yield self._compare(world)
            case "compared" if world.claims:
                yield "finds a ledger", Starting(), world
            case "new" | "compared":
                yield self._claim(world, it)
            case "claimed" if not self._has("first.aborts-first"):
                yield self._check(world, it, "to list")
            case "claimed" | "to list":
                yield "lists the uploads", it._replace(step="listed", listed=world.uploads), world
            case "listed":
                if self._has("first.head") and world.claims != it.epoch:
                    yield "is fenced", it._replace(step="fenced"), world
                else:
                    yield "checks the head", it._replace(step="to abort"), world
            case "to abort":
                later = {n for n, each in enumerate(world.drivers) if each.epoch > it.epoch}
                in_use = it.listed & world.uploads & later
                after = world._replace(uploads=world.uploads - it.listed, removed=world.removed or bool(in_use))
                step = "aborted" if self._has("first.aborts-first") else "checked"
                yield "aborts the listed uploads", it._replace(step=step, listed=frozenset()), after
            case "aborted":
                yield self._check(world, it, "checked")
            case "checked" if world.claims != it.epoch:
                yield "is fenced", it._replace(step="fenced"), world
            case "checked":
                yield "records the check", it._replace(step="recorded"), world._replace(is_checked=True)
            case "recorded":
                yield "starts its upload", it._replace(step="opened"), world._replace(uploads=world.uploads | {number})
            case "opened":
                yield self._round(world, number, it)
            case "failed":
                yield "the user moves the objects away and starts it again", Starting(), self._moved(world)

    def _compare(self, world: World) -> tuple[str, Starting, World]:
        beyond = {each for each in world.objects if each.first >= COMMITTED}
        accepted = _equal(world) if self._has("first.compared") else sorted(beyond)
        if set(accepted) != beyond:
            return "finds a difference", Starting("failed"), world
        start = accepted[-1].end if accepted else COMMITTED
        return "compares the objects", Starting("compared", 0, start, frozenset(accepted)), world

    def _claim(self, world: World, it: Starting) -> tuple[str, Starting, World]:
        epoch = world.claims + 1
        if not world.claims:
            world = world._replace(start=it.start, accepted=it.accepted)
        checks = not world.is_checked and (epoch == 1 or self._has("first.repeated"))
        driver = Starting("claimed" if checks else "recorded", epoch)
        return f"claims the ledger with number {epoch}", driver, world._replace(claims=epoch)

    def _check(self, world: World, it: Starting, following: str) -> tuple[str, Starting, World]:
        if not self._has("first.checks-again"):
            return "does not list the objects", it._replace(step=following), world
        found = {each for each in world.objects if each.first >= COMMITTED}
        if found == world.accepted:
            return "finds the accepted objects alone", it._replace(step=following), world
        if world.claims != it.epoch:
            return "is fenced", it._replace(step="fenced"), world
        return "finds another object", it._replace(step="failed"), world

    def _round(self, world: World, number: int, it: Starting) -> tuple[str, Starting, World]:
        after = world._replace(uploads=world.uploads - {number})
        if world.claims != it.epoch:
            return "is fenced", it._replace(step="fenced"), after
        if world.has_round or world.start == RECORDS:
            return "has nothing to write", it._replace(step="done"), after
        objects = world.objects | {Written("sink", world.start, RECORDS)}
        return "records its round", it._replace(step="done"), after._replace(objects=objects, has_round=True)

    def _moved(self, world: World) -> World:
        """Without the writer's objects that prevent a start."""
        kept = world.accepted if world.claims else frozenset(_equal(world))
        preventing = {each for each in world.objects - kept if each.writer == "writer" and each.first >= COMMITTED}
        return world._replace(objects=world.objects - preventing)


def _equal(world: World) -> list[Written]:
    """The objects from the committed offset on that follow each other and have Kafka's records."""
    found: list[Written] = []
    for each in sorted(each for each in world.objects if each.first >= COMMITTED):
        if each.first != (found[-1].end if found else COMMITTED) or not each.is_equal:
            break
        found.append(each)
    return found


def is_done(world: World) -> bool:
    """Whether a driver that owns the ledger has written everything."""
    return any(each.step == "done" and each.epoch == world.claims for each in world.drivers)


def broken(world: World) -> tuple[str, str] | None:
    """The first invariant that a state breaks."""
    for record in range(RECORDS):
        holding = [each for each in world.objects if each.first <= record < each.end]
        if len(holding) > 1:
            return "duplicate", f"record {record} is in two objects"
        if is_done(world) and not any(each.is_equal for each in holding):
            return "lost", f"record {record} is in no object"
    return ("removed in use", "the upload of a later driver was aborted") if world.removed else None
