"""Connect's schemas as the columns of Parquet: types, nulls, units and field ids."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from sink_job.api.enums import OutputFormat, TimeUnit
from sink_job.avro.to_connect import UNION
from sink_job.connect import logical_types
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.field_ids import field_paths, numbered
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.parquet.types import FIELD_ID, arrow_schema

PARQUET = DatumSettings(OutputFormat.PARQUET)
MILLIS = DatumSettings(OutputFormat.PARQUET, time_unit=TimeUnit.AS_SCHEMA)
LONG, TEXT = Schema(SchemaType.INT64), Schema(SchemaType.STRING)


def struct(*fields: tuple[str, Schema], name: str | None = None, optional: bool = False) -> Schema:
    return Schema(SchemaType.STRUCT, name, optional, fields=tuple(Field(key, of) for key, of in fields))


def columns(*fields: tuple[str, Schema], settings: DatumSettings = PARQUET) -> pa.Schema:
    schema = struct(*fields)
    return arrow_schema(schema, settings, numbered(field_paths(schema)))


def column(schema: Schema, settings: DatumSettings = PARQUET) -> pa.Field:
    return columns(("f", schema), settings=settings).field("f")


def decimal(scale: int, precision: int | None = None) -> Schema:
    given = () if precision is None else (("connect.decimal.precision", str(precision)),)
    parameters = tuple(sorted((*given, (logical_types.SCALE, str(scale)))))
    return Schema(SchemaType.BYTES, logical_types.DECIMAL, parameters=parameters)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (SchemaType.INT8, pa.int32()),
        (SchemaType.INT16, pa.int32()),
        (SchemaType.INT32, pa.int32()),
        (SchemaType.INT64, pa.int64()),
        (SchemaType.FLOAT32, pa.float32()),
        (SchemaType.FLOAT64, pa.float64()),
        (SchemaType.BOOLEAN, pa.bool_()),
        (SchemaType.STRING, pa.string()),
        (SchemaType.BYTES, pa.binary()),
    ],
)
def test_a_scalar_has_the_type_of_its_values_and_is_null_if_it_is_optional(kind: SchemaType, expected: Any) -> None:
    for optional in (False, True):
        found = column(Schema(kind, optional=optional))
        assert (found.type, found.nullable) == (expected, optional)


@pytest.mark.parametrize(
    ("schema", "as_schema", "in_micros"),
    [
        (Schema(SchemaType.INT32, logical_types.DATE), pa.date32(), pa.date32()),
        (Schema(SchemaType.INT32, logical_types.TIME), pa.time32("ms"), pa.time64("us")),
        (Schema(SchemaType.INT64, logical_types.TIMESTAMP), pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")),
        (Schema(SchemaType.INT64, logical="time-micros"), pa.time64("us"), pa.time64("us")),
        (Schema(SchemaType.INT64, logical="timestamp-nanos"), pa.timestamp("ns", "UTC"), pa.timestamp("ns", "UTC")),
        (Schema(SchemaType.INT64, logical="local-timestamp-millis"), pa.timestamp("ms"), pa.timestamp("us")),
        (Schema(SchemaType.STRING, logical="uuid"), pa.uuid(), pa.uuid()),
    ],
    ids=str,
)
def test_milliseconds_are_microseconds_unless_the_unit_is_that_of_the_schema(
    schema: Schema, as_schema: pa.DataType, in_micros: pa.DataType
) -> None:
    """Nanoseconds stay: they would lose digits."""
    assert column(schema, MILLIS).type == as_schema
    assert column(schema, PARQUET).type == in_micros


@pytest.mark.parametrize(
    ("scale", "precision", "expected"),
    [(2, 9, (9, 2)), (2, None, (38, 2)), (0, 1, (1, 0)), (5, 3, (5, 5)), (2, 60, (38, 2)), (38, 38, (38, 38))],
)
def test_a_decimal_has_at_least_the_digits_of_its_scale_and_at_most_38(
    scale: int, precision: int | None, expected: tuple[int, int]
) -> None:
    assert column(decimal(scale, precision)).type == pa.decimal128(*expected)


def test_a_decimal_without_a_scale_is_an_error() -> None:
    with pytest.raises(InvalidSchema, match="the scale of a decimal must be an integer"):
        column(Schema(SchemaType.BYTES, logical_types.DECIMAL))


def test_items_of_lists_and_values_of_maps_are_null_if_they_are_optional_and_keys_never() -> None:
    optional = Schema(SchemaType.INT64, optional=True)
    for item in (LONG, optional):
        found = column(Schema(SchemaType.ARRAY, values=item)).type
        assert (found.value_type, found.value_field.nullable) == (pa.int64(), item.optional)
        of_map = column(Schema(SchemaType.MAP, keys=TEXT, values=item)).type
        assert (of_map.key_type, of_map.key_field.nullable) == (pa.string(), False)
        assert (of_map.item_type, of_map.item_field.nullable) == (pa.int64(), item.optional)


def test_a_map_may_have_keys_of_another_type() -> None:
    found = column(Schema(SchemaType.MAP, keys=LONG, values=TEXT)).type
    assert (found.key_type, found.item_type) == (pa.int64(), pa.string())


def test_the_members_of_a_union_are_optional_fields_and_those_of_a_struct_are_not() -> None:
    union = column(struct(("int", LONG), ("string", TEXT), name=UNION)).type
    assert [(each.name, each.nullable) for each in union] == [("int", True), ("string", True)]
    plain = column(struct(("int", LONG), ("string", TEXT))).type
    assert [each.nullable for each in plain] == [False, False]


def ids(found: pa.Field) -> list[int]:
    """The field ids of a type and of what is in it."""
    inner = found.type
    children = [inner.key_field, inner.item_field] if pa.types.is_map(inner) else [
        inner.field(number) for number in range(inner.num_fields)
    ]  # fmt: skip
    return [int(found.metadata[FIELD_ID]), *(number for each in children for number in ids(each))]


def test_each_type_has_the_id_of_its_path() -> None:
    found = columns(
        ("a", LONG),
        ("list", Schema(SchemaType.ARRAY, values=struct(("x", LONG), ("y", LONG)))),
        ("map", Schema(SchemaType.MAP, keys=TEXT, values=Schema(SchemaType.ARRAY, values=LONG))),
        ("z", LONG),
    )
    assert [number for each in found for number in ids(each)] == list(range(1, 11))


def test_ids_do_not_depend_on_the_order_of_the_fields() -> None:
    schema = struct(("b", LONG), ("a", LONG))
    found = arrow_schema(schema, PARQUET, {"a": 7, "b": 3})
    assert {each.name: ids(each) for each in found} == {"b": [3], "a": [7]}
