"""Properties that a schema lacks: nothing of a value is lost between its columns and `_unknown`."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.enums import UnknownFields
from sink_job.connect.json_decoder import decode_json
from sink_job.json.typed.decoder import TextReading
from sink_job.json.typed.field_list import FieldType, fields_schema
from sink_job.json.typed.inference import SampledValues, inferred_fields

NAMES = st.sampled_from("abcd")
VALUES = st.recursive(
    st.none() | st.integers(0, 9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.lists(st.dictionaries(NAMES, VALUES, max_size=4), min_size=1, max_size=4)


def without(fields: tuple[FieldType, ...], choose: Any) -> tuple[FieldType, ...]:
    """The fields without some of them, at any depth."""
    return tuple(_pruned(each, choose) for each in fields if choose(st.booleans()))


def _pruned(field: FieldType, choose: Any) -> FieldType:
    items = None if field.items is None else _pruned(field.items, choose)
    fields = None if field.fields is None else without(field.fields, choose)
    return FieldType(field.name, field.type, fields, items, optional=True)


def restored(row: dict[str, Any]) -> Any:
    """A row as the JSON value that it was made of."""
    unknown = json.loads(row.pop("_unknown", None) or "{}")
    return put(parsed(row), unknown)


def parsed(value: Any) -> Any:
    """The values have no texts, so each text is that of a column of the type json."""
    if isinstance(value, dict):
        return {name: parsed(each) for name, each in value.items()}
    if isinstance(value, list):
        return [parsed(each) for each in value]
    return json.loads(value) if isinstance(value, str) else value


def put(value: Any, unknown: dict[str, Any]) -> Any:
    """The value with unknown properties at their paths."""
    if isinstance(value, list):
        return [put(each, unknown.get(str(at), {})) for at, each in enumerate(value)]
    for name, each in unknown.items():
        value[name] = put(value[name], each) if value.get(name) is not None else each
    return value


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


@given(values=OBJECTS, data=st.data())
def test_columns_and_unknown_properties_are_the_whole_value(values: list[Any], data: st.DataObject) -> None:
    observed = SampledValues()
    for value in values:
        observed.add(decode_json(json.dumps(value)))
    fields = without(inferred_fields(observed.properties), data.draw)
    keeping = TextReading(fields_schema(fields), UnknownFields.JSON, is_bare_json=True)
    for value in values:
        row = keeping.read(json.dumps(value).encode())
        assert isinstance(row, dict)
        assert without_nulls(restored(row)) == without_nulls(value)


@given(values=OBJECTS)
def test_a_value_under_its_own_schema_has_no_unknown_property(values: list[Any]) -> None:
    for value in values:
        observed = SampledValues()
        observed.add(decode_json(json.dumps(value)))
        dropping = TextReading(
            fields_schema(inferred_fields(observed.properties)), UnknownFields.DROP, is_bare_json=True
        )
        dropping.read(json.dumps(value).encode())
        assert dropping.dropped == 0
