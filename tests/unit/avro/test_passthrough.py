"""Avro data for the outputs Avro and Parquet: it passes unchanged where its type has the form of the object's."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from msgspec import structs

from sink_job.api.enums import LogicalTypes, OutputFormat
from sink_job.arrow import columnar
from sink_job.avro.connect_values import normaliser
from sink_job.avro.converter import AvroDecoder
from sink_job.avro.encoder import datum_encoder
from sink_job.avro.from_connect import avro_schema
from sink_job.avro.passthrough import passes
from sink_job.avro.row_decoder import DatumReader
from sink_job.avro.to_connect import parse_registered
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.json_encoder import DEFAULT_OPTIONS
from sink_job.connect.output_settings import DatumSettings
from sink_job.converters.registered import Decoded
from sink_job.parquet.table_reader import ParquetTableReader
from tests.unit.avro.avro_data import encode, record, registered, samples, without_logical_types
from tests.unit.avro.test_column_decoder import damaged

AVRO = DatumSettings()
PARQUET = DatumSettings(OutputFormat.PARQUET)
INVALID_UUIDS = [
    "  345678123456781234567812345678ab",
    "1_345678123456781234567812345678",
    "+2345678123456781234567812345678",
    "\uff11" * 32,
    "1-2345678-1234-5678-1234-567812345678",
    "12345678-1234-5678-1234-567812345678\n",
    "{12345678-1234-5678-1234-567812345678}",
]
FIELDS = ("f0", "f0.f0", "f1.f0.f1", "absent")


def decoder(schema: Any, settings: DatumSettings = AVRO, fields: tuple[str, ...] = ()) -> AvroDecoder:
    return AvroDecoder(registered(schema), fields, DEFAULT_OPTIONS, settings)


def decode(schema: Any, data: list[bytes], *, min_rows: int = 16, settings: DatumSettings = AVRO) -> Decoded:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columnar, "MIN_ROWS", min_rows)
        return decoder(schema, settings, FIELDS).decode(pa.array(data, pa.binary()))


def plain(found: Decoded) -> tuple[Any, ...]:
    """The result, with empty data for null and rejected rows."""
    data = found.texts.to_pylist()
    for row in [row for row, _ in found.rejected] + (
        [] if found.nulls is None else np.flatnonzero(found.nulls).tolist()
    ):
        data[row] = b""
    return data, None if found.nulls is None else found.nulls.tolist(), found.rejected, repr(found.fields)


def both_ways(schema: Any, data: list[bytes], settings: DatumSettings = AVRO) -> list[bytes]:
    """The data of the object, which is equal column-wise and row-wise."""
    by_column = plain(decode(schema, data, min_rows=0, settings=settings))
    assert by_column == plain(decode(schema, data, min_rows=1 << 60, settings=settings))
    found: list[bytes] = by_column[0]
    return found


def written(schema: Any, value: object, settings: DatumSettings = AVRO) -> Any:
    """`value`, as fastavro reads it in the object."""
    found = decoder(schema, settings)
    decoded = found.decode(pa.array(encode(schema, [value]), pa.binary()))
    assert not decoded.rejected, decoded.rejected
    text = fastavro.parse_schema(without_logical_types(json.loads(avro_schema(found.schema, settings))))
    return fastavro.schemaless_reader(io.BytesIO(decoded.texts[0].as_py()), text)


def rejection(schema: Any, value: object, settings: DatumSettings = AVRO) -> str:
    decoded = decoder(schema, settings).decode(pa.array(encode(schema, [value]), pa.binary()))
    ((_, reason),) = decoded.rejected
    return reason


def nested(depth: int) -> Any:
    """Lists in lists."""
    return {"type": "array", "items": nested(depth - 1)} if depth else "int"


@given(samples())
def test_data_is_the_same_by_column_and_one_by_one(sample: tuple[Any, list[Any]]) -> None:
    schema, values = sample
    both_ways(schema, encode(schema, values))


@given(damaged())
def test_damaged_data_is_rejected_for_the_same_reasons_in_both_ways(sample: tuple[Any, list[bytes]]) -> None:
    both_ways(*sample)


@given(samples())
def test_data_of_the_object_has_the_values_of_the_producer(sample: tuple[Any, list[Any]]) -> None:
    schema, values = sample
    data = encode(schema, values)
    found = decoder(schema)
    rows = found.decode(pa.array(data, pa.binary()))
    source = parse_registered(registered(schema))
    target = parse_registered(registered(json.loads(avro_schema(found.schema, AVRO))))
    for row in range(len(data)):
        if row not in dict(rows.rejected):
            expected = normaliser(source)(DatumReader(source).read(data[row]))
            assert repr(normaliser(target)(DatumReader(target).read(rows.texts[row].as_py()))) == repr(expected)


@given(samples().filter(lambda sample: "decimal" not in repr(sample[0])))
def test_encoded_values_are_the_data_that_the_producer_would_write(sample: tuple[Any, list[Any]]) -> None:
    schema, values = sample
    found = decoder(schema)
    source = parse_registered(registered(schema))
    if not passes(source, found.schema, AVRO):
        return
    encode_datum = datum_encoder(found.schema, AVRO)
    data = encode(schema, values)
    rejected = dict(found.decode(pa.array(data, pa.binary())).rejected)
    for datum in (each for row, each in enumerate(data) if row not in rejected):
        assert encode_datum(normaliser(source)(DatumReader(source).read(datum))) == datum


def one_field(kind: Any) -> dict[str, Any]:
    return record(("f0", kind))


def decimals(precision: int, scale: int = 2, **more: Any) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale, **more}


def test_data_of_the_same_form_passes_unchanged() -> None:
    data = encode(one_field(["null", "string"]), [{"f0": "x"}, {"f0": None}])
    assert both_ways(one_field(["null", "string"]), data) == data


def test_an_optional_field_with_null_last_is_encoded_with_null_first_as_by_connect() -> None:
    data = encode(one_field(["string", "null"]), [{"f0": "x"}, {"f0": None}])
    assert both_ways(one_field(["string", "null"]), data) == encode(
        one_field(["null", "string"]), [{"f0": "x"}, {"f0": None}]
    )


def test_the_symbols_of_an_enum_keep_their_order() -> None:
    schema = one_field({"type": "enum", "name": "E", "symbols": ["Z", "A"]})
    data = encode(schema, [{"f0": "Z"}, {"f0": "A"}])
    assert both_ways(schema, data) == data


def test_the_symbols_of_an_enum_are_plain_texts_as_keys_of_a_map() -> None:
    enum = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    entry = {**record(("key", enum), ("value", "int"), name="M"), "connect.internal.type": "MapEntry"}
    schema = one_field({"type": "array", "items": entry})
    assert written(schema, {"f0": [{"key": "B", "value": 1}]}) == {"f0": {"B": 1}}


def test_a_member_of_a_union_keeps_its_type() -> None:
    schema = one_field(["int", "null", "string", record(("n", "long"), name="In")])
    assert written(schema, {"f0": {"n": 4}}) == {"f0": {"n": 4}}
    assert written(schema, {"f0": "x"}) == {"f0": "x"}
    assert written(schema, {"f0": None}) == {"f0": None}


def test_a_small_integer_has_the_value_of_connect() -> None:
    assert written(one_field({"type": "int", "connect.type": "int8"}), {"f0": 300}) == {"f0": 44}


def test_a_recursive_value_passes_unchanged() -> None:
    schema = record(("v", "int"), ("next", ["null", "R"]))
    data = encode(schema, [{"v": 1, "next": {"v": 2, "next": None}}])
    assert both_ways(schema, data) == data


def test_bytes_after_a_datum_are_a_data_error() -> None:
    found = decode(one_field("int"), [b"\x02\x00"])
    assert found.rejected == [(0, "the value has 1 bytes after its Avro data")]


@pytest.mark.parametrize("settings", [AVRO, PARQUET])
def test_a_decimal_with_more_digits_than_its_precision_is_a_data_error_of_its_field(settings: DatumSettings) -> None:
    data = encode(
        one_field(decimals(3)), [{"f0": number.to_bytes(2, "big", signed=True)} for number in (999, 1000, -1000)]
    )
    found = decode(one_field(decimals(3)), data, min_rows=0, settings=settings)
    assert [row for row, _ in found.rejected] == [1, 2]
    assert found.rejected[0][1] == "the field f0: a decimal has more than 3 digits"


def test_a_decimal_in_parquet_has_at_most_38_digits() -> None:
    data = encode(one_field(decimals(60)), [{"f0": (10**38 - 1).to_bytes(16)}, {"f0": (10**38).to_bytes(16)}])
    assert [row for row, _ in decode(one_field(decimals(60)), data, min_rows=0, settings=PARQUET).rejected] == [1]


def test_a_time_of_more_than_a_day_is_a_data_error() -> None:
    schema = one_field({"type": "int", "logicalType": "time-millis"})
    data = encode(schema, [{"f0": 86_399_999}, {"f0": 86_400_000}, {"f0": -1}])
    assert both_ways(schema, data)[0] == data[0]
    assert decode(schema, data).rejected[1] == (
        2,
        "the field f0: -1 is outside the range of time-millis",
    )


@pytest.mark.parametrize("settings", [AVRO, PARQUET])
def test_a_uuid_that_is_none_is_a_data_error(settings: DatumSettings) -> None:
    """Readers of Avro such as fastavro end at the first one."""
    schema = one_field({"type": "string", "logicalType": "uuid"})
    assert rejection(schema, {"f0": "x"}, settings) == "the field f0: 'x' is not a UUID"
    plain = structs.replace(settings, logical_types=LogicalTypes.AS_CONNECTOR)
    assert written(schema, {"f0": "x"}, plain) == {"f0": "x"}


def test_a_default_that_is_no_uuid_is_dropped() -> None:
    field = {"name": "f0", "type": {"type": "string", "logicalType": "uuid"}, "default": ""}
    schema = {"type": "record", "name": "R", "fields": [field]}
    assert decoder(schema).schema.fields[0].schema.default is None


@pytest.mark.parametrize("settings", [AVRO, PARQUET])
def test_the_logical_type_uuid_of_a_fixed_that_is_none_is_ignored(settings: DatumSettings) -> None:
    schema = one_field({"type": "fixed", "name": "F", "size": 4, "logicalType": "uuid"})
    found = decoder(schema, settings)
    assert "logicalType" not in avro_schema(found.schema, settings)
    data = found.decode(pa.array(encode(schema, [{"f0": b"abcd"}]), pa.binary())).texts
    assert data.to_pylist() == [b"abcd"]
    if settings.is_parquet:
        assert ParquetTableReader(found.schema, settings).table(data).to_pylist() == [{"f0": b"abcd"}]


@pytest.mark.parametrize(("size", "precision"), [(1, 3), (2, None), (16, 39)])
def test_a_decimal_that_its_fixed_is_too_small_for_is_a_fixed_in_avro(size: int, precision: int | None) -> None:
    """Readers reject the whole object for a logical type that is not valid."""
    given = {} if precision is None else {"precision": precision}
    schema = one_field({"type": "fixed", "name": "F", "size": size, "logicalType": "decimal", **given})
    found = decoder(schema)
    data = found.decode(pa.array([bytes([1] * size)], pa.binary())).texts[0].as_py()
    text = fastavro.parse_schema(json.loads(avro_schema(found.schema, AVRO)))
    assert fastavro.schemaless_reader(io.BytesIO(data), text) == {"f0": bytes([1] * size)}


def test_a_decimal_with_the_largest_precision_of_its_fixed_is_a_decimal_in_avro() -> None:
    schema = one_field({"type": "fixed", "name": "F", "size": 16, "logicalType": "decimal", "precision": 38})
    found = decoder(schema)
    data = found.decode(pa.array([(10**38 - 1).to_bytes(16)], pa.binary())).texts[0].as_py()
    text = fastavro.parse_schema(json.loads(avro_schema(found.schema, AVRO)))
    assert fastavro.schemaless_reader(io.BytesIO(data), text) == {"f0": Decimal(10**38 - 1)}


@pytest.mark.parametrize("text", INVALID_UUIDS)
def test_a_text_that_python_alone_takes_for_a_uuid_is_a_data_error(text: str) -> None:
    reason = rejection(one_field({"type": "string", "logicalType": "uuid"}), {"f0": text}, PARQUET)
    assert reason.endswith("is not a UUID")


@pytest.mark.parametrize("text", ["12345678-1234-5678-1234-56781234567A", "1234567812345678123456781234567a"])
def test_a_uuid_may_have_capital_letters_and_no_hyphens(text: str) -> None:
    schema = one_field({"type": "string", "logicalType": "uuid"})
    assert written(schema, {"f0": text}, PARQUET) == {"f0": text}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (
            record(("v", "int"), ("a", record(("next", ["null", "R"]), name="A"))),
            "the field a.next: its schema is recursive",
        ),
        (record(("a", record(name="E"))), "the field a: the struct E has no fields"),
        (record(), "the whole value: the struct R has no fields"),
        (one_field({"type": "fixed", "name": "F", "size": 0}), "the field f0: the fixed F has the size 0"),
        (one_field(nested(50)), r"the field f0(\[\]){50}: it is nested deeper than 99 levels"),
        (one_field({"type": "array", "items": decimals(60, 39)}), r"the field f0\[\]: the scale of a decimal is 39"),
    ],
    ids=["recursion", "an empty struct", "an empty value", "an empty fixed", "deep lists", "a large scale"],
)
def test_a_schema_that_parquet_cannot_express_is_rejected_with_the_field(schema: Any, reason: str) -> None:
    decoder(schema)  # Avro can
    with pytest.raises(InvalidSchema, match=f"Parquet cannot express {reason}"):
        decoder(schema, PARQUET)


def test_a_value_that_is_no_struct_is_rejected_for_parquet() -> None:
    with pytest.raises(InvalidSchema, match="Parquet requires a struct as the whole value, but its schema is string"):
        decoder("string", PARQUET)


@pytest.mark.parametrize(
    ("logical_types", "expected"),
    [(LogicalTypes.ALL, {"type": "long", "logicalType": "timestamp-micros"}), (LogicalTypes.AS_CONNECTOR, "long")],
)
def test_logical_types_that_connect_does_not_know_are_kept_on_request(
    logical_types: LogicalTypes, expected: Any
) -> None:
    settings = DatumSettings(logical_types=logical_types)
    found = decoder(one_field({"type": "long", "logicalType": "timestamp-micros"}), settings)
    assert json.loads(avro_schema(found.schema, settings))["fields"][0]["type"] == expected


@pytest.mark.parametrize(
    ("kind", "wrap", "levels"),
    [
        (["R", "null"], lambda value: value, 1),
        ([{"type": "map", "values": "R"}, "null"], lambda value: {"k": value}, 2),
        (["int", "R", "null"], lambda value: ("R", value), 2),
    ],
    ids=["a struct", "a map", "a union"],
)
def test_data_of_the_maximum_depth_is_encoded_again(kind: Any, wrap: Any, levels: int) -> None:
    schema, value = record(("next", kind)), {"next": None}
    for _ in range(100 // levels - 1):
        value = {"next": wrap(value)}
    data = encode(schema, [value, {"next": wrap({"next": wrap(value)})}])
    assert [row for row, _ in decode(schema, data).rejected] == [1]
