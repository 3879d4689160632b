"""Which objects of a topic are in which of its tables. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from sink_job.ledger.state import ClosedObject
from sink_job.tables.plan import LedgerView
from sink_job.tables.position import TablePosition
from sink_job.tables.successors.continuation import Continuation


@dataclass(frozen=True)
class TablePart:
    """The objects that belong to one table, of all `objects` of the topic, in the order of the records that acknowledge
    them. `start` is what the tables before have; None: it is the first. `end` is where the later ones are; None: it is
    the last. Can be iterated again."""

    objects: Iterable[ClosedObject]
    start: Continuation | None = None
    end: Continuation | None = None

    def __iter__(self) -> Iterator[ClosedObject]:
        own = self.objects if self.start is None else _remaining(self.objects, self.start)
        if self.end is None:
            yield from own
            return
        later = {o.key for o in _remaining(self._of_record(self.end.record + 1), self.end)}
        for o in own:
            if o.acknowledged <= self.end.record or (o.acknowledged == self.end.record + 1 and o.key not in later):
                yield o

    def position(self, position: TablePosition) -> TablePosition:
        """The position of the table for an audit: that of a table that was left is after its last object."""
        if self.end is None or not self.end.done:
            return position
        return msgspec.structs.replace(position, record=max(position.record, self.end.record + 1))

    def copied_from(self, ledger: LedgerView, position: TablePosition) -> int:
        """The record up to which objects were acknowledged whose records were copied again before the table began."""
        if self.start is not None:
            return 0
        if not ledger.copies:
            return ledger.copied_from
        return max((each for each in ledger.copies if each <= position.record), default=0)

    def _of_record(self, record: int) -> Iterator[ClosedObject]:
        return (o for o in self.objects if o.acknowledged == record)


def _remaining(objects: Iterable[ClosedObject], start: Continuation) -> Iterable[ClosedObject]:
    return start.remaining(o for o in objects if o.acknowledged > start.record)
