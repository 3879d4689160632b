"""Rules 1 and 3: whether the schema of a record closes the open object of its path (docs/semantics.md, sections 3, 7).

Schemas are codes here: `Rows.schemas`, extended by the schemas of open objects that do not occur in the batch.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from sink_job.arrow.arrays import Codes, Indices, Integers, Mask
from sink_job.records.batch import NO_SCHEMA, SchemaCheck
from sink_job.rotation.policy import RotationContext
from sink_job.rotation.row_index import AcceptedRows, first_true
from sink_job.rotation.types import OpenObjectState

_NOT_OPEN: Final = -2


class BatchSchemas:
    """The schema codes of a batch and of the objects that are open before it."""

    def __init__(self, rotation: RotationContext, accepted: AcceptedRows) -> None:
        known = set(accepted.schema_ids)
        added = dict.fromkeys(each.schema for each in rotation.open.values() if each.schema not in (None, *known))
        self.ids = [*accepted.schema_ids, *(schema for schema in added if schema is not None)]
        self.codes: dict[str | None, int] = {None: NO_SCHEMA} | {schema: code for code, schema in enumerate(self.ids)}
        schemas = accepted.schemas
        self.of_rows: Codes = np.full(len(accepted), NO_SCHEMA, np.int32) if schemas is None else schemas
        self._rotation = rotation
        self._accepted = accepted
        self._sizes = accepted.sizes

    @property
    def is_uniform(self) -> bool:
        """Whether all records of the batch and all open objects have the same schema, so that neither rule applies."""
        of_open = {self.codes[each.schema] for each in self._rotation.open.values()}
        if not len(self.of_rows):
            return True
        only = int(self.of_rows[0])
        return of_open <= {only} and bool((self.of_rows == only).all())

    @property
    def all_have_schemas(self) -> bool:
        """Whether all records of the batch and all open objects have a schema, so that rule 1 does not apply."""
        open_have = all(each.schema is not None for each in self._rotation.open.values())
        return open_have and bool((self.of_rows != NO_SCHEMA).all())

    def of_object(self, o: OpenObjectState, count: int) -> Codes:
        """The code of an open object, `count` times."""
        return np.full(count, self.codes[o.schema], np.int32)

    def sizes(self, targets: Codes, indices: Indices) -> Integers:
        """The sizes of the records at `indices`, each in an object with the code `targets`."""
        records = self.of_rows[indices]
        assert self._sizes is not None, "maxBytes needs sizes"
        sizes = self._sizes[indices]
        projected = targets != records
        for target in np.unique(targets[projected]).tolist():
            chosen = np.flatnonzero(projected & (targets == target))
            sizes[chosen] = self._accepted.projected_sizes(self.ids[target], indices[chosen])
        return sizes

    def presence_differs(self, targets: Codes, records: Codes) -> Mask:
        """Rule 1 for pairs of an open object's code (or _NOT_OPEN) and a record's."""
        differs: Mask = ((targets == NO_SCHEMA) != (records == NO_SCHEMA)) & (targets != _NOT_OPEN)
        return differs

    def closes(self, targets: Codes, records: Codes) -> Mask:
        """Rules 1 and 3 for pairs of an open object's code (or _NOT_OPEN) and a record's."""
        presence = self.presence_differs(targets, records)
        if self._rotation.settings.separate:
            return presence
        different: Mask = (targets != records) & (targets != _NOT_OPEN)
        if (check := self._accepted.closes) is None:
            return different
        pairs = np.flatnonzero(different & ~presence)
        presence[pairs] = self._checked(check, targets[pairs], records[pairs])
        return presence

    def _checked(self, check: SchemaCheck, targets: Codes, records: Codes) -> Mask:
        """Asks `check` once for each distinct pair."""
        combined = targets.astype(np.int64) * len(self.ids) + records
        distinct, inverse = np.unique(combined, return_inverse=True)
        pairs = (divmod(pair, len(self.ids)) for pair in distinct.tolist())
        answers = [check(self.ids[target], self.ids[record]) for target, record in pairs]
        return np.array(answers, np.bool_)[inverse]


class SchemaSearch:
    """Searches the records of a batch for rules 1 and 3. Keeps the schema of the open object of each path: with
    `separate` that of any of them, since all or none have one."""

    def __init__(self, rotation: RotationContext, accepted: AcceptedRows) -> None:
        self._schemas = BatchSchemas(rotation, accepted)
        self._paths = accepted.path_codes
        self._is_uniform = self._schemas.is_uniform or (rotation.settings.separate and self._schemas.all_have_schemas)
        self._targets = np.full(len(accepted.paths), _NOT_OPEN, np.int32)
        if not self._is_uniform:
            paths = {path: code for code, path in enumerate(accepted.paths)}
            for each in rotation.open.values():
                if each.path in paths:
                    self._targets[paths[each.path]] = self._schemas.codes[each.schema]

    @property
    def is_uniform(self) -> bool:
        """Whether all records of the batch and all open objects have the same schema."""
        return self._is_uniform

    def sizes(self, start: int, end: int) -> Integers:
        """The sizes of the records in [start, end), each under the schema of its object. `first` has searched them and
        has found no close before `end`."""
        targets = self._targets[self._paths[start:end]]
        return self._schemas.sizes(targets, np.arange(start, end))

    def first(self, start: int, end: int) -> int:
        """The first index in [start, end) at which rule 1 or 3 holds, else `end`. No object closes before it, and
        `start` is the end of the previous search or a close."""
        return end if self._is_uniform else first_true(start, end, self._closes)

    def _closes(self, start: int, end: int) -> Mask:
        paths, records = self._paths[start:end], self._schemas.of_rows[start:end]
        opening = np.flatnonzero(self._targets[paths] == _NOT_OPEN)[::-1]  # of equal paths, the first one stays
        self._targets[paths[opening]] = records[opening]
        return self._schemas.closes(self._targets[paths], records)

    def is_presence(self, index: int) -> bool:
        """Whether rule 1 holds at `index`, the result of a search."""
        target, record = self._targets[self._paths[index : index + 1]], self._schemas.of_rows[index : index + 1]
        return bool(self._schemas.presence_differs(target, record)[0])

    def close_all(self) -> None:
        """All objects are closed before the next search."""
        if not self._is_uniform:
            self._targets[:] = _NOT_OPEN


def presence_changes(rotation: RotationContext, accepted: AcceptedRows) -> list[int]:
    """The indices of the records with a schema whose previous record of the same path has none, and the reverse. The
    previous record of a path's first one is its open object."""
    schemas = BatchSchemas(rotation, accepted)
    if schemas.is_uniform:
        return []
    absent = schemas.of_rows == NO_SCHEMA
    changed = np.zeros(len(accepted), np.bool_)
    order = np.argsort(accepted.path_codes, kind="stable")
    paths = accepted.path_codes[order]
    same = paths[1:] == paths[:-1]
    changed[order[1:]] = same & (absent[order][1:] != absent[order][:-1])
    firsts: Indices = order[np.concatenate(([True], ~same))]
    before = {each.path: each.schema is None for each in rotation.open.values()}
    for index in firsts.tolist():
        changed[index] = before.get(accepted.path(index), absent[index]) != absent[index]
    return np.flatnonzero(changed).tolist()
