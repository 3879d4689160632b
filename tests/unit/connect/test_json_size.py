"""The length of the JSON text of a value: exact where it is computed, and never above the bound."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sink_job.connect import json_size
from sink_job.connect.errors import InvalidValue
from sink_job.connect.json_encoder import json_text
from sink_job.connect.json_size import MAX_TEXT, TextLimit, is_longer
from sink_job.connect.schema import Default, Field, Schema, SchemaType

TEXT = Schema(SchemaType.STRING)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


def struct(**fields: Schema) -> Schema:
    return Schema(SchemaType.STRUCT, fields=tuple(Field(name, of) for name, of in fields.items()))


def array(items: Schema) -> Schema:
    return Schema(SchemaType.ARRAY, values=items)


@given(VALUES)
def test_the_length_is_that_of_the_text(value: object) -> None:
    length = len(msgspec.json.encode(value))
    assert is_longer(value, length - 1)
    assert not is_longer(value, length)


LONG_NAME = "a_name_that_is_much_longer_than_its_value"


@pytest.mark.parametrize(
    ("schema", "value", "size"),
    [
        (array(struct(**{LONG_NAME: TEXT})), [{LONG_NAME: ""}] * 100, 100),
        (TEXT, "\x01" * 100, 100),
        (array(Schema(SchemaType.FLOAT64)), [-1.2345678901234567e-300] * 100, 800),
        (
            Schema(SchemaType.MAP, keys=TEXT, values=struct(**{LONG_NAME: TEXT})),
            {f"{n}": {LONG_NAME: ""} for n in range(100)},
            190 + 200,
        ),
        (array(Schema(SchemaType.STRING, default=Default('"a long default"'))), [None] * 100, 100),
        (struct(a=Schema(SchemaType.STRING, optional=True)), {"a": None}, 0),
    ],
)
def test_no_text_is_longer_than_the_bound_of_its_size(schema: Schema, value: object, size: int) -> None:
    assert len(json_text(schema, value)) <= TextLimit(schema).bound(size)


@pytest.mark.parametrize("fields", [1, 2, 50])
def test_an_avro_struct_has_a_byte_for_each_field_and_so_a_smaller_bound(fields: int) -> None:
    schema = array(struct(**{f"{LONG_NAME}{n}": TEXT for n in range(fields)}))
    value = [{f"{LONG_NAME}{n}": "" for n in range(fields)}] * 20
    assert len(json_text(schema, value)) <= TextLimit(schema, is_avro=True).bound(20 * fields)
    if fields > 2:
        assert TextLimit(schema, is_avro=True).bound(1000) < TextLimit(schema).bound(1000)


def test_a_recursive_schema_repeats_each_of_its_types() -> None:
    reference = Schema(SchemaType.REFERENCE, "Node", optional=True)
    texts = [Field(f"{LONG_NAME}{n}", TEXT) for n in range(9)]
    node = Schema(SchemaType.STRUCT, "Node", fields=(Field("next", reference), *texts))
    value: Any = None
    for _ in range(30):
        value = {"next": value, **{f"{LONG_NAME}{n}": "" for n in range(9)}}
    assert len(json_text(node, value)) <= TextLimit(node, is_avro=True).bound(30 * 10)


@settings(max_examples=20)
@given(st.integers(0, 60))
def test_exactly_texts_above_the_maximum_are_rejected(count: int) -> None:
    limit, value = TextLimit(array(TEXT)), ["x"] * count
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_size, "MAX_TEXT", 101)
        text = msgspec.json.encode(value)
        if len(text) > 101:
            with pytest.raises(InvalidValue, match="larger than 64 MiB"):
                limit.encode(value, count)
        else:
            assert limit.encode(value, count) == text
    assert MAX_TEXT == 64 << 20
