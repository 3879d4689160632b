"""The parts of a model state. They are plain tuples, so states can be compared and counted.

The records of the topic-partition are the digits 0, 1, 2, …; a content is the string of its records. A key is
`path+first`, prefixed with `generation=n/` after a reset to a new prefix. An ETag is the content of the part, followed
by `~` if the server encrypted it differently (SSE-KMS: equal bytes, different ETag). Time is the number of the newest
record or snapshot: an upload that began at `t` began after record `t` was written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from model.ledger import EMPTY, Interned
from model.protocol_rules import Rules
from sink_job.ledger.state import LedgerState, Record
from sink_job.rotation.types import ObjectId

FOREIGN = "?"
"""The content of an object of another program."""

DAMAGED = "!"
"""The content of an object of the sink that another program has damaged."""


class Command(NamedTuple):
    """A `discard-open` (`discard`), a `repair`, a `repair --accept-loss` that restores nothing (`accept`), or a
    `reset-offsets` (`reset`) with this nonce, to the offset `to` (`latest`: the log end)."""

    kind: str
    nonce: str = ""
    to: int | Literal["latest"] = 0
    on_existing: str = "NewPrefix"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A small system: its size, and the faults that can happen in it.

    records         records in the topic-partition
    part            records that fill a part
    rounds          possible numbers of records in a round
    paths           how records are divided into paths: `one`; `data` (even and odd); `clock` (the path is the round's
                    clock, and each driver has its own); `rejected` (odd ones are dead letters); `unknown` (the same,
                    because their schema ids are unknown until a rebuild)
    skips           offsets that the manifest of the first driver lists to be skipped; that of the others does not
    topic           dead letters are produced to a topic, too
    schemas         the schemas of records: `none`; `data` (even and odd). Each has an open object of its own
                    (`schemaCompatibility: Separate`)
    clocks          the host's clock at the round that starts with each offset; empty: each driver has its own clock
    scope           `partition` or `object`: what a rotation closes
    chain           number of staged remainders of an object that are merged into one
    snapshot_every  records between two snapshots; 0: no snapshots
    drivers         number of drivers. The first one works already, under its claim; the others start at any time
    claiming        the first driver has not started either
    rewrite_open    lost open objects are written again in new rounds instead of being rebuilt
    cleans_first    a starting driver cleans up before it publishes
    apart           each path represents a topic-partition: they share staging objects and are rebuilt independently
    commands        each is issued once, at any time. The last driver can start again after them; its first start
                    waits for the first command
    at_once         the ledger is read in one step, so no listing can be outdated
    inherits        `open` or `closed`: a previous driver has crashed and has left such an object. Its intent has
                    expired, and the first driver has not started. `commit`: the first driver sleeps before its commit
                    of a visible object
    alone           no driver takes a step while a command works; the command can be killed
    in_turn         a command is issued only after the previous ones have ended
    verified        the audit is checked in every state, not only when a driver is done
    foreign         `object` or `upload`: another program's, at a key of this sink
    faults          each happens at most once
    without         the omitted rules
    """

    records: int = 3
    part: int = 2
    rounds: tuple[int, ...] = (1, 2)
    paths: str = "one"
    skips: tuple[int, ...] = ()
    topic: bool = False
    schemas: str = "none"
    scope: str = "partition"
    chain: int = 2
    snapshot_every: int = 0
    drivers: int = 2
    claiming: bool = False
    rewrite_open: bool = False
    apart: bool = False
    cleans_first: bool = False
    foreign: str = ""
    commands: tuple[Command, ...] = ()
    at_once: bool = True
    inherits: str = ""
    alone: bool = False
    in_turn: bool = False
    verified: bool = False
    clocks: tuple[int, ...] = ()
    faults: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    rules: Rules = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", Rules(self.without))

    @property
    def reads_at_once(self) -> bool:
        """Whether the ledger is read in one step; without commands every listing is a step of its own."""
        return self.at_once and bool(self.commands)

    def command(self, name: str) -> Command:
        return self.commands[COMMANDS.index(name)]


class Upload(NamedTuple):
    """An unfinished multipart upload on the server; `parts` by number with their ETags."""

    id: str
    key: str
    began: int
    parts: tuple[tuple[int, str], ...] = ()


class Late(NamedTuple):
    """A delayed request of a task attempt that has ended: `what` is part, staging, upload or intent."""

    what: str
    name: str
    key: str = ""
    number: int = 0
    content: str = ""


class Plan(NamedTuple):
    """A round before its record: the record, the staging object to put before it (name, content), the uploads that only
    this record names (`started`), and the uploads that the record replaces, to abort after it."""

    record: Interned[Record]
    staging: tuple[str, str] | None = None
    started: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()


