"""The columns of a table with those of the objects of a commit, by field ids or by name. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata

from sink_job.connect.field_ids import FieldIds
from sink_job.tables.avro_objects.name_mapping import PROPERTY
from sink_job.tables.avro_objects.table_names import TableNames, all_columns
from sink_job.tables.files import ObjectFooter
from sink_job.tables.parquet_schema import ObjectColumns
from sink_job.tables.schema_union import NO_NAMES, union


def has_names_alone(footers: Iterable[ObjectFooter]) -> bool:
    """Whether the columns of an object have no field ids."""
    return any(each.columns.by_name for each in footers)


class RowColumns:
    """The columns of a table, to which objects are added one after the other."""

    def __init__(
        self,
        table: TableMetadata | None,
        dropped: Collection[int] = (),
        ids: FieldIds | None = None,
        *,
        is_own: bool = False,
    ) -> None:
        """`table`: None if it does not exist yet; `dropped` are the ids of columns that it had. `ids` are those of the
        ledger for the topic, if an object has names alone. `is_own`: the sink has registered objects in the table.

        Columns with equal ids need equal names: an id of another program may be equal by chance. In a table of the sink
        the name that the column had before counts, too, since columns are renamed. Raises TableIncompatible for a name
        mapping that cannot be read."""
        self.schema = Schema() if table is None else table.schema()
        self.by_name = False
        """Whether an object has names alone, so that the columns must be as they were loaded."""
        self._is_own = is_own
        is_mapped = table is not None and PROPERTY in table.properties
        self._names = TableNames(table, ids or {}, is_own=is_own) if is_mapped or ids is not None else None
        mapped = frozenset[int]() if self._names is None else self._names.mapped
        self._dropped = {*dropped, *(mapped - self.schema.field_ids)}
        self._of_id = NO_NAMES if table is None else self._names_by_id(table)
        self._known: dict[int, tuple[ObjectColumns, ObjectColumns]] = {}

    def add(self, footer: ObjectFooter) -> None:
        """Adds the columns of an object. Raises TableIncompatible if the table cannot have them: nothing has changed
        then."""
        columns = footer.columns
        if id(columns) in self._known:
            return
        where, names, found = footer.fields["file_path"], self._names, columns
        if names is not None:
            names = names.copy()
            found = names.columns(footer, self.schema, where)
        elif columns.by_name:
            raise AssertionError("the ids of the ledger are needed for an object with names alone")
        of_id = NO_NAMES if columns.by_name else self._of_id
        is_own = self._is_own or columns.by_name
        self.schema = union(self.schema, found.schema, self._dropped, where, of_id, is_own=is_own)
        self._names = names
        self._known[id(columns)] = (columns, found)
        self.by_name = self.by_name or columns.by_name

    def resolved(self, footers: Sequence[ObjectFooter]) -> Sequence[ObjectFooter]:
        """Objects that were added, with the field ids of the table."""
        if not self.by_name:
            return footers
        return [replace(each, columns=self._known[id(each.columns)][1]) for each in footers]

    def _names_by_id(self, table: TableMetadata) -> Mapping[int, Collection[str]]:
        """The names that columns of objects with field ids may have."""
        found: dict[int, set[str]] = defaultdict(set)
        for _, field in all_columns(table.schemas):
            found[field.field_id].add(field.name)
        if not self._is_own:
            found |= {field.field_id: {field.name} for _, field in all_columns([table.schema()])}
        if self._names is not None:
            for number, names in found.items():
                names.update(self._names.names(number))
        return found

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties that the commit sets."""
        return {} if self._names is None else self._names.property(self.schema)
