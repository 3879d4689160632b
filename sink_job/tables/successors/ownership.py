"""Whether a table belongs to those of a topic: a successor has the UUID of the table before as a property."""

from __future__ import annotations

from pyiceberg.table import Table

from sink_job.api.errors import TableNotRegistered
from sink_job.tables.catalogs import TableCatalog
from sink_job.tables.successors.continuation import Successors, continues_property, predecessor_in


def check_owned(table: Table, successors: Successors, sink_id: str) -> None:
    """Raises TableNotRegistered for a table that others have created with the name of a successor, and for one that
    continues another table."""
    found, expected = predecessor_in(table.properties, sink_id), successors.predecessor
    if expected is None:
        if found is not None:
            raise TableNotRegistered(
                f"the table continues {found.table} (property {continues_property(sink_id)}): use another name in "
                "spec.tables"
            )
    elif found is None or found.uuid != expected.uuid:
        raise _foreign(".".join(table.name()), expected.table)


def check_next(catalog: TableCatalog, table: Table | None, successors: Successors, sink_id: str) -> None:
    """Raises TableNotRegistered if a table of others has the name of the successor of `table` (None: it does not exist
    yet), and the errors of the catalog."""
    present = catalog.load(successors.next_table)
    if present is None:
        return
    found = predecessor_in(present.properties, sink_id)
    if found is None or (table is not None and found.uuid != str(table.metadata.table_uuid)):
        raise _foreign(successors.next_table, "this one")


def _foreign(name: str, before: str) -> TableNotRegistered:
    return TableNotRegistered(
        f"table {name} exists, and it does not continue {before}: nothing is added to it. Rename or drop it, or use "
        "another name in spec.tables"
    )