class Driver(NamedTuple):
    """A driver: its position in its program, the state it has read, and its current work.

    `state` is the ledger state that the driver holds; `visible` are the keys that it has observed to be complete since.
    `then` is the next position after the current work. `generation` is the one that a command read at its first check.
    `producer` is the epoch of its producer of dead letters (0: not started), `number` the number that it has read,
    `found` what a search has found in the topic, `unproduced` what it has acknowledged too early. `there` is what a
    repair has read at `key` (empty: no object).
    """

    name: str
    at: str = "off"
    state: Interned[LedgerState] = EMPTY
    epoch: int = 0
    visible: tuple[str, ...] = ()
    committed: int = -1
    started: int = 0
    failed: int = 0
    then: str = ""
    key: str = ""
    plan: Plan | None = None
    numbers: tuple[int, ...] = ()
    todo: tuple[str, ...] = ()
    closing: tuple[ObjectId, ...] = ()
    recorded: int = 0
    generation: int = 0
    producer: int = 0
    number: int = -1
    found: str = ""
    unproduced: str = ""
    there: str = ""


class ModelState(NamedTuple):
    """The whole system: the ledger's folders, the store, the group's offset, the drivers, the delayed requests and the
    faults that can still happen.

    An object carries its generation, an intent its settings. `group_metadata` is the metadata of the group's offset;
    `group_is_foreign` holds while the last commit is a forward commit of another program. `resets` are the nonces of
    the resets that were carried out. `topic` are the dead letters in their topic, `number` the number of the ledger
    that is committed with them, and `producer` the epoch of the newest producer. `damaged` are the visible
    objects that another program has damaged, deleted or replaced, as they were, until they are restored; `kept` are the
    copies of what a repair has replaced (key, content). A step that breaks an invariant sets `breach` (invariant,
    message).
    """

    records: tuple[tuple[int, Interned[Record]], ...] = ()
    snapshots: tuple[tuple[int, Interned[LedgerState]], ...] = ()
    published: tuple[tuple[int, int, Interned[LedgerState]], ...] = ()
    intents: tuple[tuple[int, int, int, tuple[str, ...]], ...] = ()
    uploads: tuple[Upload, ...] = ()
    objects: tuple[tuple[str, str, int], ...] = ()
    staging: tuple[tuple[str, str], ...] = ()
    moved: tuple[tuple[str, str, int], ...] = ()
    group: int = 0
    group_metadata: str = ""
    group_is_foreign: bool = False
    resets: tuple[str, ...] = ()
    drivers: tuple[Driver, ...] = ()
    late: tuple[Late, ...] = ()
    faults: tuple[str, ...] = ()
    breach: tuple[str, str] | None = None
    topic: str = ""
    number: int = 0
    producer: int = 0
    damaged: tuple[tuple[str, str, int], ...] = ()
    kept: tuple[tuple[str, str], ...] = ()

    @property
    def now(self) -> int:
        """The newest number that was ever written."""
        return max((t[-1][0] for t in (self.records, self.snapshots) if t), default=0)

    def upload(self, upload_id: str | None) -> Upload | None:
        return next((u for u in self.uploads if u.id == upload_id), None)

    def object(self, key: str) -> str | None:
        return next((content for k, content, _ in self.objects if k == key), None)

    def staged(self, name: str) -> str | None:
        return next((content for n, content in self.staging if n == name), None)

    def with_driver(self, driver: Driver) -> ModelState:
        drivers = tuple(driver if d.name == driver.name else d for d in self.drivers)
        return self._replace(drivers=drivers)

    def with_upload(self, upload: Upload) -> ModelState:
        others = tuple(u for u in self.uploads if u.id != upload.id)
        return self._replace(uploads=tuple(sorted((*others, upload))))

    def without_upload(self, upload_id: str | None) -> ModelState:
        return self._replace(uploads=tuple(u for u in self.uploads if u.id != upload_id))

    def with_object(self, key: str, content: str, generation: int = 1) -> ModelState:
        others = tuple(o for o in self.objects if o[0] != key)
        return self._replace(objects=tuple(sorted((*others, (key, content, generation)))))

    def with_staging(self, name: str, content: str) -> ModelState:
        others = tuple(s for s in self.staging if s[0] != name)
        return self._replace(staging=tuple(sorted((*others, (name, content)))))

    def without_staging(self, name: str) -> ModelState:
        return self._replace(staging=tuple(s for s in self.staging if s[0] != name))

    def after(self, fault: str) -> ModelState:
        """The same state, with one fault less to come."""
        left = list(self.faults)
        left.remove(fault)
        return self._replace(faults=tuple(left))


NAMES = "ABC"
"""The names of the drivers."""

COMMANDS = "RST"
"""The names of the commands."""


def key_of(path: str, first: int, below: str = "") -> str:
    """The key of an object; `below` is the directory of the generation, if it has its own."""
    return f"{below}/{path}+{first}" if below else f"{path}+{first}"


def directory_of(key: str) -> str:
    return key.rpartition("/")[0]


def first_of(key: str) -> int | None:
    """The first offset in a key of the sink; None for a foreign key."""
    first = key.rpartition("+")[2]
    return int(first) if first.isdigit() else None


def content_of(etag: str) -> str:
    return etag.removesuffix("~")


def checksum(content: str) -> int:
    """A number that differs for different contents, as a checksum does."""
    return 0 if content in (FOREIGN, DAMAGED) else int("1" + content)
