"""What a commit sets that leaves a table, or creates a successor. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile

from pyiceberg.table import Table

from sink_job.ledger.state import ClosedObject
from sink_job.tables.memory import Memory
from sink_job.tables.plan import LedgerView
from sink_job.tables.successors.continuation import (
    Continuation,
    Successors,
    continuation_in,
    continued_property,
    continues_property,
    done_bits,
    encoded,
)
from sink_job.tables.successors.fit import Fit

ObjectsAfter = Callable[[int], Iterable[ClosedObject]]
"""The objects of a topic that later records have acknowledged, in the order of the records."""


def left_after(record: int, successors: Successors, ledger: LedgerView, done: str = "") -> Continuation:
    """The continuation of a table that has everything up to a record."""
    return Continuation(successors.next_table, ledger.identity, record, done, ledger.claim_of(record + bool(done)))


def left_in(table: Table | None, memory: Memory | None, sink_id: str) -> Continuation | None:
    """Where the objects after those of a table are that was left. None for another table than the remembered one: its
    properties may be copies."""
    if table is None or (memory is not None and memory.uuid != str(table.metadata.table_uuid)):
        return None
    return continuation_in(table.properties, sink_id)


def left_at(fits: Fit, successors: Successors, ledger: LedgerView, after: ObjectsAfter) -> Continuation:
    """That of a table which has the objects that fit."""
    assert fits.left_at is not None, "an object does not fit"
    before, start = fits.left_at - 1, successors.start
    objects = list(takewhile(lambda o: o.acknowledged == fits.left_at, after(before)))
    done = {each.object.key for each in fits.footers}
    if start is not None and start.record == before:
        done |= {o.key for o in objects} - {o.key for o in start.remaining(objects)}
    return left_after(before, successors, ledger, done_bits(objects, done))


def chain_properties(
    successors: Successors, sink_id: str, continued: Continuation | None, *, is_new: bool
) -> Mapping[str, str]:
    """The properties that name the tables before and after one."""
    found = {}
    if is_new and successors.predecessor is not None:
        found[continues_property(sink_id)] = encoded(successors.predecessor)
    if continued is not None:
        found[continued_property(sink_id)] = encoded(continued)
    return found
