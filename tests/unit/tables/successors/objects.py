"""Objects of a ledger."""

from __future__ import annotations

from devtools.simulation.table_world import closed_object
from sink_job.ledger.state import ClosedObject


def closed(number: int, acknowledged: int) -> ClosedObject:
    """The object with this number, which a record has acknowledged."""
    return closed_object(f"topics/log/{number:04}.parquet", number, acknowledged)
