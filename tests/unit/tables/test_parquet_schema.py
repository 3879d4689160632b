"""The columns of objects as Iceberg has them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from sink_job.api.errors import TableIncompatible
from sink_job.tables.parquet_schema import columns_of
from tests.unit.tables.parquet_objects import column, footer, parquet


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.bool_(), BooleanType()),
        (pa.int32(), IntegerType()),
        (pa.int64(), LongType()),
        (pa.float32(), FloatType()),
        (pa.float64(), DoubleType()),
        (pa.string(), StringType()),
        (pa.binary(), BinaryType()),
        (pa.binary(5), FixedType(5)),
        (pa.uuid(), UUIDType()),
        (pa.decimal128(38, 4), DecimalType(38, 4)),
        (pa.date32(), DateType()),
        (pa.time64("us"), TimeType()),
        (pa.timestamp("us"), TimestampType()),
        (pa.timestamp("us", "UTC"), TimestamptzType()),
    ],
    ids=str,
)
def test_a_column_has_the_type_of_iceberg(kind: pa.DataType, expected: IcebergType) -> None:
    found = columns_of(footer(parquet([column(3, "a", kind)], {"a": [None]})), "key")
    assert found.schema.fields == (NestedField(3, "a", expected, required=False),)
    assert found.leaves == (3,)


def test_leaves_are_in_the_order_of_parquets_columns() -> None:
    inner = pa.struct([column(6, "x", pa.int64()), column(7, "y", pa.string())])
    entries = pa.map_(column(9, "key", pa.string()).with_nullable(False), column(10, "value", pa.int32()))
    fields = [
        column(1, "a", pa.int32()),
        column(2, "list", pa.list_(column(5, "element", inner))),
        column(8, "map", entries),
        column(11, "z", pa.uuid()),
    ]
    metadata = footer(parquet(fields, {"a": [1], "list": [[{"x": 1, "y": "b"}]], "map": [[("k", 1)]], "z": [None]}))
    found = columns_of(metadata, "key")
    assert found.leaves == (1, 6, 7, 9, 10, 11)
    assert len(found.leaves) == metadata.num_columns
    assert [each.field_type for each in found.schema.fields] == [
        IntegerType(),
        ListType(
            5, StructType(NestedField(6, "x", LongType()), NestedField(7, "y", StringType())), element_required=False
        ),
        MapType(9, StringType(), 10, IntegerType(), value_required=False),
        UUIDType(),
    ]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (
            pa.time32("ms"),
            "has milliseconds (time32[ms]), and tables of format version 2 have microseconds: set",
        ),
        (pa.timestamp("ms", "UTC"), "has milliseconds"),
        (pa.timestamp("ns"), "has nanoseconds (timestamp[ns]), and tables of format version 2 have microseconds"),
        (pa.timestamp("ns", "UTC"), "has nanoseconds (timestamp[ns, tz=UTC]), and tables of format version 2 have"),
        (pa.uint8(), "has the type uint8, which tables do not have"),
    ],
    ids=str,
)
def test_a_column_that_no_table_can_have_is_named(kind: pa.DataType, reason: str) -> None:
    within = pa.struct([column(2, "at", kind)])
    with pytest.raises(TableIncompatible, match=r"column trip\.at of s3://b/key") as caught:
        columns_of(footer(parquet([column(1, "trip", within)], {"trip": [None]})), "s3://b/key")
    assert reason in str(caught.value)


def test_a_column_without_a_field_id_is_named() -> None:
    with pytest.raises(TableIncompatible, match="column a of key has no field id"):
        columns_of(footer(parquet([pa.field("a", pa.int32())], {"a": [1]})), "key")
