"""JSON values whose data are far larger than they are: large defaults in the schema, small items in the value."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from sink_job.api.enums import ConverterType, OutputFormat
from sink_job.avro import value_encoders
from sink_job.avro.encoder import can_take_defaults, datum_encoder
from sink_job.avro.passthrough import projected_datums
from sink_job.codecs.converters import converter_for
from sink_job.connect.errors import InvalidFieldValue
from sink_job.connect.schema import Default, Field, Schema, SchemaType
from sink_job.converters.base import BatchSource, Converted
from sink_job.converters.registered import SchemaSettings
from sink_job.json.typed import column_encoder as typed_column_encoder
from tests.unit.avro.test_to_connect import translated
from tests.unit.codecs.test_datums import AVRO
from tests.unit.json.typed.test_converter import convert

DEFAULT = "x" * 100_000
COUNT = 1_000
REASON = "the field l: its data are larger than 64 MiB: the defaults in its schema are repeated too often"


def record(kind: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": "l", "type": kind}]}


ITEM = {"type": "record", "name": "I", "fields": [{"name": "s", "type": "string", "default": DEFAULT}]}
ARRAY = record({"type": "array", "items": ITEM})
MAP = record({"type": "map", "values": ITEM})
DEEP = record({"type": "array", "items": {"type": "array", "items": ITEM}})


def envelope(payload: str) -> Converted:
    """A value of the converter ConnectJson: its producer chooses the default."""
    fields = [{"field": "s", "type": "string", "default": DEFAULT}]
    schema = {
        "type": "struct",
        "fields": [{"field": "l", "type": "array", "items": {"type": "struct", "fields": fields}}],
    }
    settings = SchemaSettings(output=OutputFormat.AVRO, datums=AVRO)
    converter = converter_for(ConverterType.CONNECT_JSON, (), output=OutputFormat.AVRO, schemas=settings)
    text = f'{{"schema": {json.dumps(schema)}, "payload": {payload}}}'.encode()
    return converter.convert(pa.array([text], pa.binary()), BatchSource("t"))


@pytest.mark.parametrize("rows", [1, 10])
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (ARRAY, {"l": [{}] * COUNT}),
        (MAP, {"l": {str(number): {} for number in range(COUNT)}}),
        (DEEP, {"l": [[{}] * 10] * (COUNT // 10)}),
    ],
    ids=["array", "map", "nested arrays"],
)
def test_a_value_with_too_many_defaults_is_rejected(schema: Any, value: Any, rows: int) -> None:
    found = convert(schema, *[json.dumps(value).encode()] * rows)
    assert found.rejected == [(row, REASON) for row in range(rows)]


def test_an_envelope_with_too_many_defaults_is_rejected() -> None:
    assert envelope(json.dumps({"l": [{}] * COUNT})).rejected == [(0, REASON)]
    assert envelope('{"l": [{}]}').rejected == []


@pytest.mark.parametrize("rows", [1, 10])
def test_arrays_without_defaults_have_no_limit(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (value_encoders, typed_column_encoder):
        monkeypatch.setattr(module, "MAX_REPEATED", 100)
    found = convert(record({"type": "array", "items": "string"}), *[json.dumps({"l": [DEFAULT]}).encode()] * rows)
    assert found.rejected == []
    assert len(found.values[0].as_py()) > len(DEFAULT)


@pytest.mark.parametrize("is_nested", [False, True])
def test_a_map_with_too_many_defaults_in_its_keys_is_rejected(is_nested: bool) -> None:
    name = Field("s", Schema(SchemaType.STRING, default=Default(json.dumps(DEFAULT))))
    keys = Schema(SchemaType.STRUCT, "K", fields=(Field("n", Schema(SchemaType.INT32)), name))
    kind = Schema(SchemaType.MAP, keys=keys, values=Schema(SchemaType.INT32))
    entries: Any = [({"n": number}, number) for number in range(COUNT)]
    if is_nested:
        kind, entries = Schema(SchemaType.ARRAY, values=kind), [[entry] for entry in entries]
    with pytest.raises(InvalidFieldValue, match="repeated too often"):
        datum_encoder(kind, AVRO)(entries)


def test_recursion_and_nested_defaults_are_found() -> None:
    text = Schema(SchemaType.STRING)
    assert not can_take_defaults(Schema(SchemaType.ARRAY, values=text))
    assert can_take_defaults(Schema(SchemaType.ARRAY, values=Schema(SchemaType.REFERENCE, "R")))


def test_a_projected_value_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unexpected error in the middle of a round would end the driver at each start."""
    monkeypatch.setattr(value_encoders, "MAX_REPEATED", 1_000)
    item = {"type": "record", "name": "I", "fields": [{"name": "a", "type": "int"}]}
    newer = {**item, "fields": [*item["fields"], {"name": "s", "type": "string", "default": "x" * 100}]}
    source, target = (translated(record({"type": "array", "items": each})) for each in (item, newer))
    (data,) = projected_datums([{"l": [{"a": 1}] * 100}], source, target, AVRO).to_pylist()
    assert len(data) > 100 * 100
    with pytest.raises(InvalidFieldValue, match="repeated too often"):
        datum_encoder(target, AVRO)({"l": [{"a": 1, "s": "x" * 100}] * 100})
