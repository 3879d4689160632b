"""What a state of the model is made of: plain tuples, so that states can be compared and counted.

Records of the topic-partition are the digits 0, 1, 2, …: a content is the string of its records. A key is
`path+first`, with `generation=n/` in front where a reset said so.
An ETag is the part's content, and `~` behind it when the server encrypted it another way (SSE-KMS: equal bytes, other
ETag). Time is the number of the newest record or snapshot: what began at `t` began after record `t` was written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from model.ledger import EMPTY, Kept
from model.protocol_rules import Rules
from sink_job.ledger.state import LedgerState, Record

FOREIGN = "?"
"""What an object of somebody else's holds."""


class Command(NamedTuple):
    """A `discard-open`, or a `reset-offsets` with this nonce: to the offset `to` (`latest`: behind the last record)."""

    kind: str
    nonce: str = ""
    to: int | Literal["latest"] = 0
    on_existing: str = "NewPrefix"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A small world: how much there is to write, and what may go wrong in it.

    `records` in the topic-partition, `part` of which fill a part; a round reads one of `rounds` many. `paths` is how
    records are spread: `one`, by `data` (even and odd), or by `clock` (the path is the round's clock, each driver has
    its own, or `clocks` holds the host's at the round that begins with each offset). `chain` staged leftovers
    are gathered into one. Every `snapshot_every` records comes a snapshot (0: none).
    The first of the `drivers` is at work already, under its claim, or with `claiming` it still has to start; the others
    may start at any time. `recut` cuts lost open objects anew instead of rebuilding them; `cleans_first` cleans up
    before publishing. With `apart` each path stands for a topic-partition of its own: they share staging objects, and
    what is lost of one is made again by itself. Each of the `commands` is given once, at any time; the last driver may
    start again after them, and waits with its first start for the first of them. With `at_once` the ledger is read in
    one step, so that no listing grows old. With `inherits` a driver of an earlier day is gone for good, and has left an
    object that is `open` or `named`; its intent is forgotten, and the first driver has still to start. Or the first
    driver sleeps before its `commit` of a visible one. With `alone` no driver moves while a command is at work; so that
    it need not sleep for good there, it may be killed. With `in_turn` a command is given only when those before it have
    ended. With `verified` the audit is asked in every state, not only when a driver is done. With `foreign` somebody
    else's object or upload is there. Each of `faults` happens at most once.
    """

    records: int = 3
    part: int = 2
    rounds: tuple[int, ...] = (1, 2)
    paths: str = "one"
    scope: str = "partition"
    chain: int = 2
    snapshot_every: int = 0
    drivers: int = 2
    claiming: bool = False
    recut: bool = False
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
    """A request of a task attempt that everybody thinks dead, still on its way: `what` is part, staging or upload."""

    what: str
    name: str
    key: str = ""
    number: int = 0
    content: str = ""


class Plan(NamedTuple):
    """What a round has done and what its record will say: the ledger's record, the staging object to put before it,
    the uploads that only the record would name, and those to abort after it because it replaces them."""

    record: Kept[Record]
    staging: tuple[str, str] | None = None
    begun: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()


class Driver(NamedTuple):
    """A driver: where it is in its program, what it knows, and what it works at.

    `state` is the ledger's state as it knows it, `visible` what it has seen complete since; `then` is where it goes on
    when publishing is done. `generation` is the one that a command saw when it looked first.
    """

    name: str
    at: str = "off"
    state: Kept[LedgerState] = EMPTY
    epoch: int = 0
    visible: tuple[str, ...] = ()
    committed: int = -1
    begun: int = 0
    failed: int = 0
    then: str = ""
    key: str = ""
    plan: Plan | None = None
    numbers: tuple[int, ...] = ()
    todo: tuple[str, ...] = ()
    recorded: int = 0
    generation: int = 0


class World(NamedTuple):
    """Everything: the ledger's folders, the store, the group's offset, the drivers, what is on its way and what may
    still go wrong. Objects and intents are listed with the generation, and with the settings, that they are of; `mark`
    is the metadata of the group's offset, and `group_is_foreign` while somebody else's forward commit is the last one.
    `resets` are the nonces that were carried out. `breach` is set by a step that does what no step may do."""

    records: tuple[tuple[int, Kept[Record]], ...] = ()
    snapshots: tuple[tuple[int, Kept[LedgerState]], ...] = ()
    published: tuple[tuple[int, int, Kept[LedgerState]], ...] = ()
    intents: tuple[tuple[int, int, int, tuple[str, ...]], ...] = ()
    uploads: tuple[Upload, ...] = ()
    objects: tuple[tuple[str, str, int], ...] = ()
    staging: tuple[tuple[str, str], ...] = ()
    moved: tuple[tuple[str, str, int], ...] = ()
    group: int = 0
    mark: str = ""
    group_is_foreign: bool = False
    resets: tuple[str, ...] = ()
    drivers: tuple[Driver, ...] = ()
    late: tuple[Late, ...] = ()
    faults: tuple[str, ...] = ()
    breach: tuple[str, str] | None = None

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

    def with_driver(self, driver: Driver) -> World:
        drivers = tuple(driver if d.name == driver.name else d for d in self.drivers)
        return self._replace(drivers=drivers)

    def with_upload(self, upload: Upload) -> World:
        others = tuple(u for u in self.uploads if u.id != upload.id)
        return self._replace(uploads=tuple(sorted((*others, upload))))

    def without_upload(self, upload_id: str | None) -> World:
        return self._replace(uploads=tuple(u for u in self.uploads if u.id != upload_id))

    def with_object(self, key: str, content: str, generation: int = 1) -> World:
        others = tuple(o for o in self.objects if o[0] != key)
        return self._replace(objects=tuple(sorted((*others, (key, content, generation)))))

    def with_staging(self, name: str, content: str) -> World:
        others = tuple(s for s in self.staging if s[0] != name)
        return self._replace(staging=tuple(sorted((*others, (name, content)))))

    def without_staging(self, name: str) -> World:
        return self._replace(staging=tuple(s for s in self.staging if s[0] != name))

    def after(self, fault: str) -> World:
        """The same world, with one fault less to come."""
        left = list(self.faults)
        left.remove(fault)
        return self._replace(faults=tuple(left))


NAMES = "ABC"
"""What the drivers are called."""

COMMANDS = "RST"
"""What the commands are called."""


def key_of(path: str, first: int, below: str = "") -> str:
    """`below`: the directory of the generation, if it has one of its own."""
    return f"{below}/{path}+{first}" if below else f"{path}+{first}"


def directory_of(key: str) -> str:
    return key.rpartition("/")[0]


def first_of(key: str) -> int | None:
    """The first offset that a key of ours names; None for another's key."""
    first = key.rpartition("+")[2]
    return int(first) if first.isdigit() else None


def content_of(etag: str) -> str:
    return etag.removesuffix("~")


def checksum(content: str) -> int:
    """Tells contents apart, as a checksum does."""
    return 0 if content == FOREIGN else int("1" + content)
