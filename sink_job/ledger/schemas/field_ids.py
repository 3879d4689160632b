"""The field ids of the Parquet objects of each topic, in a ledger.

`<ledger root>field-ids/<topic>/<first id>.json` assigns ids to the paths of one schema that had none. The files of a
topic follow each other without gaps: the name of the next one is the next free id, with 10 digits. A task adds a file
by a conditional put before the first record of an object whose schema has a new path. Of two tasks that add one at the
same time, the second reads the file of the first and tries the next name. No file is ever changed or deleted. So the
ids of a schema never change once all of its paths have one, and every task, rebuild and `verify` finds the same.

The first file of a topic may have the ids of tables that existed before the topic's first object (`FieldIdsSeed`). It
is put by the driver before a task reads records of the topic, and has any ids; those after it follow its `next`.
"""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

import msgspec

from sink_job.api.errors import TransientError
from sink_job.connect.field_ids import FieldIds, numbered
from sink_job.ledger import files
from sink_job.s3 import Conflict, PreconditionFailed, S3Client

FORMAT: Final = 1
_NAME: Final = re.compile(r"[0-9]{10}\.json")
_NO_PATH: Final = "\\"
"""No path is one backslash."""


class SeedTable(msgspec.Struct, frozen=True):
    """A table that gave its ids. `sequence`: the number of its last snapshot then; 0 without one."""

    name: str
    uuid: str
    sequence: int


class FieldIdsEntry(msgspec.Struct, frozen=True):
    """A file of ids: path -> id, ascending from the id in its name.

    The ids of `tables` are any, and `next` is the first id of the next file.
    """

    ids: dict[str, int]
    format: int = FORMAT
    next: int | msgspec.UnsetType = msgspec.UNSET
    tables: tuple[SeedTable, ...] | msgspec.UnsetType = msgspec.UNSET


@dataclass(frozen=True)
class FieldIdsSeed:
    """The field ids of tables: `ids` by path. Those of later fields ascend from `next`, which is at least 2; ids of
    `ids` above it are far away."""

    ids: FieldIds
    next: int
    tables: tuple[SeedTable, ...]


@dataclass(frozen=True)
class _Known:
    """The ids in the first files of a topic. `next` is the name of the file after them."""

    ids: Mapping[str, int] = field(default_factory=dict)
    next: int = 1

    def missing(self, paths: Iterable[str]) -> list[str]:
        return [path for path in paths if path not in self.ids]


