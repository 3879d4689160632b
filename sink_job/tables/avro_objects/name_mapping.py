"""The table property with which readers find the columns of files without field ids: by the names in the files.

https://iceberg.apache.org/spec/#name-mapping-serialization. A name that is in it stays in it: objects of earlier
commits have it. Iceberg's clients keep the property when they rename or add a column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Final

import msgspec

from sink_job.api.errors import TableIncompatible

PROPERTY: Final = "schema.name-mapping.default"


_NO_ID: Final = -1
"""The parent of columns in one without a field id. No reader reads them."""

_MAX_DEPTH: Final = 100


class MappedName(msgspec.Struct, rename={"number": "field-id"}, omit_defaults=True):
    """A column: its field id (None: readers do not read it), the names that files have for it, and the columns in
    it."""

    names: list[str]
    number: Annotated[int, msgspec.Meta(ge=0)] | None = None
    fields: list[MappedName] | None = None


class NameMapping:
    """The names of a table. A column at the top has no parent (None)."""

    def __init__(self, columns: Sequence[MappedName] = ()) -> None:
        """Raises TableIncompatible for a name or a field id that is there twice."""
        self._columns = [*columns]
        self._by_id: dict[int, MappedName] = {}
        self._parents: dict[int, int | None] = {}
        self._by_name: dict[tuple[int | None, str], MappedName] = {}
        self._index(self._columns, None)

    @classmethod
    def parse(cls, text: str) -> NameMapping:
        """Reads the property. Raises TableIncompatible."""
        try:
            return cls(msgspec.json.decode(text, type=list[MappedName]))
        except (msgspec.MsgspecError, RecursionError) as error:
            raise _unreadable(str(error)) from None

    @property
    def text(self) -> str:
        return msgspec.json.encode(self._columns).decode()

    @property
    def ids(self) -> frozenset[int]:
        return frozenset(self._by_id)

    def find(self, parent: int | None, name: str) -> MappedName | None:
        """The column with this name in the column `parent`."""
        return self._by_name.get((parent, name))

    def names(self, number: int) -> Sequence[str]:
        """The names of a column; none if it is not known."""
        return self._by_id[number].names if number in self._by_id else ()

    def add(self, parent: int | None, name: str, number: int) -> None:
        """Adds a name of a column, unless another one has it, or its parent is not known."""
        if self.find(parent, name) is not None:
            return
        known = self._by_id.get(number)
        if known is not None:
            if self._parents[number] == parent:
                known.names.append(name)
                self._by_name[parent, name] = known
            return
        added = MappedName([name], number)
        if parent is None:
            self._columns.append(added)
        elif (of := self._by_id.get(parent)) is not None:
            of.fields = [*(of.fields or ()), added]
        else:
            return
        self._by_id[number], self._parents[number] = added, parent
        self._by_name[parent, name] = added

    def _index(self, columns: Sequence[MappedName], parent: int | None, depth: int = 0) -> None:
        if depth > _MAX_DEPTH:
            raise _unreadable(f"it has more than {_MAX_DEPTH} levels")
        for name, count in Counter(name for each in columns for name in each.names).items():
            if count > 1:
                raise _unreadable(f"it has the name {name} twice")
        for each in columns:
            if each.number is not None:
                if each.number in self._by_id:
                    raise _unreadable(f"it has the field id {each.number} twice")
                self._by_id[each.number], self._parents[each.number] = each, parent
            self._by_name |= {(parent, name): each for name in each.names}
            self._index(each.fields or (), _NO_ID if each.number is None else each.number, depth + 1)


def _unreadable(reason: str) -> TableIncompatible:
    return TableIncompatible(
        f"the property {PROPERTY} of the table cannot be read: {reason}. Readers find the columns of Avro objects by "
        "it: correct or remove it"
    )
