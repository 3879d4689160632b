"""How far the table of a topic is behind what a driver has published. Pure.

A driver counts the objects that it publishes. What an earlier one has published is known once the ledger was read.
"""

from __future__ import annotations

from dataclasses import dataclass

from sink_job.api.report import MAX_TABLE_MESSAGE, MAX_TABLE_NAME, MAX_TABLES_SHOWN, TableReport, TableSums
from sink_job.tables.position import TablePosition


@dataclass
class TableLag:
    """The lag of one table. Times are in ms.

    `table` is the first one of the topic, `last` the one to which objects are added.
    `counted` is the number of objects of the topic that the driver had published when the ledger was read last, None
    before, `waiting` the number of objects of that reading that are not in the table, `since` the time since when
    objects are missing. `objects`, `commits` and `registered_at` are of this driver. `skipped`: the number of objects
    that did not exist and were left out.
    """

    table: str
    topic: str
    last: str | None = None
    counted: int | None = None
    waiting: int = 0
    since: int | None = None
    position: TablePosition | None = None
    reason: str | None = None
    message: str | None = None
    objects: int = 0
    commits: int = 0
    registered_at: int | None = None
    skipped: int = 0

    def missing(self, published: int) -> int:
        """The number of published objects that are not in the table."""
        return self.waiting + max(0, published - (self.counted or 0))

    def is_current(self, published: int) -> bool:
        """Whether the table has all `published` objects of the topic."""
        return self.reason is None and self.counted == published and not self.waiting

    def observe(self, published: int, now: int) -> None:
        """The driver has published `published` objects of the topic."""
        if self.since is None and self.missing(published):
            self.since = now

    def read(self, published: int, waiting: int, now: int) -> None:
        """After a registration: the ledger was read when the driver had published `published` objects, and `waiting`
        of those that it contains are not in the table."""
        self.counted, self.waiting = published, waiting
        if not waiting:
            self.since = None
        elif self.since is None:
            self.since = now

    def failed(self, reason: str, message: str) -> bool:
        """Nothing more can be added. Returns whether this is another error than before."""
        message = _shortened(message, MAX_TABLE_MESSAGE)
        is_new = (reason, message) != (self.reason, self.message)
        self.reason, self.message = reason, message
        return is_new

    def added(self, position: TablePosition | None, objects: int, commits: int, now: int) -> None:
        """A registration has added `objects`, and the table has everything that the ledger had."""
        self.reason = self.message = None
        self.position = position
        if commits:
            self.objects, self.commits, self.registered_at = self.objects + objects, self.commits + commits, now

    def report(self, published: int, now: int) -> TableReport:
        """The table in the report of the driver."""
        position = self.position
        return TableReport(
            table=_shortened(self.last or self.table, MAX_TABLE_NAME),
            topic=self.topic,
            generation=None if position is None else position.generation,
            record=None if position is None else position.record,
            lag_objects=self.missing(published),
            lag_ms=0 if self.since is None else max(0, now - self.since),
            objects=self.objects,
            commits=self.commits,
            skipped_objects=self.skipped,
            registered_at=self.registered_at,
            reason=self.reason,
            message=self.message,
        )


def shown(reports: list[TableReport]) -> list[TableReport]:
    """The tables that a report lists."""
    return sorted(reports, key=lambda each: (each.reason is None, -each.lag_ms, each.table))[:MAX_TABLES_SHOWN]


def sums(reports: list[TableReport]) -> TableSums:
    """The sums of all tables."""
    return TableSums(
        tables=len(reports),
        failing=sum(each.reason is not None for each in reports),
        lag_objects=sum(each.lag_objects for each in reports),
        lag_ms=max((each.lag_ms for each in reports), default=0),
        objects=sum(each.objects for each in reports),
        commits=sum(each.commits for each in reports),
        skipped_objects=sum(each.skipped_objects for each in reports),
    )


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
