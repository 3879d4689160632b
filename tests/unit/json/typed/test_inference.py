"""The schema of JSON values that is inferred from some of them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sink_job.api.enums import OutputFormat
from sink_job.avro.encoder import datum_encoder
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.json_decoder import decode_json
from sink_job.connect.output_settings import DatumSettings
from sink_job.json.typed.decoder import TextReading
from sink_job.json.typed.field_list import FieldType, fields_schema
from sink_job.json.typed.inference import MAX_DEPTH, MAX_NAMES, SampledValues, inferred_fields


def observed(*values: Any) -> SampledValues:
    found = SampledValues()
    for value in values:
        found.add(decode_json(json.dumps(value)))
    return found


def fields(*values: Any) -> dict[str, Any]:
    """The inferred fields of objects: types by name, without `optional`, which each of them must have."""
    return _plain(inferred_fields(observed(*values).properties))


def _plain(found: tuple[FieldType, ...]) -> dict[str, Any]:
    return {str(each.name): _type(each) for each in found}


def _type(each: FieldType) -> Any:
    assert each.optional
    if each.fields is not None:
        return _plain(each.fields)
    return [_type(each.items)] if each.items is not None else each.type


def test_each_kind_of_value_has_its_type() -> None:
    value = {"i": 1, "f": 1.5, "b": True, "s": "x", "a": [1], "o": {"x": "y"}, "deep": [[{"n": 0}]]}
    assert fields(value) == {
        "i": "int64",
        "f": "float64",
        "b": "boolean",
        "s": "string",
        "a": ["int64"],
        "o": {"x": "string"},
        "deep": [[{"n": "int64"}]],
    }


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, -(2**63), 2**63 - 1], "int64"),
        ([1, 2**63], "float64"),
        ([1, 2.5], "float64"),
        ([1.0], "float64"),
        ([10**400], "json"),
        ([1, None], "int64"),
        ([None], "json"),
        ([1, "x"], "json"),
        ([True, 1], "json"),
        ([[], [None]], ["json"]),
        ([[]], ["json"]),
        ([[], [1], [None, 2]], ["int64"]),
        ([[1], ["x"]], ["json"]),
        ([[1], {"x": 1}], "json"),
        ([{}], "json"),
        ([{}, {"x": 1}], {"x": "int64"}),
        ([{"x": 1}, {"y": None}], {"x": "int64", "y": "json"}),
    ],
)
def test_values_of_a_field_have_one_type(values: list[Any], expected: Any) -> None:
    assert fields(*({"f": value} for value in values)) == {"f": expected}


def test_a_number_that_is_no_float_is_json() -> None:
    found = SampledValues()
    found.add(decode_json('{"f": 1e400}'))
    assert [each.type for each in inferred_fields(found.properties)] == ["json"]


def test_fields_are_in_the_order_of_their_first_occurrence() -> None:
    assert [*fields({"b": 1, "c": 1}, {"a": 1, "b": 1})] == ["b", "c", "a"]


def test_an_object_with_names_as_data_is_json() -> None:
    names = {str(number): number for number in range(MAX_NAMES + 1)}
    assert fields({"map": names}) == {"map": "json"}
    assert len(fields(names)) == MAX_NAMES + 1


def test_what_is_nested_too_deeply_is_json() -> None:
    found: Any = fields({"f": json.loads("[" * 100 + "1" + "]" * 100)})["f"]
    for _ in range(MAX_DEPTH - 1):
        (found,) = found
    assert found == "json"


def test_a_field_without_a_name_is_left_out() -> None:
    assert fields({"": 1, "a": 1, "o": {"": 1}}) == {"a": "int64", "o": "json"}


# -- properties --------------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c", "d-e", "é"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.lists(st.dictionaries(NAMES, VALUES, max_size=4), min_size=1, max_size=6)
OUTPUTS = st.sampled_from([OutputFormat.AVRO, OutputFormat.PARQUET])


@given(values=OBJECTS, output=OUTPUTS)
def test_an_inferred_schema_accepts_every_value_that_was_observed(values: list[Any], output: OutputFormat) -> None:
    schema = fields_schema(inferred_fields(observed(*values).properties))
    reading = TextReading(schema, is_bare_json=True)
    try:
        encode = datum_encoder(schema, DatumSettings(output))
    except InvalidSchema as error:
        assert "no fields" in str(error) or not schema.fields  # noqa: PT017 - objects without properties alone
        return
    for value in values:
        encode(reading.read(json.dumps(value).encode()))


@given(values=OBJECTS, split=st.integers(0, 6))
@example(values=[{"b": []}, {"b": {}}, {"b": False}], split=1)
def test_merged_observations_are_those_of_all_values(values: list[Any], split: int) -> None:
    merged = observed(*values[:split])
    merged.merge(observed(*values[split:]))
    assert merged == observed(*values)


@given(values=OBJECTS)
def test_the_order_of_values_changes_the_order_of_fields_only(values: list[Any]) -> None:
    assert fields(*values) == fields(*reversed(values))


@given(values=OBJECTS)
def test_an_observation_is_the_same_after_its_way_to_the_driver(values: list[Any]) -> None:
    found = observed(*values)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=SampledValues) == found


def test_a_field_with_values_of_several_types_is_a_doubt_in_any_order() -> None:
    def observed(*values: Any) -> SampledValues:
        found = SampledValues()
        for each in values:
            found.add({"a": {"b": [each]}})
        return found

    doubt = ["a.b[] has values of several types (int64, string) and is JSON text"]
    assert list(observed(*range(10), "x").doubts()) == doubt
    for one, other in ((observed(1, 2), observed("x")), (observed("x"), observed(1)), (observed(1, "x"), observed(2))):
        one.merge(other)
        assert list(one.doubts()) == doubt
    assert list(observed(1, 2.5, None).doubts()) == []


def test_fields_whose_names_differ_by_case_only_are_a_doubt() -> None:
    found = SampledValues()
    found.add({"s": {"id": 1, "Id": 2}, "id": 3})
    assert list(found.doubts()) == [
        "s.id and s.Id differ by case only, which Athena, Hive and Spark do not distinguish"
    ]
