"""Connect's values as Avro data: what fastavro writes under the same schema, or an error that names the field."""

from __future__ import annotations

import io
import json
import re
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from sink_job.api.enums import OutputFormat
from sink_job.avro.encoder import TIMESTAMP_MS, datum_encoder, value_range
from sink_job.avro.from_connect import avro_schema
from sink_job.connect import logical_types
from sink_job.connect.errors import InvalidSchema, InvalidValue
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import INTEGER_BITS, Default, Field, Schema, SchemaType
from tests.unit.avro.avro_data import without_logical_types

AVRO, PARQUET = DatumSettings(), DatumSettings(OutputFormat.PARQUET)
TEXT, INT = Schema(SchemaType.STRING), Schema(SchemaType.INT32)
AMOUNT = Schema(
    SchemaType.BYTES, logical_types.DECIMAL, parameters=(("connect.decimal.precision", "4"), ("scale", "2"))
)


def struct(*fields: tuple[str, Schema], name: str = "R") -> Schema:
    return Schema(SchemaType.STRUCT, name, fields=tuple(Field(key, of) for key, of in fields))


def read(schema: Schema, value: object) -> Any:
    """The value that fastavro reads, of a field so that every schema is within a record."""
    outer = struct(("f", schema))
    data = datum_encoder(outer, AVRO)({"f": value})
    parsed = fastavro.parse_schema(without_logical_types(json.loads(avro_schema(outer, AVRO))))
    found = fastavro.schemaless_reader(io.BytesIO(data), parsed, None)
    assert isinstance(found, dict)
    return found["f"]


@pytest.mark.parametrize(
    ("schema", "value", "found"),
    [
        (INT, -5, -5),
        (TEXT, "ä", "ä"),
        (Schema(SchemaType.BOOLEAN), True, True),
        (Schema(SchemaType.FLOAT64), 0.1, 0.1),
        (Schema(SchemaType.BYTES), b"\xff", b"\xff"),
        (AMOUNT, Decimal("1.5"), b"\x00\x96"),
        (Schema(SchemaType.INT32, optional=True), None, None),
        (Schema(SchemaType.INT32, optional=True), 5, 5),
        (Schema(SchemaType.INT32, optional=True, default=Default("7")), None, None),
        (Schema(SchemaType.INT32, default=Default("7")), None, 7),
        (Schema(SchemaType.ARRAY, values=INT), [1, 2], [1, 2]),
        (Schema(SchemaType.ARRAY, values=INT), [], []),
        (Schema(SchemaType.MAP, keys=TEXT, values=INT), {"a": 1}, {"a": 1}),
        (Schema(SchemaType.MAP, keys=INT, values=TEXT), [(1, "a")], [{"key": 1, "value": "a"}]),
        (struct(("x", INT), name="I"), {"x": 1}, {"x": 1}),
    ],
)
def test_fastavro_reads_the_value(schema: Schema, value: object, found: object) -> None:
    assert read(schema, value) == found


def test_a_recursive_value_is_encoded_at_each_level() -> None:
    node = struct(("n", INT), ("next", Schema(SchemaType.REFERENCE, "Node", optional=True)), name="Node")
    value = {"n": 1, "next": {"n": 2, "next": None}}
    assert read(node, value) == value


@pytest.mark.parametrize("kind", INTEGER_BITS)
def test_an_integer_has_the_range_of_its_type(kind: SchemaType) -> None:
    lowest, highest = value_range(Schema(kind))
    assert (lowest, highest) == (-(1 << INTEGER_BITS[kind] - 1), (1 << INTEGER_BITS[kind] - 1) - 1)
    encode = datum_encoder(Schema(kind), AVRO)
    for value in (lowest, highest):
        encode(value)
    for value in (lowest - 1, highest + 1):
        with pytest.raises(InvalidValue):
            encode(value)


@pytest.mark.parametrize(
    ("kind", "name", "lowest", "highest"),
    [
        (SchemaType.INT32, logical_types.TIME, 0, 86_399_999),
        (SchemaType.INT32, logical_types.DATE, -719_162, 2_932_896),
        (SchemaType.INT64, logical_types.TIMESTAMP, *TIMESTAMP_MS),
    ],
)
def test_dates_and_times_are_within_their_day_and_the_years_1_to_9999(
    kind: SchemaType, name: str, lowest: int, highest: int
) -> None:
    encode = datum_encoder(struct(("at", Schema(kind, name))), AVRO)
    for value in (lowest, highest):
        encode({"at": value})
    for value in (lowest - 1, highest + 1):
        with pytest.raises(InvalidValue, match=r"at.*"):
            encode({"at": value})


@pytest.mark.parametrize("value", ["100", "0.001", "NaN"])
def test_a_decimal_with_more_digits_than_its_precision_is_rejected_with_its_field(value: str) -> None:
    encode = datum_encoder(struct(("price", AMOUNT)), AVRO)
    encode({"price": Decimal("99.99")})
    with pytest.raises(InvalidValue, match="price"):
        encode({"price": Decimal(value)})


def test_a_missing_value_is_rejected_with_its_path() -> None:
    encode = datum_encoder(struct(("a", struct(("b", INT), name="I"))), AVRO)
    with pytest.raises(InvalidValue, match=re.escape("a.b")):
        encode({"a": {"b": None}})


def test_a_default_that_cannot_be_written_is_an_error_of_the_schema() -> None:
    late = Schema(SchemaType.INT32, logical_types.TIME, default=Default("86400000"))
    with pytest.raises(InvalidSchema, match="the schema has a default that cannot be written"):
        datum_encoder(struct(("at", late)), AVRO)


def test_parquet_requires_a_struct_and_avro_does_not() -> None:
    datum_encoder(INT, AVRO)
    with pytest.raises(InvalidSchema, match="Parquet requires a struct"):
        datum_encoder(INT, PARQUET)
