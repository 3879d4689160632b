"""Take-over between sinks (P11): the sinks of a run, what their ownership files say, and which attempts have lost.

The first sink is number 0. A *successor* takes over from one before it: with the same ledger (the manifest has its
sinkId), or with the trait `other-ledger` with a ledger of its own. Of two successors of one sink, the rivals, one wins.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field

from devtools.simulation.dead_letters import is_dead_letters
from devtools.simulation.two_buckets import FRONT
from sink_job.ledger.ownership import Owner

MAX_SUCCESSORS = 2
FIRST_NAME = "sink"
SINK_ID = "default.sink"
"""The sink id of the first sink by its name, and of successors with the same ledger by their manifest."""


def name_of(number: int) -> str:
    """The name of a sink."""
    return FIRST_NAME if number == 0 else f"{FIRST_NAME}-{number}"


@dataclass
class Successors:
    """The sinks of a run and the content of their ownership files."""

    rng: random.Random
    other_ledger: bool
    predecessors: list[int | None] = field(default_factory=lambda: [None])
    """By number: the sink that each takes over from."""
    numbers: dict[str, int] = field(default_factory=dict)
    """The sink of each attempt."""
    superseded: set[str] = field(default_factory=set)
    """Attempts that claimed a ledger after it had been handed over to a later sink: they may change nothing."""
    uploads: dict[str, int] = field(default_factory=dict)
    """The sink that has started each upload."""
    _ledgers: dict[str, tuple[int, bool]] = field(default_factory=dict)
    _topics: dict[str, int] = field(default_factory=dict)
    _owners: set[int] = field(default_factory=set)

    @property
    def newest(self) -> int:
        return len(self.predecessors) - 1

    @property
    def exist(self) -> bool:
        """Whether another sink has started to take over."""
        return self.newest > 0

    def add(self) -> int:
        """A new sink: it takes over from the newest one or, as a rival, from the predecessor of that."""
        rival = self.predecessors[self.newest]
        self.predecessors.append(rival if rival is not None and self.rng.random() < 0.5 else self.newest)
        return self.newest

    def draw(self) -> int:
        """The sink of the next driver: mostly the newest one."""
        return self.newest if not self.exist or self.rng.random() < 0.6 else self.rng.randrange(self.newest)

    def predecessor(self, number: int) -> Owner | None:
        found = self.predecessors[number]
        return None if found is None else self.owner(found)

    def owner(self, number: int) -> Owner:
        name = name_of(number)
        return Owner("simulated", "default", name, f"default.{name}" if self.other_ledger else SINK_ID)

    def put(self, key: str, body: bytes) -> None:
        """Handles the put of a file of a ledger or of the topics' ownership."""
        if key.endswith("/owner.json"):
            content = json.loads(body)
            root = key.removesuffix("/owner.json")
            self._ledgers[root] = _number(content), bool(content.get("handed_over"))
            self._owners.add(_number(content))
        elif "/_s3sink/topics/" in key:
            self._topics[key] = _number(json.loads(body))
            self._owners.add(self._topics[key])

    def claims(self, root: str, attempt: str) -> None:
        """Handles the claim of the ledger `root`, without a trailing slash."""
        number = self.numbers.get(attempt)
        owner, handed_over = self._ledgers.get(root.removeprefix(FRONT), (0, False))
        if number is not None and (number < owner or (number == owner and handed_over)):
            self.superseded.add(attempt)

    def is_handed_over(self, root: str) -> bool:
        """Whether another ledger follows this one."""
        return self._ledgers.get(root.removeprefix(FRONT), (0, False))[1]

    def is_abandoned(self, upload_id: str, key: str) -> bool:
        """Whether this upload, or the object `key` of a ledger, is one of a sink that has lost its topics to a sink
        with another ledger. Only a lifecycle rule of the bucket removes them."""
        if not self.other_ledger:
            return False
        if "/_s3sink/" in f"/{key}":
            return f"/_s3sink/{self.owner(self.last).sink_id}/" not in f"/{key}"
        return self.uploads.get(upload_id) != self.last

    def owned_before(self, number: int, successor_of: Owner | None) -> bool:
        """Whether a sink has owned anything that this one may not take over."""
        return any(each != number and self.owner(each) != successor_of for each in self._owners)

    def others(self, number: int) -> list[int]:
        """The other sinks that own what this one needs, in the order in which it would notice."""
        ledgers = [] if self.other_ledger else [owner for owner, _ in self._ledgers.values()]
        topics = sorted(self._topics.items(), key=lambda each: (is_dead_letters(each[0]), each[0]))
        return [owner for owner in (*ledgers, *(owner for _, owner in topics)) if owner != number]

    @property
    def finisher(self) -> int:
        """The sink whose driver must be able to finish: the winner, or the newest one if it may take over from it."""
        return self.newest if self.predecessors[self.newest] == self.last else self.last

    @property
    def last(self) -> int:
        """The sink that has won: all topics are its own, or it takes them over."""
        if not self.exist:
            return 0
        files = self._topics.values() if self.other_ledger else [number for number, _ in self._ledgers.values()]
        return max(files, default=self.newest)


def _number(content: dict[str, str]) -> int:
    return int(content["name"].removeprefix(FIRST_NAME).removeprefix("-") or 0)
