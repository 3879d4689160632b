"""Registrations of objects in a table, as a small model of its own.

A ledger acknowledges objects 0 and 1, one after the other. Two registrations add them to a table that exists. Each may
stop for ever after any step, or lose the reply of the catalog: it then begins again, and its request may be applied at
any later time, or never. Beside them, once, another program changes the table. A step is one effect.

A table has two branches, main and audit; audit does not exist at first. With some of the changes one registration, or
both, add to audit: a user has edited the branch, and an older process is still running.

With the first two changes the table has no position at first: another program has created it, and it has given its
field ids to the topic before object 0 (ADR 64). With all others a user has asked for the first registration.

The steps are those of `sink_job.tables.registration`. The catalog is weaker than Iceberg's: it knows no sequence
numbers, so a delayed request may be applied after a rollback.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
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
    "table.expired": "So does one whose snapshot has expired, if the history reaches its sequence number without it.",
    "table.new-branch": "A branch that does not exist begins at the head of main.",
    "table.unused": "A first registration without a command needs all snapshots since the table gave its ids.",
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
    "table.expired": "missing",
    "table.new-branch": "missing",
    "table.unused": "duplicate",
}
"""The invariant that breaks without a rule."""
CHANGES: Final = (
    "nothing to a new table",
    "forgotten position",
    "nothing",
    "commit",
    "rollback",
    "replacement",
    "older position",
    "removed position",
    "another branch",
    "fast-forward",
    "dropped branch",
)
"""What another program does to the table once, at any time. Forgotten position: it commits, removes the position, and
all snapshots before expire. Another branch: nothing, and the registrations are on
different ones. Fast-forward: they are, and main gets the head of audit, if that loses none of its snapshots. Dropped
branch: both are on audit, which is dropped, and its snapshots expire."""
NEW: Final = frozenset({"nothing to a new table", "forgotten position"})
"""The changes with a table that has no position at first."""
MAIN: Final = 0
AUDIT: Final = 1
BRANCHES: Final = {"another branch": (MAIN, AUDIT), "fast-forward": (MAIN, AUDIT), "dropped branch": (AUDIT, AUDIT)}
"""The branches of the two registrations, where not both are on main."""


class Snapshot(NamedTuple):
    """The parent, how often the table has each object, and the position in its summary."""

    parent: int
    counts: tuple[int, ...]
    record: int = 0


class Table(NamedTuple):
    """`heads` are the numbers of the snapshots of main and audit, `record` the position, `at` the snapshot that was
    committed with it. Numbers of snapshots are their sequence numbers. `expired` are those that were removed from the
    metadata. `gave`: the table has given its field ids to the topic after snapshot 0."""

    snapshots: tuple[Snapshot, ...] = (Snapshot(NONE, (0,) * OBJECTS),)
    heads: tuple[int, int] = (0, NONE)
    record: int = 0
    at: int = 0
    uuid: int = 0
    expired: frozenset[int] = frozenset()
    gave: bool = False

    def head(self, branch: int) -> int:
        """The head of a branch, or where it begins."""
        return self.heads[branch] if self.heads[branch] != NONE else self.heads[MAIN]

    def counts(self, branch: int) -> tuple[int, ...]:
        return self.snapshots[self.head(branch)].counts

    def history(self, branch: int) -> Iterator[int]:
        at = self.head(branch)
        while at != NONE:
            yield at
            at = self.snapshots[at].parent

    def committed(self, branch: int) -> int:
        """The highest position in the history of the head, as far as it has not expired."""
        known = takewhile(lambda at: at not in self.expired, self.history(branch))
        return max((self.snapshots[at].record for at in known), default=0)

    def moved(self, branch: int, head: int) -> Table:
        """The table with another head of the branch."""
        return self._replace(heads=(head, self.heads[AUDIT]) if branch == MAIN else (self.heads[MAIN], head))


class Memory(NamedTuple):
    """The position and the table of the last registration that wrote it."""

    record: int = 0
    uuid: int = 0


class Request(NamedTuple):
    """A commit on its way: it adds the objects `[start, record)`. `of`: the registration that still waits for it.
    `head` is that of the branch (NONE: a new one), `main` that of main."""

    of: int
    branch: int
    head: int
    main: int
    uuid: int
    start: int
    record: int


class Registering(NamedTuple):
    """A registration: its next step, what it has read, and the number of its commits. `is_lost`: the snapshot of the
    position has expired and is not in the history of the branch. `is_unused`: the table has given its ids, and has all
    snapshots since."""

    step: str = "new"
    ledger: int = 0
    memory: Memory = Memory()
    head: int = 0
    main: int = 0
    uuid: int = 0
    record: int = 0
    counts: tuple[int, ...] = ()
    is_rolled_back: bool = False
    is_lost: bool = False
    is_unused: bool = False
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
        ).run(World(self.change, table=Table(record=NONE, gave=True) if self.change in NEW else Table()))

    def _has(self, rule: str) -> bool:
        return rule not in self.omitted

    def _steps(self, world: World) -> Iterator[tuple[str, World]]:
        if world.acknowledged < OBJECTS:
            yield "the ledger acknowledges an object", world._replace(acknowledged=world.acknowledged + 1)
        table = _changed(world.table, world.change)
        if table is not None and not world.changed:
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
                yield self._load(world, number, it)
            case "to read memory":
                yield "reads the memory", it._replace(step="loaded", memory=world.memory), world
            case "to load head":
                yield "loads the head", self._with_head(world, number, it)._replace(step="loaded"), world
            case "loaded":
                yield self._decide(world, number, it)
            case "waiting":
                late = world.requests - self._mine(world, number)
                delayed = {each._replace(of=NONE) for each in self._mine(world, number)}
                yield "loses the reply", Registering(commits=it.commits), world._replace(requests=late | delayed)
            case "added":
                table = world.table._replace(record=it.record, at=world.table.head(_branch(world, number)))
                yield "sets the position", it._replace(step="committed"), world._replace(table=table)
            case "committed":
                after = world._replace(memory=Memory(it.record, it.uuid))
                yield "writes the memory", Registering(commits=it.commits), after

    def _load(self, world: World, number: int, it: Registering) -> tuple[str, Registering, World]:
        table, branch = world.table, _branch(world, number)
        step = "loaded" if self._has("table.memory-first") else "to read memory"
        is_known = table.at in table.history(branch)
        loaded = self._with_head(world, number, it)._replace(
            step=step if self._has("table.one-load") else "to load head",
            uuid=table.uuid,
            record=table.record,
            is_rolled_back=not is_known and table.at not in table.expired,
            is_lost=not is_known and table.at in table.expired,
            is_unused=table.gave and not (self._has("table.unused") and max(table.expired, default=0)),
            committed=table.committed(branch),
        )
        return "loads the table", loaded, world

    @staticmethod
    def _with_head(world: World, number: int, it: Registering) -> Registering:
        table, branch = world.table, _branch(world, number)
        return it._replace(head=table.heads[branch], main=table.heads[MAIN], counts=table.counts(branch))

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
        request = Request(number, _branch(world, number), it.head, it.main, it.uuid, start, it.ledger)
        waiting = it._replace(step="waiting", record=record, commits=it.commits + 1)
        return "sends a commit", waiting, world._replace(requests=world.requests | {request})

    def _reason(self, it: Registering) -> str | None:
        if it.uuid != it.memory.uuid and self._has("table.uuid"):
            return "another table"
        if it.record == NONE and it.is_unused and not it.memory.record and not it.committed:
            return None
        if it.record == NONE:
            return "no position" if self._has("table.missing") else None
        known = max(it.memory.record if it.uuid == it.memory.uuid else 0, it.committed)
        if it.record < known and self._has("table.lower"):
            return "a lower position"
        if it.is_lost and self._has("table.expired"):
            return "an expired position"
        return "rolled back" if it.is_rolled_back and self._has("table.rolled-back") else None

    def _apply(self, world: World, request: Request) -> tuple[str, World]:
        """The catalog gets a request."""
        world = world._replace(requests=world.requests - {request})
        it = world.registrations[request.of] if request.of != NONE else None
        is_head = world.table.heads[request.branch] == request.head and world.table.uuid == request.uuid
        is_head &= request.head != NONE or world.table.heads[MAIN] == request.main
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
        parent = table.head(request.branch)
        if table.heads[request.branch] == NONE and not self._has("table.new-branch"):
            parent = NONE
        before = (0,) * OBJECTS if parent == NONE else table.snapshots[parent].counts
        counts = tuple(count + (request.start <= number < request.record) for number, count in enumerate(before))
        snapshot = Snapshot(parent, counts, record if self._has("table.one-commit") else 0)
        at = len(table.snapshots)
        older = frozenset(range(max(parent, 0))) - {*table.heads}  # its commit expires them
        added = table._replace(snapshots=(*table.snapshots, snapshot), expired=table.expired | older)
        added = added.moved(request.branch, at)
        return added._replace(record=record, at=at) if self._has("table.one-commit") else added

    def _broken(self, world: World) -> tuple[str, str] | None:
        """The first invariant that a state breaks."""
        if max(*world.table.counts(MAIN), *world.table.counts(AUDIT)) > 1:
            return "duplicate", "an object is in the table twice"
        for it in world.registrations:
            if it.step == "done" and not all(it.counts[: it.ledger]):
                return "missing", "a registration ended and the table lacks an object"
            if it.step == "stopped" and not world.changed and _branch(world, 0) == _branch(world, 1):
                return "needless stop", "a registration stopped although no other program has changed the table"
        return None

    @staticmethod
    def _mine(world: World, number: int) -> frozenset[Request]:
        return frozenset(each for each in world.requests if each.of == number)


def _with(world: World, number: int, it: Registering) -> World:
    registrations = world.registrations
    return world._replace(registrations=(*registrations[:number], it, *registrations[number + 1 :]))


def _branch(world: World, number: int) -> int:
    """The branch of a registration."""
    return BRANCHES.get(world.change, (MAIN, MAIN))[number]


def _changed(table: Table, change: str) -> Table | None:
    """The table after the change of another program; None if it cannot be changed so now."""
    main, audit = table.heads
    at = len(table.snapshots)
    match change:
        case "dropped branch" if audit != NONE:
            kept = set(table.history(MAIN))
            return table.moved(AUDIT, NONE)._replace(expired=frozenset(range(at)) - kept)
        case "fast-forward" if audit != NONE and main in table.history(AUDIT):
            return table.moved(MAIN, audit)
        case "commit" if main > 0:
            snapshots = (*table.snapshots, Snapshot(main, table.snapshots[main].counts))
            return table._replace(snapshots=snapshots).moved(MAIN, at)
        case "rollback" if main > 0:
            return table.moved(MAIN, table.snapshots[main].parent)
        case "replacement" if main > 0:  # an empty table with the properties of the first one
            snapshots = (*table.snapshots, Snapshot(NONE, (0,) * OBJECTS))
            return table._replace(snapshots=snapshots, at=at, uuid=1).moved(MAIN, at)
        case "older position" if main > 0:
            return table._replace(record=0)
        case "forgotten position" if main > 0:
            snapshots = (*table.snapshots, Snapshot(main, table.snapshots[main].counts))
            return table._replace(snapshots=snapshots, record=NONE, expired=frozenset(range(at))).moved(MAIN, at)
        case "removed position" if main > 0:
            return table._replace(record=NONE)
    return None


def is_done(world: World) -> bool:
    """Whether each registration has ended."""
    return all(each.step in ("done", "stopped", "ended") for each in world.registrations)
