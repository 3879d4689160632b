"""JSON with Connect's envelope: accepted values, JSON texts, fields, and the schema of each record."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.enums import DecimalFormat, OutputFormat, TimestampFormat
from sink_job.connect import logical_types, schema_cache
from sink_job.connect.json_encoder import JsonOptions, json_text
from sink_job.converters.base import Converted
from sink_job.json.connect_envelope import envelope_schema
from sink_job.json.connect_json import ConnectJsonConverter
from sink_job.records.fields import MISSING
from tests.unit.connect import strategies
from tests.unit.json.test_connect_envelope import as_json


def field(name: str, kind: str, logical_name: str | None = None, **more: Any) -> dict[str, Any]:
    return {"field": name, "type": kind, "name": logical_name, **more}


def struct(*fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields), **more}


LINE = struct(field("a", "int64"), field("b", "string", optional=True), name="Line", version=1)


def amount(scale: str) -> dict[str, Any]:
    return {"type": "bytes", "name": logical_types.DECIMAL, "parameters": {"scale": scale}}


def envelope(schema: object, payload: object) -> bytes:
    return json.dumps({"schema": schema, "payload": payload}).encode()


def convert(values: Sequence[bytes | None], *fields: str, **settings: Any) -> Converted:
    return ConnectJsonConverter(fields, **settings).convert(pa.array(values, pa.binary()))


def texts(found: Converted) -> list[bytes | None]:
    """The text of each row; None for a null or rejected row."""
    gone = {row for row, _ in found.rejected}
    if found.nulls is not None:
        gone |= set(found.nulls.nonzero()[0].tolist())
    return [None if row in gone else text for row, text in enumerate(found.values.to_pylist())]


def codes(found: Converted) -> list[int]:
    assert found.schemas is not None
    return [int(code) for code in found.schemas.codes]


def test_the_payload_becomes_json_in_the_order_of_the_schema() -> None:
    found = convert([envelope(LINE, {"b": "ä\n", "a": 1}), envelope(LINE, {"a": -2})])
    assert texts(found) == ['{"a":1,"b":"ä\\n"}'.encode(), b'{"a":-2,"b":null}']
    assert found.rejected == []


def test_records_with_equal_schemas_have_one_schema_whatever_its_text_is() -> None:
    spaced = json.dumps({"payload": {"a": 1}, "schema": LINE}, indent=1).encode()
    other = LINE | {"version": 2}
    found = convert([envelope(LINE, {"a": 1}), spaced, envelope(other, {"a": 1}), envelope(LINE, {"a": 2})])
    assert codes(found) == [0, 0, 1, 0]
    assert found.schemas is not None
    assert [schema.version for schema in found.schemas.schemas] == [1, 2]


def test_a_payload_without_a_schema_is_written_as_it_is() -> None:
    found = convert(
        [
            b'{"schema":null,"payload":{"b": 1.0, "a":[1e3]}}',
            b'{"schema":null,"payload":{\n"a":1}}',
            b'{"schema":null,"payload":5}',
            envelope(LINE, {"a": 1}),
        ],
        "a",
    )
    assert texts(found) == [b'{"b": 1.0, "a":[1e3]}', b'{"a":1}', b"5", b'{"a":1,"b":null}']
    assert codes(found) == [-1, -1, -1, 0]
    assert found.fields["a"] == [[1000.0], 1, MISSING, 1]


def test_tombstones_and_null_payloads_are_no_value() -> None:
    optional = LINE | {"optional": True}
    found = convert([None, b'{"schema":null,"payload":null}', envelope(optional, None), envelope(LINE, {"a": 1})])
    assert found.nulls is not None
    assert found.nulls.tolist() == [True, True, True, False]
    assert codes(found) == [-1, -1, 0, 1]


def test_a_null_payload_takes_the_default_of_its_schema() -> None:
    assert texts(convert([envelope({"type": "int32", "default": 7}, None)])) == [b"7"]


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (b"", 'the value is not an object of "schema" and "payload": '),
        (b"null", 'the value is not an object of "schema" and "payload": '),
        (b'{"a":1}', 'the value is not an object of "schema" and "payload": '),
        (b'{"schema":null,"payload":1,"more":2}', 'the value is not an object of "schema" and "payload": '),
        (b'{"schema":null,"payload":"\xff"}', "the value is not UTF-8 (byte 26)"),
        (b'{"schema":null,"payload":"\\ud800"}', 'the value is not an object of "schema" and "payload": '),
        (b'{"schema":null,"payload":' + b"[" * 5000 + b"]" * 5000 + b"}", ""),
        (b'{"schema":{"type":"x"},"payload":1}', "the schema of the envelope is invalid: "),
        (b'{"schema":5,"payload":1}', "the schema of the envelope is invalid: "),
        (b'{"schema":{"type":"double"},"payload":1e99999999999999999999}', "the payload cannot be read: "),
        (
            b'{"schema":{"type":"double","x":1e99999999999999999999},"payload":1}',
            "the schema of the envelope is not JSON",
        ),
        (envelope(amount("10000000000000000000"), 1), "the scale of a decimal must be an integer within "),
        (envelope(amount("1000000000"), 1), "the scale of a decimal must be an integer within "),
        (envelope(amount("0"), 1).replace(b": 1}", b": 1e999999999}"), "a decimal has more than 4,000 digits"),
        (envelope(LINE, {"a": "x"}), "the field a: a JSON value must be an integer"),
        (envelope(LINE, {"a": 2**63}), "the field a: the number 9223372036854775808 does not fit into 64 bits"),
        (envelope(LINE, {}), "the field a: a required value of type int64 is null or missing"),
        (envelope(LINE, None), "a required value of type struct is null or missing"),
    ],
)
def test_an_invalid_value_is_rejected_alone(value: bytes, error: str) -> None:
    found = convert([envelope(LINE, {"a": 1}), value, envelope(LINE, {"a": 2})], "a")
    [(row, reason)] = found.rejected
    assert row == 1
    assert reason.startswith(error)
    assert texts(found) == [b'{"a":1,"b":null}', None, b'{"a":2,"b":null}']
    assert found.fields["a"] == [1, MISSING, 2]


def test_logical_types_have_the_forms_of_the_options() -> None:
    schema = struct(
        field("d", "bytes", logical_types.DECIMAL, parameters={"scale": "2"}),
        field("t", "int64", logical_types.TIMESTAMP),
    )
    value = envelope(schema, {"d": "MDk=", "t": 1000})
    assert texts(convert([value])) == [b'{"d":"MDk=","t":1000}']
    options = JsonOptions(DecimalFormat.NUMERIC, TimestampFormat.ISO)
    assert texts(convert([value], options=options)) == [b'{"d":123.45,"t":"1970-01-01T00:00:01.000Z"}']


def test_fields_are_those_of_the_schema() -> None:
    nested = struct(field("in", "struct", fields=[field("x", "string", default="d")], optional=True))
    rows = [envelope(nested, {"in": {"x": "v"}, "y": 1}), envelope(nested, {"in": {}}), envelope(nested, {})]
    found = convert(rows, "in.x", "y")
    assert found.fields == {"in.x": ["v", "d", None], "y": [MISSING] * 3}


def test_output_bytes_writes_checked_values_as_they_came() -> None:
    values = [envelope(LINE, {"a": 1}), b'{"schema":null, "payload":\n1}', b"{}", None]
    found = convert(values, output=OutputFormat.BYTES)
    assert texts(found) == [*values[:2], None, None]


def test_a_number_that_is_too_large_for_its_float_is_rejected() -> None:
    """JsonConverter writes an infinity. An infinity has its own form in JSON."""
    single = struct(field("a", "float"))
    found = convert([envelope(single, {"a": 1e300}), envelope(single, {"a": "Infinity"})])
    assert texts(found) == [None, b'{"a":"Infinity"}']
    assert found.rejected == [(0, "the field a: a number does not fit into 32 bits")]


def test_a_default_that_is_too_large_for_its_float_makes_the_schema_invalid() -> None:
    found = convert([envelope(struct(field("a", "float", default=-1e300)), {"a": 1})])
    assert texts(found) == [None]
    assert "a default does not conform to its schema: a number does not fit into 32 bits" in found.rejected[0][1]


def test_the_memory_of_compiled_schemas_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = 2**20
    monkeypatch.setattr(schema_cache, "MAX_CACHE_SIZE", limit)
    converter = ConnectJsonConverter()
    fields = [field(str(n), "int8", optional=True) for n in range(100)]
    rows = [envelope(struct(*fields, doc=str(n)), {}) for n in range(20)]
    tracemalloc.start()
    try:
        texts = {converter.convert(pa.array([row], pa.binary())).values[0].as_py() for row in rows}
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(texts) == 1
    assert limit / 4 < kept < limit * 1.25


def test_a_schema_that_is_larger_than_the_cache_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_cache, "MAX_CACHE_SIZE", 1000)
    assert texts(convert([envelope(LINE, {"a": 1}), envelope(LINE, {"a": 2})])) == [
        b'{"a":1,"b":null}',
        b'{"a":2,"b":null}',
    ]


@given(st.data())
def test_any_value_under_any_schema_becomes_the_json_of_jsonconverter(data: st.DataObject) -> None:
    rows = []
    for _ in range(data.draw(st.integers(1, 3))):
        schema = data.draw(strategies.schemas(3))
        rows.append((schema, json_text(schema, data.draw(strategies.values(schema, full=True)))))
    parts = [(json.dumps(as_json(schema)).encode(), text) for schema, text in rows]
    found = convert([b'{"schema":%b,"payload":%b}' % part for part in parts])
    assert texts(found) == [text for _, text in parts]
    assert found.schemas is not None
    assert [found.schemas.schemas[code] for code in found.schemas.codes] == [envelope_schema(text) for text, _ in parts]


@given(
    st.lists(st.binary(max_size=30) | st.just(envelope(LINE, {"a": 1, "b": "x"})), min_size=1, max_size=3), st.data()
)
def test_mutated_values_are_rejected_or_become_one_json_text(batch: list[bytes], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(batch[0])))
    batch[0] = batch[0][:start] + data.draw(st.binary(max_size=3)) + batch[0][start + data.draw(st.integers(0, 3)) :]
    found = convert(batch, "a")
    for text in texts(found):
        assert text is None or (b"\n" not in text and json.loads(text) is not None)
    alone = [convert([value], "a") for value in batch]
    assert texts(found) == [texts(one)[0] for one in alone]
    assert found.fields["a"] == [one.fields["a"][0] for one in alone]
