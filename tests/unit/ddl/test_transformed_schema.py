"""The schema that transforms make of the schema of a topic."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from sink_job.api.errors import ConfigurationError
from sink_job.api.sections.transforms_section import TransformSpec
from sink_job.connect.errors import InvalidSchema, InvalidValue
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.ddl.transformed_schema import transformed_schema
from sink_job.json.connect_envelope import envelope_schema, payload_reader
from sink_job.transforms.base import RecordOrigin
from sink_job.transforms.factory import transform_of
from sink_job.transforms.typed_values import TypedValue
from tests.support import typed_values
from tests.support.change_events import change_event

TEXT, LONG = Schema(SchemaType.STRING), Schema(SchemaType.INT64)
INNER = Schema(SchemaType.STRUCT, fields=(Field("x", TEXT),))
ROW = Schema(SchemaType.STRUCT, "R", fields=(Field("a", TEXT), Field("b", LONG), Field("s", INNER)))
EACH: list[dict[str, Any]] = [
    {"type": "Insert", "field": "new", "source": "Timestamp"},
    {"type": "Keep", "fields": ["a", "c"]},
    {"type": "Drop", "fields": ["b"]},
    {"type": "Rename", "renames": {"a": "renamed"}},
    {"type": "Mask", "fields": ["a"]},
    {"type": "Cast", "casts": {"a": "Text", "b": "Text"}},
    {"type": "Flatten", "delimiter": "_"},
    {"type": "Extract", "field": "a"},
    {"type": "Hoist", "field": "whole"},
    {"type": "Timestamp", "field": "a", "timestampType": "Timestamp", "timestampFormat": "yyyyMMdd"},
]


def changed(schema: Schema, *specs: dict[str, Any], topic: str = "t") -> Schema:
    return transformed_schema(schema, [TransformSpec.model_validate(each) for each in specs], topic)


@pytest.mark.parametrize("seed", range(300))
def test_it_is_that_of_transformed_values(seed: int) -> None:
    rng = random.Random(seed)
    schema = typed_values.random_schema(rng)
    record = json.loads(typed_values.random_record(rng, 0, [schema]).value or "null")
    if record is None or record["schema"] is None or record["payload"] is None:
        return
    found = envelope_schema(json.dumps(record["schema"]).encode())
    assert found is not None
    specs = [TransformSpec.model_validate(each) for each in rng.sample(EACH, rng.randrange(1, 4))]
    value = TypedValue(found, payload_reader(found)(json.dumps(record["payload"]).encode()))
    try:
        for spec in specs:
            transform = transform_of(spec)
            assert transform is not None
            after = transform.typed(value, RecordOrigin("t", 0, 0, 0))
            assert isinstance(after, TypedValue)
            value = after
            if value.value is None:
                return  # what follows leaves a tombstone as it is
    except InvalidValue:
        return
    assert transformed_schema(found, specs, "t") == value.schema


def test_the_row_of_a_change_event_is_that_after_it() -> None:
    event = json.loads(change_event("c", None, {"id": 1, "name": "x"}))
    schema = envelope_schema(json.dumps(event["schema"]).encode())
    assert schema is not None
    found = changed(schema, {"type": "Unwrap", "deletes": "Rewrite", "addFields": ["op"]})
    assert [each.name for each in found.fields][-2:] == ["__deleted", "__op"]


def test_a_whole_value_can_change_its_type() -> None:
    assert changed(TEXT, {"type": "Cast", "castTo": "Int32"}).type is SchemaType.INT32
    assert changed(LONG, {"type": "Timestamp", "timestampType": "Date"}).name == "org.apache.kafka.connect.data.Date"
    chain = ({"type": "Extract", "field": "b"}, {"type": "Cast", "castTo": "Text"}, {"type": "Hoist", "field": "v"})
    assert changed(ROW, *chain) == Schema(SchemaType.STRUCT, fields=(Field("v", TEXT),))


@pytest.mark.parametrize(
    ("when", "applies"),
    [
        ({"topic": "t"}, True),
        ({"topic": "other"}, False),
        ({"topic": "other", "not": True}, True),
        ({"tombstone": True}, False),
        ({"tombstone": False}, True),
        ({"topic": "other", "header": "h"}, False),
    ],
)
def test_a_condition_on_topic_or_tombstone_is_known(when: dict[str, Any], applies: bool) -> None:
    found = changed(ROW, {"type": "Drop", "fields": ["b"], "when": when})
    assert ("b" not in [each.name for each in found.fields]) is applies


@pytest.mark.parametrize("when", [{"header": "h"}, {"field": "a"}, {"topic": "t", "field": "a", "not": True}])
def test_a_condition_on_the_record_gives_several_schemas(when: dict[str, Any]) -> None:
    assert changed(ROW, {"type": "Filter", "when": when}) == ROW
    with pytest.raises(ConfigurationError, match=r"^spec\.transforms\[0\] \(Drop\) applies to some records of t only"):
        changed(ROW, {"type": "Drop", "fields": ["b"], "when": when})


def test_a_transform_that_cannot_handle_the_schema_is_an_error() -> None:
    with pytest.raises(
        ConfigurationError, match=r"\(Extract\) cannot change the schema of t: the struct has no field z"
    ):
        changed(ROW, {"type": "Extract", "field": "z"})
    with pytest.raises(InvalidSchema, match="it is recursive"):
        changed(Schema(SchemaType.STRUCT, "N", fields=(Field("n", Schema(SchemaType.REFERENCE, "N")),)))
