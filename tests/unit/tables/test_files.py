"""Data files of Iceberg from the footers of objects."""

from __future__ import annotations

import datetime
import math
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.conversions import from_bytes
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, PrimitiveType

from sink_job.api.errors import TableNotRegistered
from sink_job.ledger.state import ClosedObject
from sink_job.s3 import S3Client
from sink_job.tables.files import DataFiles, FooterReader, ObjectFooter, object_url
from tests.support.memory_s3 import MemoryS3
from tests.unit.tables.parquet_objects import column, listed, parquet

UTC = datetime.UTC


def stored(content: bytes, count: int, key: str = "topics/a.parquet", *, size: int | None = None) -> Any:
    """What `read_footer` gets."""
    s3 = MemoryS3()
    s3.put(key, content)
    o = listed(key, content if size is None else content[:size], count)
    client: Any = s3
    return client, o


def read_footer(s3: S3Client, o: ClosedObject) -> ObjectFooter:
    return FooterReader(s3, {}).read(o)


def bounds(kind: pa.DataType, values: list[Any], **options: Any) -> tuple[Any, Any]:
    """The bounds of a column with these values."""
    content = parquet([column(1, "a", kind)], {"a": values}, **options)
    footer = read_footer(*stored(content, len(values)))
    file = DataFiles(footer.columns.schema).file(footer)
    (field,) = footer.columns.schema.fields
    assert isinstance(field.field_type, PrimitiveType)
    kind_of_table = field.field_type
    low, high = file.lower_bounds.get(1), file.upper_bounds.get(1)
    return low and from_bytes(kind_of_table, low), high and from_bytes(kind_of_table, high)


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        (pa.int32(), -5, 7),
        (pa.int64(), -(2**63), 2**63 - 1),
        (pa.float64(), -1.5, 2.5),
        (pa.string(), "a", "ü"),
        (pa.binary(), b"\0", b"\xff\0"),
        (pa.binary(2), b"\0\1", b"\xff\0"),
        (pa.decimal128(5, 2), Decimal("-1.25"), Decimal("3.00")),
        (pa.decimal128(30, 3), Decimal("-1234567890123456789.125"), Decimal("9.000")),
        (pa.bool_(), False, True),
    ],
    ids=str,
)
def test_bounds_are_the_smallest_and_largest_value_over_all_row_groups(kind: pa.DataType, low: Any, high: Any) -> None:
    assert bounds(kind, [high, None, low, high], row_group=1) == (low, high)


def test_bounds_of_dates_and_times_are_those_of_iceberg() -> None:
    at = datetime.datetime(2026, 11, 28, 12, 0, 0, 5, tzinfo=UTC)
    micros = 1_795_867_200_000_005
    assert bounds(pa.timestamp("us", "UTC"), [at]) == (micros, micros)
    assert bounds(pa.timestamp("us"), [at.replace(tzinfo=None)]) == (micros, micros)
    assert bounds(pa.date32(), [at.date()]) == (20_785, 20_785)
    assert bounds(pa.time64("us"), [at.time()]) == (43_200_000_005, 43_200_000_005)


@pytest.mark.parametrize("micros", [2**62, -(2**62)])
def test_times_outside_of_the_years_of_python_have_bounds(micros: int) -> None:
    assert bounds(pa.timestamp("us", "UTC"), [micros, 0]) == (min(micros, 0), max(micros, 0))
    assert bounds(pa.date32(), [2**31 - 1]) == (2**31 - 1, 2**31 - 1)


def test_bounds_of_uuids_are_their_bytes() -> None:
    value = uuid.uuid4()
    assert bounds(pa.uuid(), [value.bytes]) == (value.bytes, value.bytes)


def test_long_texts_have_shorter_bounds_that_include_them() -> None:
    low, high = bounds(pa.string(), ["x" * 100])
    assert low <= "x" * 100 < high
    assert len(low) == len(high) == 16


