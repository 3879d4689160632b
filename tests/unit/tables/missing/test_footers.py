"""The footers of a batch of which objects may not exist."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from pyiceberg.schema import Schema

from sink_job.ledger.state import ClosedObject
from sink_job.tables import plan
from sink_job.tables.files import ObjectFooter
from sink_job.tables.missing.footers import READERS, read_batch
from sink_job.tables.parquet_schema import ObjectColumns
from sink_job.tables.plan import Batch
from tests.unit.tables.parquet_objects import listed

OBJECTS = [listed(f"topics/{n:03}", b"x", 1, acknowledged=n + 1) for n in range(100)]


class Store:
    """Objects with `columns` columns; those with a number below `first` do not exist."""

    def __init__(self, first: int = 0, columns: int = 1) -> None:
        self.first = first
        self.columns = ObjectColumns(Schema(), tuple(range(columns)))
        self.reads: list[str] = []
        self._lock = threading.Lock()

    def find(self, o: ClosedObject) -> ObjectFooter | None:
        with self._lock:
            self.reads.append(o.key)
        fields: dict[str, Any] = {}
        return ObjectFooter(o, self.columns, fields) if o.acknowledged > self.first else None


@pytest.mark.parametrize("first", [0, 1, 17, 99, 100])
def test_objects_that_exist_and_others_are_separated(first: int) -> None:
    store = Store(first)
    found = read_batch(store.find, Batch(OBJECTS, 200))
    assert [each.object for each in found.footers] == OBJECTS[first:]
    assert (list(found.missing), found.record) == (OBJECTS[:first], 200)
    assert sorted(store.reads) == [o.key for o in OBJECTS]


def test_a_batch_with_many_columns_ends_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "MAX_STATISTICS", 300)
    store = Store(5, columns=10)
    found = read_batch(store.find, Batch(OBJECTS, 200))
    assert (len(found.footers), len(found.missing), found.record) == (25, 5, 30)
    assert len(store.reads) == 30


def test_a_batch_that_is_shorter_than_what_was_read_leaves_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "MAX_STATISTICS", 3)
    store = Store(1)
    found = read_batch(store.find, Batch(OBJECTS, 200))
    assert (len(found.footers), len(found.missing), found.record) == (2, 1, 3)
    assert len(store.reads) == 1 + READERS
