"""Sizes under the schema of the record's object, and the first record with which an object reaches maxBytes."""

from __future__ import annotations

import numpy as np
import pytest

from sink_job.arrow.arrays import Indices, Integers
from sink_job.records.batch import Rows
from sink_job.rotation.policy import RotationContext, RotationPolicy
from sink_job.rotation.projected_sizes import ProjectedSizes
from sink_job.rotation.row_index import AcceptedRows
from sink_job.rotation.schema_rules import SchemaSearch
from sink_job.rotation.types import OpenObjectState, RotationState

LENGTHS = {"s1": 10, "s2": 100}


def open_object(path: str, schema: str | None, size: int) -> OpenObjectState:
    return OpenObjectState(path=path, first=0, last=0, count=1, size=size, opened_at=0, schema=schema)


class Batch:
    """Records of these paths and schemas (0: s1). A record has as many bytes as the schema of its object says."""

    def __init__(
        self,
        paths: str,
        schemas: list[int],
        *objects: OpenObjectState,
        max_bytes: int | None = 25,
        projected: bool = True,
    ) -> None:
        names, own = sorted(set(paths)), list(LENGTHS.values())
        self.accepted = AcceptedRows(
            Rows(
                offsets=np.arange(len(paths)),
                codes=np.array([names.index(path) for path in paths], np.int32),
                paths=names,
                sizes=np.array([own[schema] for schema in schemas], np.int64),
                schemas=np.array(schemas, np.int32),
                schema_ids=["s1", "s2"],
                closes=lambda of_object, of_record: False,
                projected_sizes=self._sizes if projected else None,
            )
        )
        context = RotationContext(RotationPolicy(max_bytes=max_bytes), RotationState.start(0), objects, now=0)
        self.search = SchemaSearch(context, self.accepted)
        self.sizes = ProjectedSizes.of(context, self.accepted, self.search)

    @staticmethod
    def _sizes(schema: str, rows: Indices) -> Integers:
        return np.full(len(rows), LENGTHS[schema], np.int64)

    def filled(self, start: int = 0) -> int:
        assert self.sizes is not None
        end = len(self.accepted)
        self.search.first(start, end)
        return self.sizes.filled(start, end)


@pytest.mark.parametrize(
    ("paths", "schemas", "filled"),
    [
        ("aaa", [0, 1, 1], 2),
        ("aa", [0, 1], 2),
        ("aba", [0, 1, 1], 1),
        ("ababa", [0, 0, 1, 1, 0], 4),
        ("ab", [1, 0], 0),
    ],
    ids=["the third fills it", "none fills it", "another path", "each path has its sum", "the first record fills it"],
)
def test_an_object_is_filled_by_the_sizes_under_its_own_schema(paths: str, schemas: list[int], filled: int) -> None:
    assert Batch(paths, schemas).filled() == filled


@pytest.mark.parametrize(("size", "filled"), [(0, 2), (4, 2), (5, 1), (15, 0)])
def test_an_open_object_is_as_full_as_earlier_rounds_have_made_it(size: int, filled: int) -> None:
    assert Batch("aaa", [0, 1, 1], open_object("a", "s1", size)).filled() == filled


def test_an_object_of_a_path_without_records_does_not_count() -> None:
    assert Batch("aaa", [0, 1, 1], open_object("z", "s1", 1_000)).filled() == 2


def test_a_search_that_continues_counts_what_it_has_found_before() -> None:
    batch = Batch("aaa", [0, 1, 1])
    assert batch.sizes is not None
    batch.search.first(0, 3)
    assert batch.sizes.filled(0, 1) == 1
    assert batch.sizes.filled(1, 3) == 2


def test_after_a_close_objects_are_empty() -> None:
    batch = Batch("aaaaaa", [0, 1, 1, 0, 1, 1])
    assert batch.sizes is not None
    assert batch.filled() == 2
    batch.sizes.close_all()
    batch.search.close_all()
    assert batch.filled(3) == 5


def test_without_max_bytes_no_record_fills_an_object_but_sizes_are_measured() -> None:
    batch = Batch("aba", [0, 1, 1], max_bytes=None)
    assert batch.filled() == 3
    assert batch.accepted.sizes is not None
    assert batch.accepted.sizes.tolist() == [10, 100, 10]


@pytest.mark.parametrize(
    ("schemas", "projected"), [([0, 0], True), ([0, 1], False)], ids=["one schema", "written as they came"]
)
def test_sizes_that_do_not_depend_on_the_object_are_not_measured(schemas: list[int], projected: bool) -> None:
    assert Batch("aa", schemas, projected=projected).sizes is None


def test_the_schema_of_an_open_object_decides_also_for_records_with_one_schema() -> None:
    batch = Batch("aa", [0, 0], open_object("a", "s2", 0), max_bytes=101)
    assert batch.filled() == 1
