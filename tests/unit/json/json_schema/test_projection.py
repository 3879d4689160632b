"""Any JSON is projected to JSON, whether it conforms to its schema or not."""

from __future__ import annotations

import json

from hypothesis import assume, given
from hypothesis import strategies as st

from sink_job.connect.json_encoder import json_text
from sink_job.connect.projection import can_project
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.json.json_schema.projection import text_projector
from sink_job.json.json_schema.to_connect import ONE_OF
from tests.unit.connect import strategies

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcde"), inner, max_size=4),
    max_leaves=12,
)


def in_union(*schemas: Schema) -> Schema:
    fields = tuple(Field(f"{ONE_OF}.field.{n}", schema) for n, schema in enumerate(schemas))
    return Schema(SchemaType.STRUCT, ONE_OF, fields=fields)


@given(strategies.schema_pairs(), strategies.schema_pairs(), JSON, st.booleans())
def test_any_json_becomes_json_in_one_line(
    pair: tuple[Schema, Schema], other: tuple[Schema, Schema], value: object, is_union: bool
) -> None:
    source, target = (in_union(*each) for each in zip(pair, other, strict=True)) if is_union else pair
    assume(can_project(source, target) is None)
    found = text_projector(source, target)(json.dumps(value, indent=1).encode())
    json.loads(found)
    assert b"\n" not in found


@given(strategies.schemas(3), st.data())
def test_json_that_conforms_to_its_schema_is_equal_under_the_same_schema(schema: Schema, data: st.DataObject) -> None:
    value = data.draw(strategies.values(schema, full=True))
    assume(value is not None)
    text = json_text(schema, value)
    assert json.loads(text_projector(schema, schema)(text)) == json.loads(text)
