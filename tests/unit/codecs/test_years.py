"""Dates and timestamps outside the years 1 to 9999 are data errors in Avro and Parquet objects: readers overflow."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from sink_job.api.enums import OutputFormat, TimeUnit
from sink_job.connect.output_settings import DatumSettings
from sink_job.parquet.table_reader import ParquetTableReader
from tests.unit.avro.avro_data import datum, encode, in_wire_format, record
from tests.unit.avro.test_passthrough import both_ways, decode, decoder
from tests.unit.codecs.test_datums import convert_json
from tests.unit.envelope.enveloped import Consumed, pipeline, prepare
from tests.unit.envelope.test_envelope import AVRO, FLIGHT, TABLE
from tests.unit.json.typed.test_converter import convert

OUTPUTS = {
    "Avro": DatumSettings(),
    "Parquet, Micros": DatumSettings(OutputFormat.PARQUET, time_unit=TimeUnit.MICROS),
    "Parquet, AsSchema": DatumSettings(OutputFormat.PARQUET, time_unit=TimeUnit.AS_SCHEMA),
}
DAY_MS = 86_400_000
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
FIRST_MS, LAST_MS = FIRST_DAY * DAY_MS, (LAST_DAY + 1) * DAY_MS - 1
BOUNDS = {
    "date": ("int", FIRST_DAY, LAST_DAY),
    "timestamp-millis": ("long", FIRST_MS, LAST_MS),
    "timestamp-micros": ("long", FIRST_MS * 1000, LAST_MS * 1000 + 999),
    "local-timestamp-millis": ("long", FIRST_MS, LAST_MS),
    "local-timestamp-micros": ("long", FIRST_MS * 1000, LAST_MS * 1000 + 999),
}
SHAPES: dict[str, tuple[Any, Any]] = {
    "a field": (lambda of: of, lambda value: value),
    "a nullable field": (lambda of: ["null", of], lambda value: value),
    "a nested field": (lambda of: record(("g", of), name="Inner"), lambda value: {"g": value}),
    "a list": (lambda of: {"type": "array", "items": of}, lambda value: [0, value]),
    "a map": (lambda of: {"type": "map", "values": of}, lambda value: {"k": value}),
    "a member of a union": (lambda of: ["string", of], lambda value: value),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("output", OUTPUTS)
def test_avro_times_outside_the_years_1_to_9999_are_data_errors(output: str, name: str, shape: str) -> None:
    kind, first, last = BOUNDS[name]
    of_type, of_value = SHAPES[shape]
    schema = record(("f", of_type({"type": kind, "logicalType": name})))
    data = encode(schema, [{"f": of_value(value)} for value in (first, first - 1, last, last + 1)])
    both_ways(schema, data, OUTPUTS[output])
    rejected = decode(schema, data, settings=OUTPUTS[output]).rejected
    assert [row for row, _ in rejected] == [1, 3]
    assert f"{last + 1} is outside the range of {name}, the years 1 to 9999" in rejected[1][1]


@pytest.mark.parametrize("output", ["Parquet, Micros", "Parquet, AsSchema"])
@pytest.mark.parametrize("name", BOUNDS)
def test_the_first_and_the_last_time_are_in_parquet_as_they_are(output: str, name: str) -> None:
    kind, first, last = BOUNDS[name]
    schema = record(("f", {"type": kind, "logicalType": name}))
    found = decoder(schema, OUTPUTS[output])
    data = found.decode(pa.array(encode(schema, [{"f": first}, {"f": last}]), pa.binary()))
    years = [each.year for each in ParquetTableReader(found.schema, OUTPUTS[output]).table(data.texts)["f"].to_pylist()]
    assert years == [1, 9999]


@pytest.mark.parametrize("rows", [1, 100])
@pytest.mark.parametrize("value", [LAST_MS + 1, 2**63 - 1, -(2**63), '"0001-01-01T00:00:00+00:01"'])
def test_json_timestamps_outside_the_years_1_to_9999_are_data_errors(rows: int, value: object) -> None:
    texts = [b'{"f": 0}'] * (rows - 1) + [b'{"f": %b}' % str(value).encode()]
    found = convert(record(("f", {"type": "long", "logicalType": "timestamp-millis"})), *texts)
    ((row, reason),) = found.rejected
    assert row == rows - 1
    assert "is outside the range of timestamp-millis, the years 1 to 9999" in reason


@pytest.mark.parametrize(
    "settings",
    [{"output": "Avro"}, {"output": "Parquet"}, {"output": "Parquet", "parquet": {"timeUnit": "AsSchema"}}],
    ids=["Avro", "Parquet", "Parquet, AsSchema"],
)
def test_a_record_with_a_timestamp_outside_the_years_1_to_9999_is_a_data_error_in_an_envelope(
    settings: dict[str, Any],
) -> None:
    value = in_wire_format(1, datum(FLIGHT, {"number": 1, "carrier": None}))
    found = pipeline(TABLE, **AVRO, **settings)
    times = (0, LAST_MS, LAST_MS + 1, -1, 2**63 - 1, -(2**63), FIRST_MS)
    prepared = prepare(found, [Consumed(value, None, None, time, 0) for time in times])
    assert [each.row for each in prepared.errors] == [2, 4, 5]
    assert prepared.errors[0].message == (
        f"the timestamp of the record, {LAST_MS + 1} ms, is outside the years 1 to 9999"
    )


@pytest.mark.parametrize("text", [b'{"a": "\\ud800"}', b'{"a": "\\ud800x"}', b'{"\\ud83d": 1}'])
def test_the_error_for_a_lone_surrogate_names_it(text: bytes) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    ((_, reason),) = convert_json(schema, [text]).rejected
    assert reason == "schema 1: the value is not JSON: a string has a surrogate that is not part of a pair"
