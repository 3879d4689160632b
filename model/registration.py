"""Registrations of objects in a table, as a small model of its own.

A ledger acknowledges objects 0 and 1, one after the other. Two registrations add them to a table that exists. Each may
stop for ever after any step, or lose the reply of the catalog: it then begins again, and its request may be applied at
any later time, or never. Beside them, once, another program changes the table. A step is one effect.

The steps are those of `sink_job.tables.registration`. The catalog is weaker than Iceberg's: it knows no sequence
numbers, so a delayed request may be applied after a rollback.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from model.search import Outcome, Search

OBJECTS: Final = 2
MAX_COMMITS: Final = 2
"""Maximum number of commits that a registration sends."""
NONE: Final = -1

REGISTRATION_RULES: Final = {
    "table.ledger-first": "The new position is the number of the ledger as it was read, before the table.",
    "table.memory-first": "The memory is read before the table.",
    "table.one-load": "Head and position come from one load of the table.",
    "table.one-commit": "One commit adds the objects and sets the position.",
    "table.head": "A commit requires the head that was loaded.",
    "table.no-rebase": "A rejected commit is thrown away; the next attempt begins with a load.",
    "table.uuid": "A table with another UUID than that in the memory stops the registration.",
    "table.lower": "A position below that in the memory or one in the history of the head stops the registration.",
    "table.missing": "A table without the position of its memory or of its history stops the registration.",
    "table.rolled-back": "A position whose snapshot is no ancestor of the head stops the registration.",
}
OMITTED: Final = {
    "table.ledger-first": "missing",
    "table.memory-first": "needless stop",
    "table.one-load": "duplicate",
    "table.one-commit": "duplicate",
    "table.head": "duplicate",
    "table.no-rebase": "duplicate",
    "table.uuid": "missing",
    "table.lower": "duplicate",
    "table.missing": "duplicate",
    "table.rolled-back": "missing",
}
"""The invariant that breaks without a rule."""
CHANGES: Final = ("nothing", "commit", "rollback", "replacement", "older position", "removed position")
"""What another program does to the table once, at any time."""


class Snapshot(NamedTuple):
    """The parent, how often the table has each object, and the position in its summary."""

    parent: int
    counts: tuple[int, ...]
    record: int = 0


class Table(NamedTuple):
    """`head` is the number of a snapshot, `record` the position, `at` the snapshot that was committed with it."""

    snapshots: tuple[Snapshot, ...] = (Snapshot(NONE, (0,) * OBJECTS),)
    head: int = 0
    record: int = 0
    at: int = 0
    uuid: int = 0

    @property
    def counts(self) -> tuple[int, ...]:
        return self.snapshots[self.head].counts

    @property
    def committed(self) -> int:
        """The highest position in the history of the head."""
        at, found = self.head, 0
        while at != NONE:
            at, found = self.snapshots[at].parent, max(found, self.snapshots[at].record)
        return found

    @property
    def is_rolled_back(self) -> bool:
        at = self.head
        while at not in (NONE, self.at):
            at = self.snapshots[at].parent
        return at != self.at


class Memory(NamedTuple):
    """The position and the table of the last registration that wrote it."""

    record: int = 0
    uuid: int = 0


class Request(NamedTuple):
    """A commit on its way: it adds the objects `[start, record)`. `of`: the registration that still waits for it."""

    of: int
    head: int
    uuid: int
    start: int
    record: int


class Registering(NamedTuple):
    """A registration: its next step, what it has read, and the number of its commits."""

    step: str = "new"
    ledger: int = 0
    memory: Memory = Memory()
    head: int = 0
    uuid: int = 0
    record: int = 0
    counts: tuple[int, ...] = ()
    is_rolled_back: bool = False
    committed: int = 0
    commits: int = 0


class World(NamedTuple):
    """`acknowledged` is the number of the ledger. `changed`: another program has changed the table."""

    change: str
    acknowledged: int = 1
    table: Table = Table()
    memory: Memory = Memory()
    registrations: tuple[Registering, ...] = (Registering(), Registering())
    requests: frozenset[Request] = frozenset()
    changed: bool = False


@dataclass(frozen=True)
class Registrations:
    """The model without the rules `omitted`, with one change by another program."""

    change: str
    omitted: frozenset[str] = frozenset()

    def search(self) -> Outcome:
        """Searches all states."""
        return Search(
            steps=self._steps, broken=self._broken, ended=is_done, relied_on=lambda label: True, limit=3_000_000
        ).run(World(self.change))

    def _has(self, rule: str) -> bool:
        return rule not in self.omitted

    def _steps(self, world: World) -> Iterator[tuple[str, World]]:
        if world.acknowledged < OBJECTS:
            yield "the ledger acknowledges an object", world._replace(acknowledged=world.acknowledged + 1)
        if world.change != "nothing" and not world.changed and world.table.head > 0:
            table = _changed(world.table, world.change)
            yield f"another program: {world.change}", world._replace(table=table, changed=True)
        for request in sorted(world.requests):
            yield self._apply(world, request)
        for number, it in enumerate(world.registrations):
            for label, changed, after in self._of(world, number, it):
                yield f"registration {number}: {label}", _with(after, number, changed)

    def _of(self, world: World, number: int, it: Registering) -> Iterator[tuple[str, Registering, World]]:
        match it.step:
            case "new":
                yield "reads the ledger", Registering("ledger", world.acknowledged, commits=it.commits), world
            case "ledger" if self._has("table.memory-first"):
                yield "reads the memory", it._replace(step="to load", memory=world.memory), world
            case "ledger" | "to load":
                yield self._load(world, it)
            case "to read memory":
                yield "reads the memory", it._replace(step="loaded", memory=world.memory), world
            case "to load head":
                table = world.table
                yield "loads the head", it._replace(step="loaded", head=table.head, counts=table.counts), world
            case "loaded":
                yield self._decide(world, number, it)
            case "waiting":
                late = world.requests - self._mine(world, number)
                delayed = {each._replace(of=NONE) for each in self._mine(world, number)}
                yield "loses the reply", Registering(commits=it.commits), world._replace(requests=late | delayed)
            case "added":
                table = world.table._replace(record=it.record, at=world.table.head)
                yield "sets the position", it._replace(step="committed"), world._replace(table=table)
            case "committed":
                after = world._replace(memory=Memory(it.record, it.uuid))
                yield "writes the memory", Registering(commits=it.commits), after

    def _load(self, world: World, it: Registering) -> tuple[str, Registering, World]:
        table = world.table
        step = "loaded" if self._has("table.memory-first") else "to read memory"
        loaded = it._replace(
            step=step if self._has("table.one-load") else "to load head",
            head=table.head,
            uuid=table.uuid,
            record=table.record,
            counts=table.counts,
            is_rolled_back=table.is_rolled_back,
            committed=table.committed,
        )
        return "loads the table", loaded, world

    def _decide(self, world: World, number: int, it: Registering) -> tuple[str, Registering, World]:
        reason = self._reason(it)
        if reason is not None:
            return f"stops: {reason}", it._replace(step="stopped"), world
        start = max(it.record, 0)
        if start >= it.ledger:
            return "has nothing to add", it._replace(step="done"), world
        if it.commits == MAX_COMMITS:
            return "ends without an effect", it._replace(step="ended"), world
        record = it.ledger if self._has("table.ledger-first") else world.acknowledged
        # without the rule the objects are those that were read, and the position is the present one
        request = Request(number, it.head, it.uuid, start, it.ledger)
        waiting = it._replace(step="waiting", record=record, commits=it.commits + 1)
        return "sends a commit", waiting, world._replace(requests=world.requests | {request})

    def _reason(self, it: Registering) -> str | None:
        if it.uuid != it.memory.uuid and self._has("table.uuid"):
            return "another table"
        if it.record == NONE:
            return "no position" if self._has("table.missing") else None
        known = max(it.memory.record if it.uuid == it.memory.uuid else 0, it.committed)
        if it.record < known and self._has("table.lower"):
            return "a lower position"
        return "rolled back" if it.is_rolled_back and self._has("table.rolled-back") else None

    def _apply(self, world: World, request: Request) -> tuple[str, World]:
        """The catalog gets a request."""
        world = world._replace(requests=world.requests - {request})
        it = world.registrations[request.of] if request.of != NONE else None
        is_head = world.table.head == request.head and world.table.uuid == request.uuid
        if not is_head and self._has("table.head") and self._has("table.no-rebase"):
            after = world if it is None else _with(world, request.of, Registering(commits=it.commits))
            return "the catalog rejects a commit", after
        record = request.record if it is None else it.record
        table = self._added(world.table, request, record)
        after = world._replace(table=table)
        if it is None:
            return "the catalog applies a delayed commit", after
        step = "committed" if self._has("table.one-commit") else "added"
        return "the catalog applies a commit", _with(after, request.of, it._replace(step=step, uuid=request.uuid))

    def _added(self, table: Table, request: Request, record: int) -> Table:
        counts = tuple(count + (request.start <= number < request.record) for number, count in enumerate(table.counts))
        snapshots = (*table.snapshots, Snapshot(table.head, counts, record if self._has("table.one-commit") else 0))
        added = table._replace(snapshots=snapshots, head=len(snapshots) - 1)
        return added._replace(record=record, at=added.head) if self._has("table.one-commit") else added

    def _broken(self, world: World) -> tuple[str, str] | None:
        """The first invariant that a state breaks."""
        if max(world.table.counts) > 1:
            return "duplicate", "an object is in the table twice"
        for it in world.registrations:
            if it.step == "done" and not all(it.counts[: it.ledger]):
                return "missing", "a registration ended and the table lacks an object"
            if it.step == "stopped" and not world.changed:
                return "needless stop", "a registration stopped although no other program has changed the table"
        return None

    @staticmethod
    def _mine(world: World, number: int) -> frozenset[Request]:
        return frozenset(each for each in world.requests if each.of == number)


def _with(world: World, number: int, it: Registering) -> World:
    registrations = world.registrations
    return world._replace(registrations=(*registrations[:number], it, *registrations[number + 1 :]))


def _changed(table: Table, change: str) -> Table:
    """The table after the change of another program."""
    match change:
        case "commit":
            snapshots = (*table.snapshots, Snapshot(table.head, table.counts))
            return table._replace(snapshots=snapshots, head=len(snapshots) - 1)
        case "rollback":
            return table._replace(head=table.snapshots[table.head].parent)
        case "replacement":  # an empty table with the properties of the first one
            snapshots = (*table.snapshots, Snapshot(NONE, (0,) * OBJECTS))
            return table._replace(snapshots=snapshots, head=len(snapshots) - 1, at=len(snapshots) - 1, uuid=1)
        case "older position":
            return table._replace(record=0)
    return table._replace(record=NONE)


def is_done(world: World) -> bool:
    """Whether each registration has ended."""
    return all(each.step in ("done", "stopped", "ended") for each in world.registrations)