def test_a_column_without_statistics_in_a_row_group_has_no_bounds() -> None:
    """A sink writes none for values with NaN."""
    assert bounds(pa.float64(), [1.0, math.nan], write_statistics=False) == (None, None)


def test_a_column_of_nulls_has_no_bounds_and_its_number_of_nulls() -> None:
    content = parquet([column(1, "a", pa.int32())], {"a": [None, None]})
    footer = read_footer(*stored(content, 2))
    file = DataFiles(footer.columns.schema).file(footer)
    assert (file.lower_bounds, file.null_value_counts, file.value_counts) == ({}, {1: 2}, {1: 2})


def test_bounds_of_a_narrow_column_have_the_type_of_the_table() -> None:
    content = parquet([column(1, "a", pa.int32())], {"a": [5]})
    footer = read_footer(*stored(content, 1))
    file = DataFiles(Schema(NestedField(1, "a", LongType(), required=False))).file(footer)
    assert file.lower_bounds == {1: (5).to_bytes(8, "little")}


def test_a_file_has_the_size_records_and_row_groups_of_the_object() -> None:
    content = parquet([column(1, "a", pa.int64())], {"a": list(range(100))}, row_group=40)
    footer = read_footer(*stored(content, 100))
    file = DataFiles(footer.columns.schema).file(footer)
    assert (file.record_count, file.file_size_in_bytes) == (100, len(content))
    assert file.file_path == "s3://archive/topics/a.parquet"
    offsets = file.split_offsets
    assert offsets is not None
    assert len(offsets) == 3
    assert offsets == sorted(offsets)
    assert offsets[0] == 4


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda content: (content, 3, None), "has 2 records, and the ledger says 3"),
        (lambda content: (content, 2, -1), "is not as the ledger says: it is not a Parquet file"),
        (lambda content: (b"x" * len(content), 2, None), "is not as the ledger says: it is not a Parquet file"),
    ],
    ids=["records", "longer", "other bytes"],
)
def test_an_object_that_is_not_as_the_ledger_says_stops_the_registration(change: Any, reason: str) -> None:
    content, count, size = change(parquet([column(1, "a", pa.int32())], {"a": [1, 2]}))
    with pytest.raises(TableNotRegistered, match=r"s3://archive/topics/a\.parquet") as caught:
        read_footer(*stored(content, count, size=size))
    assert reason in str(caught.value)


def test_an_object_that_does_not_exist_is_named() -> None:
    s3, o = stored(parquet([column(1, "a", pa.int32())], {"a": [1]}), 1)
    s3.delete([o.key])
    with pytest.raises(TableNotRegistered, match=r"topics/a\.parquet does not exist any more"):
        read_footer(s3, o)


def test_an_object_of_another_format_is_named() -> None:
    with pytest.raises(TableNotRegistered, match=r"topics/a\.json is not a Parquet object"):
        read_footer(*stored(b"{}", 1, "topics/a.json"))


def test_objects_share_their_columns() -> None:
    """Parsed footers and columns of many objects take much memory."""
    s3 = MemoryS3()
    client: Any = s3
    reader = FooterReader(client, {})
    contents = [
        parquet([column(1, name, kind)], {name: [None]})
        for name, kind in (
            ("a", pa.int32()),
            ("a", pa.int32()),
            ("a", pa.binary(16)),
            ("a", pa.uuid()),
            ("b", pa.int32()),
        )
    ]
    found = []
    for number, content in enumerate(contents):
        s3.put(f"{number}.parquet", content)
        found.append(reader.read(listed(f"{number}.parquet", content, 1)).columns)
    assert found[0] is found[1]
    assert len({id(each) for each in found}) == 4


@pytest.mark.parametrize("key", ["a?b", "a#b"])
def test_a_key_that_readers_cut_off_is_rejected(key: str) -> None:
    with pytest.raises(TableNotRegistered, match="cut off a path"):
        object_url("archive", key)
