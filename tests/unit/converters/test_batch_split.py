"""Values whose JSON text is many times larger than they are: long names in the schema, small items in the value."""

from __future__ import annotations

import io
import json
import tracemalloc
from typing import Any

import fastavro
import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sink_job.arrow import columns as arrow_columns
from sink_job.avro.converter import AvroDecoder
from sink_job.connect import json_size
from sink_job.connect.json_encoder import DEFAULT_OPTIONS
from sink_job.connect.json_size import TextLimit, is_longer
from sink_job.connect.schema import RegisteredSchema
from sink_job.converters import batch_split
from sink_job.json.connect_json import ConnectJsonConverter
from sink_job.protobuf.converter import decoder_of

NAME = "n" * 10_000
ITEMS = 20_000
REASON = "its text would be larger than 64 MiB"


def avro(item: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": "items", "type": {"type": "array", "items": item}}]}


FIELD = avro({"type": "record", "name": "I", "fields": [{"name": NAME, "type": "boolean"}]})
SYMBOL = avro({"type": "enum", "name": "E", "symbols": [NAME]})
PROTO = f'syntax = "proto3"; message I {{ bool {NAME} = 1; }} message R {{ repeated I items = 1; }}'


def avro_decoder(schema: Any, fields: tuple[str, ...] = ()) -> AvroDecoder:
    return AvroDecoder(RegisteredSchema("1", "AVRO", json.dumps(schema)), fields, DEFAULT_OPTIONS)


def datum(schema: Any, item: Any, count: int) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), {"items": [item] * count})
    return out.getvalue()


@pytest.mark.parametrize(("schema", "item"), [(FIELD, {NAME: True}), (SYMBOL, NAME)], ids=["field", "symbol"])
def test_a_value_of_avro_with_long_names_is_rejected_without_its_text(schema: Any, item: Any) -> None:
    decoder, large, small = avro_decoder(schema, ("items",)), datum(schema, item, ITEMS), datum(schema, item, 1)
    tracemalloc.start()
    try:
        found = decoder.decode(pa.array([small] * 20 + [large] + [small] * 20, pa.binary()))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    ((row, reason),) = found.rejected
    assert row == 20
    assert reason.startswith(REASON)
    assert [json.loads(text) for at, text in enumerate(found.texts.to_pylist()) if at != row] == [
        {"items": [item]}
    ] * 40
    assert peak < 40 * 1024**2


def test_a_message_of_protobuf_with_long_names_is_rejected() -> None:
    decoder = decoder_of(RegisteredSchema("1", "PROTOBUF", PROTO), "R", (), DEFAULT_OPTIONS)
    found = decoder.decode(pa.array([b"\x0a\x00"] * 20 + [b"\x0a\x00" * ITEMS], pa.binary()))
    ((row, reason),) = found.rejected
    assert row == 20
    assert REASON in reason
    assert found.texts[0].as_py() == b'{"items":[{"%b":false}]}' % NAME.encode()


def test_a_value_with_an_envelope_with_long_names_is_rejected() -> None:
    item = {"type": "struct", "fields": [{"field": NAME, "type": "boolean", "optional": True}]}
    schema = {"type": "array", "items": item}
    values = [json.dumps({"schema": schema, "payload": [{}] * count}).encode() for count in (1, ITEMS)]
    ((row, reason),) = ConnectJsonConverter().convert(pa.array(values, pa.binary())).rejected
    assert row == 1
    assert reason.startswith(REASON)


def test_a_value_with_a_text_of_the_maximum_length_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder, data = avro_decoder(FIELD), datum(FIELD, {NAME: True}, 3)
    length = len(decoder.decode(pa.array([data])).texts[0].as_py())
    for module in (json_size, batch_split):
        monkeypatch.setattr(module, "MAX_TEXT", length)
    assert decoder.decode(pa.array([data])).rejected == []
    monkeypatch.setattr(json_size, "MAX_TEXT", length - 1)
    assert len(decoder.decode(pa.array([data])).rejected) == 1


def test_a_batch_in_halves_has_the_same_result_as_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = avro("long")
    rows = [datum(schema, n, n) for n in range(50)]
    rows[7] = rows[33] = b"\x02"
    payload, decoder = pa.array(rows, pa.binary()), avro_decoder(schema, ("items",))
    whole = decoder.decode(payload)
    monkeypatch.setattr(batch_split, "MAX_TEXTS", 10_000)
    found = decoder.decode(payload)
    assert (found.texts, found.rejected, found.fields) == (whole.texts, whole.rejected, whole.fields)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@settings(max_examples=50)
@given(JSON)
def test_the_length_of_a_text_is_exact(value: Any) -> None:
    length = len(msgspec.json.encode(value))
    assert not is_longer(value, length)
    assert is_longer(value, length - 1)


def test_the_bound_is_not_below_the_length_of_a_text() -> None:
    for schema, item in ((FIELD, {NAME: True}), (SYMBOL, NAME)):
        decoder = avro_decoder(schema)
        for count in (0, 1, 100):
            data = datum(schema, item, count)
            length = len(decoder.decode(pa.array([data])).texts[0].as_py())
            assert TextLimit(decoder.schema, is_avro=True).bound(len(data)) >= length


def test_a_column_that_is_too_large_is_an_error() -> None:
    value = bytes(2**20)  # the same value many times: they are not copied
    with pytest.raises(arrow_columns.ColumnTooLarge, match=r"Reduce spec\.rounds\.maxRecords"):
        arrow_columns.binaries([value] * 2**11)
