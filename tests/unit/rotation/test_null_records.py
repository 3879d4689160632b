"""The schemas of records without a value: that of the record before them, whatever the batches are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sink_job.records.batch import ANY_SCHEMA, NO_SCHEMA, REJECTED, NullRecords, Rows
from sink_job.rotation.null_records import with_schemas_of_nulls

NULL_SCHEMA = "n"


class One(NamedTuple):
    """A record: the id of its schema (None: it has no value), and whether it is accepted."""

    schema: str | None
    accepted: bool = True


def rows_of(records: list[One]) -> Rows:
    ids = [*dict.fromkeys(each.schema for each in records if each.schema is not None), NULL_SCHEMA]
    codes = [ANY_SCHEMA if each.schema is None else ids.index(each.schema) for each in records]
    return Rows(
        offsets=np.arange(len(records)),
        codes=np.array([0 if each.accepted else REJECTED for each in records], np.int32),
        paths=["p"],
        sizes=np.full(len(records), 10),
        schemas=np.array(codes, np.int32),
        schema_ids=ids,
        nulls=NullRecords(len(ids) - 1, 1),
    )


def schemas(batches: list[list[One]]) -> list[tuple[str, int]]:
    """Schema and size of each accepted record."""
    found: list[tuple[str, int]] = []
    last: str | None = None
    for records in batches:
        rows, last = with_schemas_of_nulls(rows_of(records), last)
        assert rows.schemas is not None
        assert rows.sizes is not None
        each = zip(records, rows.schemas.tolist(), rows.sizes.tolist(), strict=True)
        found += [(rows.schema_ids[code], size) for one, code, size in each if one.accepted]
    return found


BATCHES = st.lists(
    st.lists(st.builds(One, st.sampled_from([None, None, "a", "b"]), st.booleans()), min_size=1, max_size=6), max_size=5
)


@given(BATCHES)
def test_a_record_without_a_value_has_the_schema_of_the_last_accepted_one_with_a_value(
    batches: list[list[One]],
) -> None:
    expected: list[tuple[str, int]] = []
    last = NULL_SCHEMA
    for one in (each for batch in batches for each in batch if each.accepted):
        last = one.schema or last
        expected.append((last, 11 if one.schema is None and last != NULL_SCHEMA else 10))
    assert schemas(batches) == expected


def test_a_record_without_a_schema_is_one_with_a_value_where_objects_have_none() -> None:
    rows = Rows(
        offsets=np.arange(4),
        codes=np.zeros(4, np.int32),
        paths=["p"],
        schemas=np.array([0, NO_SCHEMA, ANY_SCHEMA, 0], np.int32),
        schema_ids=["a"],
        nulls=NullRecords(NO_SCHEMA, 0),
    )
    found, last = with_schemas_of_nulls(rows.between(0, 3), None)
    assert found.schemas is not None
    assert (found.schemas.tolist(), last) == ([0, NO_SCHEMA, NO_SCHEMA], None)
    assert with_schemas_of_nulls(rows, None)[1] == "a"


def test_rows_that_cannot_have_any_schema_are_unchanged() -> None:
    rows = Rows(np.arange(1), np.zeros(1, np.int32), ["p"], schemas=np.array([0], np.int32), schema_ids=["a"])
    assert with_schemas_of_nulls(rows, None) == (rows, None)
