"""The property with which readers find columns by name."""

from __future__ import annotations

import pytest
from pyiceberg.table.name_mapping import create_mapping_from_schema, parse_mapping_from_json

from sink_job.api.errors import TableIncompatible
from sink_job.tables.avro_objects.name_mapping import NameMapping
from tests.unit.tables.avro_objects.avro_tables import NESTED

TEXT = '[{"field-id":1,"names":["a","b"],"fields":[{"field-id":2,"names":["x"]}]},{"names":["gone"]}]'


def test_it_is_that_of_icebergs_clients() -> None:
    text = create_mapping_from_schema(NESTED).model_dump_json()
    mapping = NameMapping.parse(text)
    assert parse_mapping_from_json(mapping.text) == parse_mapping_from_json(text)
    assert mapping.ids == NESTED.field_ids


def test_a_name_is_found_in_the_column_that_contains_it() -> None:
    mapping = NameMapping.parse(TEXT)
    found = [mapping.find(*each) for each in ((None, "b"), (1, "x"), (None, "gone"), (None, "x"), (7, "x"))]
    assert [None if each is None else each.number for each in found] == [1, 2, None, None, None]
    assert [each is None for each in found] == [False, False, False, True, True]
    assert [[*mapping.names(each)] for each in (1, 2, 3)] == [["a", "b"], ["x"], []]


def test_names_are_added_and_none_is_taken_from_another_column() -> None:
    mapping = NameMapping.parse(TEXT)
    for each in ((None, "c", 1), (1, "y", 3), (3, "z", 4), (None, "new", 5), (None, "a", 5), (1, "a", 5), (8, "q", 9)):
        mapping.add(*each)
    assert mapping.text == (
        '[{"names":["a","b","c"],"field-id":1,"fields":[{"names":["x"],"field-id":2},{"names":["y"],"field-id":3,'
        '"fields":[{"names":["z"],"field-id":4}]}]},{"names":["gone"]},{"names":["new"],"field-id":5}]'
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[", "Input data was truncated"),
        ('{"names": []}', "Expected `array`"),
        ('[{"names":["a"],"field-id":1},{"names":["b","a"],"field-id":2}]', "it has the name a twice"),
        ('[{"names":["a"],"field-id":1,"fields":[{"names":["b"],"field-id":1}]}]', "it has the field id 1 twice"),
        ('[{"names":["a"],"field-id":-1}]', "Expected `int` >= 0"),
        ('[{"names":[],"fields":' * 102 + "[]" + "}]" * 102, "it has more than 100 levels"),
        ('[{"names":[],"fields":' * 100_000, "recursion"),
    ],
)
def test_a_mapping_that_cannot_be_read_is_rejected(text: str, reason: str) -> None:
    with pytest.raises(TableIncompatible) as error:
        NameMapping.parse(text)
    assert str(error.value).startswith("the property schema.name-mapping.default of the table cannot be read: ")
    assert reason in str(error.value)
