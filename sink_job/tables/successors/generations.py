"""The part of a ledger whose objects one table may have: those between two offset resets. Pure."""

from __future__ import annotations

from dataclasses import replace

from pyiceberg.table.metadata import TableMetadata

from sink_job.tables.memory import Memory
from sink_job.tables.plan import LedgerView, continued_from


def known_record(table: TableMetadata | None, memory: Memory | None, sink_id: str, branch: str) -> int | None:
    """The position of the table, or the last known one if it has lost it; None if there is none."""
    if table is None:
        return None
    found = continued_from(table, memory, sink_id, branch)
    return None if found is None else found.record


def part_for(ledger: LedgerView, record: int | None, beginning: int, *, continues: bool) -> LedgerView:
    """The ledger up to the next reset after which records are copied again, as if it ended there.

    `record` is the position of the table; None: it has none, and its objects begin after `beginning`. The whole ledger
    for a table with a position that may not be `continued` after the reset: the reset stops it then.
    """
    begin = beginning if record is None else record
    copied_from = max((each for each in ledger.copies if each <= begin), default=0)
    whole = replace(ledger, copied_from=begin if record is None else ledger.copied_from)
    later = [each for each in ledger.copies if each > begin]
    if not later:
        return whole
    end = later[0]
    if record is not None and not continues:
        return whole
    return replace(
        ledger,
        number=end - 1,
        resets=tuple(each for each in ledger.resets if each < end),
        copied_from=begin if record is None else copied_from,
    )
