"""Kafka's transforms as `spec.transforms`. tests/data/test_connect_transforms.py compares their results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from sink_job.api.parser import load_sink
from sink_job.migrate.conversion import convert
from sink_job.migrate.findings import Configuration, Conversion, Severity
from sink_job.migrate.transforms import converted, predicate
from tests.unit.api.manifests import accepted

KAFKA = "org.apache.kafka.connect.transforms."
CASES: list[tuple[str, dict[str, str], list[dict[str, Any]]]] = [
    (
        "InsertField$Value",
        {"offset.field": "o!", "topic.field": "t?", "static.field": "s", "static.value": "x"},
        [
            {"type": "Insert", "field": "t", "source": "Topic"},
            {"type": "Insert", "field": "o", "required": True, "source": "Offset"},
            {"type": "Insert", "field": "s", "source": "Text", "text": "x"},
        ],
    ),
    (
        "ReplaceField$Value",
        {"exclude": "a, b", "renames": "c:d"},
        [{"type": "Drop", "fields": ["a", "b"]}, {"type": "Rename", "renames": {"c": "d"}}],
    ),
    ("ReplaceField$Value", {"whitelist": "a"}, [{"type": "Keep", "fields": ["a"]}]),
    (
        "MaskField$Value",
        {"fields": "a", "replacement": "*"},
        [{"type": "Mask", "fields": ["a"], "replacement": "*"}],
    ),
    ("Cast$Value", {"spec": "a:int8,b:string"}, [{"type": "Cast", "casts": {"a": "Int8", "b": "Text"}}]),
    ("Cast$Value", {"spec": "float64"}, [{"type": "Cast", "castTo": "Float64"}]),
    ("Flatten$Value", {}, [{"type": "Flatten"}]),
    ("Flatten$Value", {"delimiter": "_"}, [{"type": "Flatten", "delimiter": "_"}]),
    ("ExtractField$Value", {"field": "after"}, [{"type": "Extract", "field": "after"}]),
    ("HoistField$Value", {"field": "line"}, [{"type": "Hoist", "field": "line"}]),
    (
        "TimestampConverter$Value",
        {"field": "a", "target.type": "string", "format": "yyyy", "unix.precision": "seconds"},
        [{"type": "Timestamp", "timestampType": "Text", "field": "a", "timestampFormat": "yyyy", "unit": "Seconds"}],
    ),
    ("TimestampConverter$Value", {"target.type": "unix"}, [{"type": "Timestamp", "timestampType": "UnixTime"}]),
]


@pytest.mark.parametrize(("name", "settings", "entries"), CASES)
def test_a_transform_becomes_entries_of_the_list(
    name: str, settings: dict[str, str], entries: list[dict[str, Any]]
) -> None:
    assert converted(KAFKA + name, {"type": KAFKA + name, **settings}) == entries
    accepted({"spec.transforms": entries})


def test_confluents_handler_of_tombstones_becomes_a_filter_if_it_drops_them() -> None:
    kind = "io.confluent.connect.transforms.TombstoneHandler"
    assert converted(kind, {}) == [{"type": "Filter", "when": {"tombstone": True}}]
    assert converted(kind, {"behavior": "ignore"}) == []
    with pytest.raises(ValueError, match="rejects tombstones"):
        converted(kind, {"behavior": "fail"})


DEBEZIUM = "io.debezium.transforms.ExtractNewRecordState"


def test_debeziums_new_record_state_becomes_unwrap() -> None:
    assert converted(DEBEZIUM, {}) == [{"type": "Unwrap", "deletes": "Tombstone"}]
    modes = ["drop", "delete-to-tombstone", "rewrite", "rewrite-with-tombstone"]
    found = [converted(DEBEZIUM, {"delete.tombstone.handling.mode": mode})[0]["deletes"] for mode in modes]
    assert found == ["Drop", "Tombstone", "Rewrite", "RewriteWithTombstone"]
    added = converted(DEBEZIUM, {"add.fields": "op, source.ts_ms"})
    assert added == [{"type": "Unwrap", "deletes": "Tombstone", "addFields": ["op", "source.ts_ms"]}]


@pytest.mark.parametrize(
    ("settings", "deletes"),
    [
        ({"drop.tombstones": "true"}, "Drop"),
        ({"delete.handling.mode": "rewrite"}, "Rewrite"),
        ({"delete.handling.mode": "rewrite", "drop.tombstones": "false"}, "RewriteWithTombstone"),
        ({"delete.handling.mode": "none"}, "Tombstone"),
        ({"drop.tombstones": "false"}, "Tombstone"),
    ],
)
def test_the_former_keys_of_debezium_have_the_same_handling(settings: dict[str, str], deletes: str) -> None:
    assert converted(DEBEZIUM, settings) == [{"type": "Unwrap", "deletes": deletes}]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"delete.handling.mode": "none", "drop.tombstones": "false"}, "writes deletes and tombstones"),
        ({"delete.handling.mode": "other"}, "has a delete.handling.mode that is not one of drop"),
        ({"drop.tombstones": "true", "delete.tombstone.handling.mode": "drop"}, "has both"),
        ({"delete.tombstone.handling.mode": "other"}, "has a delete.tombstone.handling.mode that is not one of drop"),
        ({"add.fields.prefix": ""}, "has another add.fields.prefix than __"),
        ({"add.fields": "op:o"}, "gives names to fields in add.fields"),
        ({"add.headers": "op"}, "has the key add.headers, which is not converted"),
    ],
)
def test_what_unwrap_does_not_have_is_named(settings: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        converted(DEBEZIUM, settings)


@pytest.mark.parametrize(
    ("kind", "settings", "why"),
    [
        ("com.example.Mine", {}, "is a transform that this version does not have"),
        (f"{KAFKA}InsertField$Key", {}, "is a transform of the key that this version does not have"),
        (f"{KAFKA}ValueToKey", {}, "is a transform that this version does not have"),
        (f"{KAFKA}Cast$Value", {"spec": "a:decimal"}, "has a type that is not one of int8, "),
        (f"{KAFKA}Cast$Value", {"spec": "int8,a:int8"}, "casts the whole value and fields"),
        (f"{KAFKA}Cast$Value", {}, "has no spec"),
        (f"{KAFKA}MaskField$Value", {}, "has no fields"),
        (f"{KAFKA}InsertField$Value", {"static.field": "a"}, "has a static.field without a static.value"),
        ("", {}, "has no type"),
        (f"{KAFKA}RegexRouter", {}, "is a router of topics, which is converted only as the single transform"),
        (f"{KAFKA}InsertField$Value", {"topicfield": "a"}, "has the unknown key topicfield: did you mean topic.field?"),
        (f"{KAFKA}ReplaceField$Value", {"renames": "a"}, "has no pair of names in renames=a"),
        (f"{KAFKA}ReplaceField$Value", {"renames": "a:c,b:c"}, "has a name twice in renames"),
        (f"{KAFKA}ExtractField$Value", {"field": "a.b", "field.syntax.version": "V2"}, "names nested fields"),
        (f"{KAFKA}HoistField$Value", {}, "has a name that is empty"),
        (f"{KAFKA}Flatten$Value", {"delimiter": ""}, "has an empty or too long delimiter"),
        (f"{KAFKA}TimestampConverter$Value", {"target.type": "Day"}, "has the target.type Day, which is not one of"),
        (f"{KAFKA}TimestampConverter$Value", {"target.type": "string"}, "has no format for the target.type string"),
        (
            f"{KAFKA}TimestampConverter$Value",
            {"target.type": "unix", "format": "EEE"},
            "has a format that has the letter E",
        ),
        (f"{KAFKA}MaskField$Value", {"fields": "${file:a:b}"}, "has a value of a configuration provider"),
    ],
)
def test_what_has_no_equivalent_is_named(kind: str, settings: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        converted(kind, settings)


@pytest.mark.parametrize(
    ("name", "settings", "when"),
    [
        ("TopicNameMatches", {"pattern": "a.*"}, {"topic": "a.*"}),
        ("HasHeaderKey", {"name": "h"}, {"header": "h"}),
        ("RecordIsTombstone", {}, {"tombstone": True}),
    ],
)
def test_predicates_become_conditions(name: str, settings: dict[str, str], when: dict[str, Any]) -> None:
    kind = f"{KAFKA}predicates.{name}"
    assert predicate(kind, settings, negated=False) == when
    assert predicate(kind, settings, negated=True) == {**when, "not": True}


@pytest.mark.parametrize(
    ("kind", "settings", "why"),
    [
        ("com.example.P", {}, "has a predicate of the class com.example.P, which is not converted"),
        ("", {}, "has a predicate without a type"),
        (
            f"{KAFKA}predicates.TopicNameMatches",
            {"pattern": "[a-z&&[b]]"},
            "has a predicate with a pattern that is not",
        ),
        (f"{KAFKA}predicates.TopicNameMatches", {"pattern": "("}, "is not a valid regular expression"),
    ],
)
def test_other_predicates_are_named(kind: str, settings: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        predicate(kind, settings, negated=False)


CONNECTOR = {
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "topics": "a",
    "s3.bucket.name": "bucket",
    "flush.size": "10",
    "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


def conversion(settings: Mapping[str, str]) -> Conversion:
    return convert(Configuration({**CONNECTOR, **settings}, "c"))


def test_a_connector_has_its_transforms_in_their_order_with_predicates() -> None:
    found = conversion(
        {
            "transforms": "drop, mask",
            "transforms.drop.type": f"{KAFKA}Filter",
            "transforms.drop.predicate": "deleted",
            "transforms.mask.type": f"{KAFKA}MaskField$Value",
            "transforms.mask.fields": "name",
            "transforms.mask.predicate": "debug",
            "transforms.mask.negate": "true",
            "predicates": "deleted, debug",
            "predicates.deleted.type": f"{KAFKA}predicates.RecordIsTombstone",
            "predicates.debug.type": f"{KAFKA}predicates.HasHeaderKey",
            "predicates.debug.name": "debug",
        }
    )
    text = "\n".join(found.lines)
    assert "  transforms: # transforms=drop, mask\n    - {type: Filter, when: {tombstone: true}}\n" in text
    assert "    - {type: Mask, fields: [name], when: {header: debug, not: true}}" in text
    assert [each for each in found.findings if each.severity is not Severity.TO_DO] == []


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"transforms.a.type": f"{KAFKA}Filter"}, "a (org.apache.kafka.connect.transforms.Filter) has no predicate"),
        (
            {
                "transforms.a.type": f"{KAFKA}Flatten$Value",
                "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            },
            "this version transforms JSON and values with a schema alone, not values of Text for the output Json",
        ),
        ({"transforms.a.type": DEBEZIUM}, "Debezium's transform does nothing without a schema"),
        (
            {"transforms.a.type": f"{KAFKA}TimestampConverter$Value", "transforms.a.target.type": "Date"},
            "a value without a schema has only the target.type string and unix",
        ),
    ],
)
def test_what_cannot_be_converted_is_a_reason(settings: dict[str, str], why: str) -> None:
    found = conversion({"transforms": "a", **settings})
    assert found.lines == ()
    assert why in str(found.findings[0])


@pytest.mark.parametrize("name", ["avro.AvroConverter", "protobuf.ProtobufConverter", "json.JsonSchemaConverter"])
def test_values_with_the_schema_of_a_registry_keep_their_transforms(name: str) -> None:
    found = conversion(
        {
            "transforms": "a,b",
            "transforms.a.type": f"{KAFKA}TimestampConverter$Value",
            "transforms.a.field": "at",
            "transforms.a.target.type": "Date",
            "transforms.b.type": DEBEZIUM,
            "value.converter": f"io.confluent.connect.{name}",
            "value.converter.schema.registry.url": "https://r",
        }
    )
    text = "\n".join(found.lines)
    assert "{type: Timestamp, timestampType: Date, field: at}" in text
    assert "{type: Unwrap, deletes: Tombstone}" in text
    assert ("unknownFields: Drop # JsonSchemaConverter drops what the schema lacks" in text) == name.startswith("json")


def test_the_schema_of_transformed_json_is_inferred_for_parquet() -> None:
    parquet = "io.confluent.connect.s3.format.parquet.ParquetFormat"
    found = conversion({"format.class": parquet, "transforms": "a", "transforms.a.type": f"{KAFKA}Flatten$Value"})
    spec = load_sink("\n".join(found.lines)).spec
    assert (spec.format.inference, [each.type for each in spec.transforms]) == ("Once", ["Flatten"])
