"""Tables that are continued in a new one, as a small model of its own.

A ledger acknowledges object 0, then objects 1 and 2 in one record, or 0 and 1 in one record, then 2. No table has both
object 0 or 1 and object 2: their columns do not fit, or an offset reset is between them. So the first table gets the
objects 0 and 1, and its successor object 2. Two registrations do it, of which the second one may have a manifest that
says Stop. Each may stop for ever after any step, or lose the reply of the catalog: it then begins again, and its
request may be applied at any later time, or never. Beside them, once, another program changes a table. A step is one
effect.

The steps are those of `sink_job.tables.successors.chain`. `model.registration` has the rules of one table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from model.search import Outcome, Search

OBJECTS: Final = 3
DIVIDED: Final = ((0,), (1, 2))
"""The objects that each record acknowledges, where one has some that fit and one that does not."""
UNDIVIDED: Final = ((0, 1), (2,))
RECORDS: Final = len(DIVIDED)
MISFIT: Final = 2
"""The object that does not fit the first table."""
MAX_COMMITS: Final = 2
"""Maximum number of commits that a registration sends."""
NONE: Final = -1
FIRST: Final = 0
SECOND: Final = 1

CONTINUATION_RULES: Final = {
    "successor.snapshot": "The commit that leaves a table has a snapshot, also without objects.",
    "successor.head": "It requires the head that was loaded.",
    "successor.one-commit": "It adds the last objects, too.",
    "successor.left": "A registration adds nothing to a table that was left.",
    "successor.start": "The successor has the objects that the property leaves to it.",
    "successor.create": "A successor is created only if it does not exist.",
    "successor.memory": "A successor that is in the memory and does not exist stops the registration.",
    "successor.owner": "A table of others with the name of the successor is not used.",
    "successor.seen": "The memory says that a table was left only after a registration has seen it.",
    "successor.dropped": "A table that was left, as the memory says, need not exist any more.",
    "successor.stop": "A table that was left is continued by a registration that says Stop, too.",
}
OMITTED: Final = {
    "successor.snapshot": "duplicate",
    "successor.head": "duplicate",
    "successor.one-commit": "duplicate",
    "successor.left": "duplicate",
    "successor.start": "duplicate",
    "successor.create": "created again",
    "successor.memory": "created again",
    "successor.owner": "table of others",
    "successor.seen": "missing",
    "successor.dropped": "needless stop",
    "successor.stop": "needless stop",
}
"""The invariant that breaks without a rule."""
SHOWN_BY: Final = {
    "successor.snapshot": "other columns",
    "successor.memory": "dropped successor",
    "successor.owner": "foreign successor",
    "successor.dropped": "dropped first table",
}
"""The change of another program with which it breaks; others: nothing."""
CHANGES: Final = ("nothing", "other columns", "dropped successor", "dropped first table", "foreign successor")
"""What another program does once, at any time. Other columns: every object fits the first table then. Foreign
successor: a table with that name is there from the beginning."""


class Table(NamedTuple):
    """How often it has each object, its head (a number that each commit with a snapshot changes), its position (the
    number of records), what it has left to the successor (None: it was not left), and whether every object fits."""

    counts: tuple[int, ...] = (0,) * OBJECTS
    head: int = 0
    record: int = 0
    left: tuple[int, ...] | None = None
    fits_all: bool = False
    is_foreign: bool = False


class Request(NamedTuple):
    """A commit on its way: `of`: the registration that still waits for it. `head` is the required one (NONE: the table
    must not exist). `added` are objects, `left` those that it leaves to the successor."""

    of: int
    table: int
    head: int
    added: tuple[int, ...]
    record: int
    left: tuple[int, ...] | None


class Registering(NamedTuple):
    """A registration: its next step, the table that it works on, and what it has read."""

    step: str = "new"
    at: int = FIRST
    ledger: int = 0
    memory: bool = False
    table: Table | None = None
    start: tuple[int, ...] = ()
    sent: Request | None = None
    commits: int = 0
    seen: tuple[int, ...] = ()


class World(NamedTuple):
    """`left` is what the memory of the first table says (None: it was not left), `remembered` whether there is a memory
    of the second one."""

    change: str
    acknowledged: int = 1
    tables: tuple[Table | None, Table | None] = (Table(), None)
    left: tuple[int, ...] | None = None
    remembered: bool = False
    created: int = 0
    registrations: tuple[Registering, ...] = (Registering(), Registering())
    requests: frozenset[Request] = frozenset()
    changed: bool = False
    is_dropped: bool = False


@dataclass(frozen=True)
class Continuations:
    """The model without the rules `omitted`, with one change by another program. `stops`: the second registration says
    Stop. `records` are the objects of each record of the ledger."""

    change: str
    omitted: frozenset[str] = frozenset()
    stops: bool = False
    records: tuple[tuple[int, ...], ...] = DIVIDED

    def search(self) -> Outcome:
        """Searches all states."""
        foreign = Table(is_foreign=True) if self.change == "foreign successor" else None
        world = World(self.change, tables=(Table(), foreign))
        return Search(
            steps=self._steps, broken=self._broken, ended=is_done, relied_on=lambda label: True, limit=3_000_000
        ).run(world)

    def _has(self, rule: str) -> bool:
        return f"successor.{rule}" not in self.omitted

    def _steps(self, world: World) -> Iterator[tuple[str, World]]:
        if world.acknowledged < RECORDS:
            yield "the ledger acknowledges the other objects", world._replace(acknowledged=world.acknowledged + 1)
        changed = _changed(world)
        if changed is not None and not world.changed:
            yield f"another program: {world.change}", changed._replace(changed=True)
        for request in sorted(world.requests, key=repr):
            yield self._apply(world, request)
        for number, it in enumerate(world.registrations):
            for label, after, world_after in self._of(world, number, it):
                yield f"registration {number}: {label}", _with(world_after, number, after)

    def _of(self, world: World, number: int, it: Registering) -> Iterator[tuple[str, Registering, World]]:
        match it.step:
            case "new":
                yield "reads the ledger", Registering("ledger", ledger=world.acknowledged, commits=it.commits), world
            case "ledger" if it.at == FIRST:
                if world.left is not None and self._has("dropped"):
                    yield "reads that the first table was left", self._to_second(it, world.left), world
                else:
                    yield "reads the memory", it._replace(step="to load", memory=world.left is not None), world
            case "ledger":
                yield "reads the memory", it._replace(step="to load", memory=world.remembered), world
            case "to load":
                yield "loads the table", it._replace(step="loaded", table=world.tables[it.at]), world
            case "loaded":
                yield self._decide(world, number, it)
            case "to send":
                assert it.sent is not None
                yield "sends a commit", it._replace(step="waiting"), world._replace(requests=world.requests | {it.sent})
            case "waiting":
                mine = frozenset(each for each in world.requests if each.of == number)
                requests = (world.requests - mine) | {each._replace(of=NONE) for each in mine}
                yield "loses the reply", Registering(commits=it.commits), world._replace(requests=requests)
            case "to leave":
                yield self._leave_after(world, number, it)
            case "committed":
                yield self._remember(world, it)

    def _to_second(self, it: Registering, left: tuple[int, ...]) -> Registering:
        start = left if self._has("start") else self.records[-1]
        return it._replace(step="ledger", at=SECOND, start=start, table=None, memory=False, sent=None)

    def _decide(self, world: World, number: int, it: Registering) -> tuple[str, Registering, World]:
        return self._decide_first(world, number, it) if it.at == FIRST else self._decide_second(world, number, it)

    def _decide_first(self, world: World, number: int, it: Registering) -> tuple[str, Registering, World]:
        table = it.table
        if table is None:
            if world.left is not None and self._has("dropped"):
                return "reads that the table was left meanwhile", self._to_second(it, world.left), world
            return "stops: the first table does not exist", it._replace(step="stopped"), world
        if table.left is not None and self._has("left"):
            if number == 1 and self.stops and not self._has("stop"):
                return "stops: the table was left", it._replace(step="stopped"), world
            left = table.left
            return "sees that the table was left", self._to_second(it, left), world._replace(left=left)
        new = [o for record in self.records[table.record : it.ledger] for o in record]
        if not new:
            return "has nothing to add", it._replace(step="done", seen=table.counts), world
        fits = tuple(o for o in new if table.fits_all or o != MISFIT)
        if len(fits) == len(new):
            return self._send(world, it, Request(number, FIRST, table.head, fits, it.ledger, None))
        if number == 1 and self.stops:
            return "stops: an object does not fit", it._replace(step="stopped"), world
        request = Request(number, FIRST, table.head, fits, RECORDS - 1, (MISFIT,))
        if not self._has("one-commit") and fits:
            request = request._replace(record=table.record, left=None)
        world = world if self._has("seen") else world._replace(left=(MISFIT,))
        return self._send(world, it, request)

    def _decide_second(self, world: World, number: int, it: Registering) -> tuple[str, Registering, World]:
        table = it.table
        if table is None:
            if it.memory and self._has("memory"):
                return "stops: the successor does not exist any more", it._replace(step="stopped"), world
            return self._send(world, it, Request(number, SECOND, NONE, it.start, RECORDS, None))
        if table.is_foreign and self._has("owner"):
            return "stops: the successor belongs to others", it._replace(step="stopped"), world
        if table.record == RECORDS:
            return "has nothing to add", it._replace(step="done"), world
        return self._send(world, it, Request(number, SECOND, table.head, it.start, RECORDS, None))

    def _send(self, world: World, it: Registering, request: Request) -> tuple[str, Registering, World]:
        if it.commits == MAX_COMMITS:
            return "ends without an effect", it._replace(step="ended"), world
        return "prepares a commit", it._replace(step="to send", sent=request, commits=it.commits + 1), world

    def _leave_after(self, world: World, number: int, it: Registering) -> tuple[str, Registering, World]:
        """Without the rule of one commit: a second one leaves the table."""
        table = world.tables[FIRST]
        assert it.sent is not None
        if table is None:
            return "finds no table", Registering(commits=it.commits), world
        request = Request(number, FIRST, table.head, (), RECORDS - 1, (MISFIT,))
        return "prepares to leave the table", it._replace(step="to send", sent=request), world

    def _remember(self, world: World, it: Registering) -> tuple[str, Registering, World]:
        assert it.sent is not None
        if it.at == SECOND:
            return "writes the memory", Registering(commits=it.commits), world._replace(remembered=True)
        left = it.sent.left
        world = world if left is None else world._replace(left=left)
        return "writes the memory", Registering(commits=it.commits), world

    def _apply(self, world: World, request: Request) -> tuple[str, World]:
        """The catalog gets a request."""
        world = world._replace(requests=world.requests - {request})
        table = world.tables[request.table]
        it = world.registrations[request.of] if request.of != NONE else None
        if not self._is_accepted(table, request):
            after = world if it is None else _with(world, request.of, Registering(commits=it.commits))
            return "the catalog rejects a commit", after
        before = table if table is not None and request.head != NONE else Table()
        counts = tuple(count + (number in request.added) for number, count in enumerate(before.counts))
        has_snapshot = bool(request.added) or self._has("snapshot")
        changed = before._replace(
            counts=counts,
            head=before.head + has_snapshot,
            record=request.record,
            left=request.left if request.left is not None else before.left,
        )
        created = world.created + (request.head == NONE)
        tables = (changed, world.tables[1]) if request.table == FIRST else (world.tables[0], changed)
        after = world._replace(tables=tables, created=created)
        if it is None:
            return "the catalog applies a delayed commit", after
        is_half = not self._has("one-commit") and request.table == FIRST and request.left is None
        step = "to leave" if is_half and self._misses(request, it) else "committed"
        return "the catalog applies a commit", _with(after, request.of, it._replace(step=step))

    @staticmethod
    def _misses(request: Request, it: Registering) -> bool:
        return request.record < it.ledger

    def _is_accepted(self, table: Table | None, request: Request) -> bool:
        if request.head == NONE:
            return table is None or not self._has("create")
        if table is None:
            return False
        return table.head == request.head or (request.left is not None and not self._has("head"))

    def _broken(self, world: World) -> tuple[str, str] | None:
        """The first invariant that a state breaks."""
        first, second = world.tables
        counts = [0] * OBJECTS
        for table in (first, second):
            if table is not None:
                counts = [a + b for a, b in zip(counts, table.counts, strict=True)]
        if max(counts) > 1:
            return "duplicate", "an object is in the tables twice"
        if second is not None and second.is_foreign and any(second.counts):
            return "table of others", "a registration has added objects to a table of others"
        if world.created > 1:
            return "created again", "the successor was created twice"
        for number, it in enumerate(world.registrations):
            lacks = it.step == "done" and it.at == SECOND and not world.is_dropped and not all(counts)
            if lacks:
                return "missing", "a registration ended and the tables lack an object"
            if it.step == "stopped" and self._is_needless(world, number):
                return "needless stop", "a registration stopped, and the tables can be continued"
        return None

    def _is_needless(self, world: World, number: int) -> bool:
        it = world.registrations[number]
        if it.at == SECOND:
            return world.change not in ("foreign successor", "dropped successor")
        return it.table is None or it.table.left is not None or not (number == 1 and self.stops)


def _with(world: World, number: int, it: Registering) -> World:
    registrations = world.registrations
    return world._replace(registrations=(*registrations[:number], it, *registrations[number + 1 :]))


def _is_quiet(world: World) -> bool:
    """Whether no registration runs, and no commit is on its way: the user has stopped the sink, and waited."""
    ended = all(each.step in ("new", "done", "stopped", "ended") for each in world.registrations)
    return ended and not world.requests


def _changed(world: World) -> World | None:
    """The world after the change of another program; None if it cannot happen now."""
    first, second = world.tables
    match world.change:
        case "other columns" if first is not None:
            return world._replace(tables=(first._replace(fits_all=True), second))
        case "dropped successor" if second is not None and world.remembered and _is_quiet(world):
            return world._replace(tables=(first, None), is_dropped=True)
        case "dropped first table" if first is not None and world.left is not None:
            return world._replace(tables=(None, second), is_dropped=True)
    return None


def is_done(world: World) -> bool:
    """Whether each registration has ended."""
    return all(each.step in ("done", "stopped", "ended") for each in world.registrations)
