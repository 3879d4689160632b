"""A table and what is to be in it, and what a registration has done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyiceberg.table.refs import MAIN_BRANCH

from sink_job.api.enums import TablePartitioning
from sink_job.ledger.state import ClosedObject
from sink_job.tables.housekeeping import Housekeeping
from sink_job.tables.ledger_reader import ObjectLog
from sink_job.tables.plan import LedgerView
from sink_job.tables.position import TablePosition
from sink_job.tables.successors.continuation import Continuation, Successors


@dataclass(frozen=True)
class RegistrationOutcome:
    """What a registration has done, or with `dry_run` would do first. `position` is that of the table afterwards; None
    if there is no table. `columns` are the columns that the table gets or has got. `without_partition`: by the name in
    their paths, the number of objects whose partition has no such field. `partitions`: the number of directories of the
    objects for a table of Hive's kind: `commits` are requests then. `skipped`: the number of objects that did not exist
    and were left out. `continued`: the table was left, and `uuid` is its UUID."""

    table: str
    topic: str
    objects: int = 0
    records: int = 0
    bytes: int = 0
    commits: int = 0
    created: bool = False
    position: TablePosition | None = None
    columns: tuple[str, ...] = ()
    without_partition: Mapping[str, int] = field(default_factory=dict)
    partitions: int = 0
    skipped: int = 0
    continued: Continuation | None = None
    uuid: str | None = None

    @property
    def lacking(self) -> int:
        """The number of all objects that were left out, as far as it is known."""
        position = self.position
        return self.skipped if position is None or position.skipped is None else position.skipped.objects


@dataclass(frozen=True)
class TopicTable:
    """A table and what is to be in it. `prefixes` are those of all keys of the sink; `wait` is called with the seconds
    before the next attempt. `branch` is the one to which objects are added. `clock` is in ms. `skips_missing`: objects
    that do not exist are left out; without it they stop the registration. `successors` says whether the table is
    continued in another one."""

    name: str
    topic: str
    objects: Sequence[ClosedObject] | ObjectLog
    ledger: LedgerView
    prefixes: Sequence[str]
    wait: Callable[[float], None] = field(compare=False)
    partitioning: TablePartitioning = TablePartitioning.NONE
    branch: str = MAIN_BRANCH
    housekeeping: Housekeeping = field(default_factory=Housekeeping)
    clock: Callable[[], int] = field(default=lambda: int(time.time() * 1000), compare=False)
    skips_missing: bool = False
    successors: Successors = field(default_factory=Successors)

    def after(self, record: int) -> Iterable[ClosedObject]:
        """The objects that later records than `record` have acknowledged, in the order of these records, without those
        that the tables before have."""
        found, start = self.all_after(record), self.successors.start
        return found if start is None or start.record != record else start.remaining(found)

    def all_after(self, record: int) -> Iterable[ClosedObject]:
        """Those of all tables of the topic."""
        if isinstance(self.objects, Sequence):
            return (o for o in self.objects if o.acknowledged > record)
        return self.objects.after(record)

    @property
    def beginning(self) -> int:
        """The record after which the objects of a new table were acknowledged."""
        return self.ledger.copied_from if self.successors.start is None else self.successors.start.record