class LedgerFieldIds:
    """Reads and adds the field ids of topics. Each file is read or written once per process and client. Thread-safe."""

    _lock: ClassVar = threading.Lock()
    _caches: ClassVar[weakref.WeakKeyDictionary[S3Client, dict[tuple[str, str], _Known]]] = weakref.WeakKeyDictionary()

    def __init__(self, s3: S3Client, root: str) -> None:
        """`root` is the ledger's prefix and ends with `/`."""
        self._s3 = s3
        self._root = root
        self._cache = self._caches.setdefault(s3, {})

    def find(self, topic: str, paths: Sequence[str]) -> FieldIds:
        """The ids of `paths`, and of other paths. Raises LedgerUnreadable if one of `paths` has none, and the errors of
        the store."""
        known = self._known(topic)
        while missing := known.missing(paths):
            key = field_ids_key(self._root, topic, known.next)
            following = self._read_for(topic, known, paths)
            if following is None:
                raise files.unreadable(self._s3, key, f"it does not exist, and the field {missing[0]} has no id")
            known = following
        return known.ids

    def all(self, topic: str) -> FieldIds:
        """The ids of all paths of a topic. Raises LedgerUnreadable and the errors of the store."""
        known = self._known(topic)
        while (following := self._read_for(topic, known, (_NO_PATH,))) is not None:
            known = following
        return known.ids

    def add(self, topic: str, paths: Sequence[str]) -> None:
        """Gives those of `paths` that have no id the next free ones, in their order. Raises LedgerUnreadable,
        TransientError if nothing is stored after a 409 that persists, and the errors of the store."""
        known = self._known(topic)
        while missing := known.missing(paths):
            known = self._read_for(topic, known, paths) or self._put(topic, known, missing)

    def has_any(self, topic: str) -> bool:
        """Whether the topic has ids, which are those of all its later objects. Raises as `find`."""
        return self._known(topic).next > 1 or self._read(topic, _Known()) is not None

    def seed(self, topic: str, seed: FieldIdsSeed) -> bool:
        """Gives a topic without ids those of tables; returns False if it has some. Raises TransientError after a 409,
        and the errors of the store."""
        entry = FieldIdsEntry(dict(seed.ids), next=seed.next, tables=seed.tables)
        try:
            self._s3.put(field_ids_key(self._root, topic, 1), msgspec.json.encode(entry), only_if_absent=True)
        except PreconditionFailed:
            return False
        except Conflict as rejected:
            raise TransientError(str(rejected)) from rejected
        return True

    def seeded_by(self, topic: str) -> Sequence[SeedTable]:
        """The tables whose ids the topic has got. Raises as `find`."""
        entry = files.find(self._s3, field_ids_key(self._root, topic, 1), FieldIdsEntry, expected_format=FORMAT)
        return () if entry is None or isinstance(entry.tables, msgspec.UnsetType) else entry.tables

    def _put(self, topic: str, known: _Known, missing: Sequence[str]) -> _Known:
        """Assigns the next ids to `missing`, unless another task has used them. Returns what is stored."""
        entry = FieldIdsEntry(numbered(missing, known.next))
        key = field_ids_key(self._root, topic, known.next)
        try:
            self._s3.put(key, msgspec.json.encode(entry), only_if_absent=True)
        except (PreconditionFailed, Conflict) as rejected:
            stored = self._read(topic, known)
            if stored is None:
                raise TransientError(str(rejected)) from rejected
            return stored
        return self._remember(topic, known, entry)

    def _read_for(self, topic: str, known: _Known, paths: Sequence[str]) -> _Known | None:
        """The ids with those of the next file, and of the files after it if one of `paths` has no id yet; None if there
        is no next file."""
        following = self._read(topic, known)
        if following is None or not following.missing(paths):
            return following
        folder = field_ids_folder(self._root, topic)
        listed = [each.key for each in self._s3.list(folder, f"{folder}{following.next:010}")]
        keys = [key for key in listed if _NAME.fullmatch(key.removeprefix(folder))]
        found = files.find_all(self._s3, keys, FieldIdsEntry, expected_format=FORMAT)
        while (entry := found.get(field_ids_key(self._root, topic, following.next))) is not None:
            following = self._added(topic, following, entry)
        return following

    def _read(self, topic: str, known: _Known) -> _Known | None:
        """The ids with those of the next file; None if there is no such file."""
        key = field_ids_key(self._root, topic, known.next)
        entry = files.find(self._s3, key, FieldIdsEntry, expected_format=FORMAT)
        return None if entry is None else self._added(topic, known, entry)

    def _added(self, topic: str, known: _Known, entry: FieldIdsEntry) -> _Known:
        """The ids with those of the next file. Raises LedgerUnreadable."""
        key = field_ids_key(self._root, topic, known.next)
        if isinstance(entry.next, int) and known.next == 1:
            used = {*entry.ids.values()}
            if len(used) < len(entry.ids) or min(used, default=1) < 1 or entry.next < 2 or entry.next in used:
                raise files.unreadable(self._s3, key, f"its ids are not different ones, or {entry.next} is not free")
        elif list(entry.ids.values()) != list(range(known.next, known.next + max(1, len(entry.ids)))):
            raise files.unreadable(self._s3, key, f"its ids do not ascend from {known.next}")
        if repeated := known.ids.keys() & entry.ids.keys():
            raise files.unreadable(self._s3, key, f"the field {min(repeated)} has another id already")
        return self._remember(topic, known, entry)

    def _known(self, topic: str) -> _Known:
        return self._cache.get((self._root, topic)) or _Known()

    def _remember(self, topic: str, known: _Known, entry: FieldIdsEntry) -> _Known:
        following = entry.next if isinstance(entry.next, int) else known.next + len(entry.ids)
        found = _Known({**known.ids, **entry.ids}, following)
        with self._lock:
            if self._known(topic).next < found.next:
                self._cache[self._root, topic] = found
        return found


def field_ids_key(root: str, topic: str, first: int) -> str:
    """The key of the file of a topic whose ids ascend from `first`."""
    return f"{field_ids_folder(root, topic)}{first:010}.json"


def field_ids_folder(root: str, topic: str) -> str:
    """The prefix of the keys of a topic."""
    return f"{root}field-ids/{topic}/"
