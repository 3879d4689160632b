"""The settings of the outputs Avro and Parquet, and the schemas that Parquet cannot express."""

from __future__ import annotations

import re

import pytest

from sink_job.api.enums import ConverterType, LogicalTypes, OutputFormat, TimeUnit
from sink_job.api.sections.format_section import AvroSpec, FormatSpec, ParquetSpec
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.logical_types import DECIMAL
from sink_job.connect.output_settings import (
    MAX_LEVELS,
    DatumSettings,
    check_parquet,
    given_precision,
    is_native_decimal,
)
from sink_job.connect.schema import Extension, Field, Schema, SchemaType

AVRO, PARQUET = DatumSettings(), DatumSettings(OutputFormat.PARQUET)
INT = Schema(SchemaType.INT32)


def decimal(scale: int = 2, precision: str | None = None) -> Schema:
    parameters: tuple[tuple[str, str], ...] = (("scale", str(scale)),)
    if precision is not None:
        parameters = (("connect.decimal.precision", precision), *parameters)
    return Schema(SchemaType.BYTES, DECIMAL, parameters=parameters)


def struct(*fields: tuple[str, Schema], name: str | None = None) -> Schema:
    return Schema(SchemaType.STRUCT, name, fields=tuple(Field(key, of) for key, of in fields))


@pytest.mark.parametrize("output", OutputFormat)
def test_an_output_without_avro_data_has_no_settings(output: OutputFormat) -> None:
    found = DatumSettings.of(FormatSpec(converter=ConverterType.AVRO, output=output))
    assert (found is not None) == (output in (OutputFormat.AVRO, OutputFormat.PARQUET))


def test_the_settings_are_those_of_the_format() -> None:
    avro = FormatSpec(
        converter=ConverterType.AVRO,
        output=OutputFormat.AVRO,
        envelope=True,
        logical_types=LogicalTypes.AS_CONNECTOR,
        avro=AvroSpec(connect_names=True),
    )
    assert DatumSettings.of(avro) == DatumSettings(
        OutputFormat.AVRO, LogicalTypes.AS_CONNECTOR, connect_names=True, envelope=True
    )
    parquet = FormatSpec(
        converter=ConverterType.AVRO, output=OutputFormat.PARQUET, parquet=ParquetSpec(time_unit=TimeUnit.AS_SCHEMA)
    )
    assert DatumSettings.of(parquet) == DatumSettings(OutputFormat.PARQUET, time_unit=TimeUnit.AS_SCHEMA)


def test_schemas_have_logical_types_only_where_all_are_kept() -> None:
    connect = DatumSettings(logical_types=LogicalTypes.AS_CONNECTOR)
    assert (AVRO.extension, AVRO.keeps_logical_types) == (Extension.LOGICAL_TYPES, True)
    assert (connect.extension, connect.keeps_logical_types) == (Extension.SYMBOLS, False)


@pytest.mark.parametrize(
    ("text", "precision"),
    [
        *((None, None), ("10", 10), ("0", None), ("-1", None), ("x", None), ("²", None), ("", None)),
        *(("9" * 9, 999_999_999), ("1" + "0" * 9, None)),
    ],
)
def test_a_precision_is_a_positive_number(text: str | None, precision: int | None) -> None:
    assert given_precision(decimal(precision=text)) == precision


@pytest.mark.parametrize(("text", "avro", "parquet"), [(None, 64, 38), ("10", 10, 10), ("38", 38, 38), ("39", 39, 38)])
def test_parquet_limits_the_precision_to_38(text: str | None, avro: int, parquet: int) -> None:
    assert (AVRO.precision(decimal(precision=text)), PARQUET.precision(decimal(precision=text))) == (avro, parquet)


@pytest.mark.parametrize(("scale", "native"), [(-1, False), (0, True), (5, True), (6, False)])
def test_the_scale_of_a_decimal_is_within_its_precision(scale: int, native: bool) -> None:
    assert is_native_decimal(decimal(scale), 5) is native


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (INT, "Parquet requires a struct as the whole value, but its schema is int32"),
        (decimal(), f"Parquet requires a struct as the whole value, but its schema is bytes ({DECIMAL})"),
        (struct(), "Parquet cannot express the whole value: the struct without a name has no fields"),
        (struct(("a", struct(name="E"))), "Parquet cannot express the field a: the struct E has no fields"),
        (
            struct(("a", Schema(SchemaType.ARRAY, values=struct(("b", Schema(SchemaType.REFERENCE, "N")))))),
            "Parquet cannot express the field a[].b: its schema is recursive: it refers to the enclosing N",
        ),
        (
            struct(("m", Schema(SchemaType.MAP, keys=decimal(-1), values=INT))),
            "Parquet cannot express the field m[key]: the scale of a decimal is -1, and must be from 0 to 38",
        ),
        (
            struct(("m", Schema(SchemaType.MAP, keys=INT, values=decimal(39)))),
            "Parquet cannot express the field m[value]: the scale of a decimal is 39, and must be from 0 to 38",
        ),
    ],
)
def test_a_schema_that_parquet_cannot_express_is_rejected_with_its_place(schema: Schema, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=f"^{re.escape(reason)}$"):
        check_parquet(schema)


@pytest.mark.parametrize("scale", [0, 38])
def test_a_decimal_can_have_any_scale_up_to_38(scale: int) -> None:
    check_parquet(struct(("a", decimal(scale))))


def nested(structs: int, lists: int) -> Schema:
    schema = INT
    for _ in range(lists):
        schema = Schema(SchemaType.ARRAY, values=schema)
    for _ in range(structs):
        schema = struct(("f", schema))
    return schema


def test_types_are_nested_up_to_99_levels_of_which_a_list_takes_two() -> None:
    assert MAX_LEVELS == 99
    check_parquet(nested(99, 0))
    check_parquet(nested(1, 49))
    for schema in (nested(100, 0), nested(2, 49)):
        with pytest.raises(InvalidSchema, match="it is nested deeper than 99 levels"):
            check_parquet(schema)
