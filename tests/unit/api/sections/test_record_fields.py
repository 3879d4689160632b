"""The names of record fields in a manifest: their forms, their names in paths, and the converters that they need."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.api.sections.record_fields import FieldReference, FieldSource
from tests.unit.api.manifests import HOURLY, accepted, spec_errors

KEY_TEXT: dict[str, object] = {"spec.format.keyConverter": "Text"}
FORMS = "names that begin with $ are $key, $key.<field>, $header.<name>, $topic, $partition, and $value.<field>"


def fields(*names: str) -> dict[str, object]:
    return {"spec.partitioner": {"type": "Field", "fields": list(names)}}


def time_field(name: str) -> dict[str, object]:
    partitioner: Any = HOURLY["spec.partitioner"]
    return {"spec.partitioner": partitioner | {"timestampExtractor": "RecordField", "timestampField": name}}


@pytest.mark.parametrize(
    ("text", "source", "name", "label"),
    [
        ("a.b", FieldSource.VALUE, "a.b", "a.b"),
        ("key", FieldSource.VALUE, "key", "key"),
        ("header.tenant", FieldSource.VALUE, "header.tenant", "header.tenant"),
        ("$value.$oid", FieldSource.VALUE, "$oid", "$oid"),
        ("$key", FieldSource.KEY, "", "key"),
        ("$key.id.a", FieldSource.KEY, "id.a", "key.id.a"),
        ("$header.x.tenant", FieldSource.HEADER, "x.tenant", "header.x.tenant"),
        ("$topic", FieldSource.TOPIC, "", "topic"),
        ("$partition", FieldSource.PARTITION, "", "partition"),
    ],
)
def test_a_name_says_where_its_field_is(text: str, source: FieldSource, name: str, label: str) -> None:
    found = FieldReference.of(text)
    assert (found.source, found.name, found.label) == (source, name, label)


@pytest.mark.parametrize("text", ["$headers.tenant", "$header", "$value", "$Key", "$topic.a", "$partition.a", "$"])
def test_another_name_with_a_dollar_sign_is_rejected(text: str) -> None:
    assert spec_errors(fields(text)) == [f"spec.partitioner.fields: {text} is not a field of a record: {FORMS}"]
    assert spec_errors(time_field(text)) == [
        f"spec.partitioner.timestampField: {text} is not a field of a record: {FORMS}"
    ]


def test_a_name_with_a_dollar_sign_in_an_old_ledger_is_a_field_of_the_value() -> None:
    assert FieldReference.of("$oid") == FieldReference("$oid", FieldSource.VALUE, "$oid")


@pytest.mark.parametrize("name", ["$topic", "$partition"])
def test_topic_and_partition_are_no_times(name: str) -> None:
    assert spec_errors(time_field(name)) == [
        f"spec.partitioner.timestampField: {name} is not a time: use a field of the value or key, or a header"
    ]


def test_two_fields_with_the_same_name_in_paths_are_rejected() -> None:
    assert spec_errors(fields("$header.a", "header.a")) == [
        "spec.partitioner.fields: $header.a and header.a have the same name header.a in paths: remove one of them"
    ]


@pytest.mark.parametrize("changes", [fields("$key"), time_field("$key")], ids=["field", "time"])
def test_a_field_of_the_key_needs_a_converter_of_keys(changes: dict[str, object]) -> None:
    assert len(spec_errors(changes)) == 1
    assert spec_errors(changes)[0].startswith("spec.format.keyConverter: is missing: $key in spec.partitioner.")
    accepted(changes, KEY_TEXT)


@pytest.mark.parametrize("changes", [{}, fields("a"), HOURLY | {"spec.partitioner.timestampField": "$key"}])
def test_a_converter_of_keys_that_nothing_needs_is_rejected(changes: dict[str, object]) -> None:
    assert spec_errors(changes, KEY_TEXT) == [
        "spec.format.keyConverter: Text has no effect: no setting needs the key; remove it, or use $key in "
        "spec.partitioner.fields or timestampField, or set spec.format.envelope: true"
    ]


def test_a_key_of_text_has_no_fields() -> None:
    assert spec_errors(fields("$key.id"), KEY_TEXT) == [
        "spec.partitioner.fields: $key.id cannot be read with keyConverter Text, which has no fields: use $key, or "
        "another keyConverter"
    ]


def test_a_key_of_bytes_is_in_no_path() -> None:
    assert spec_errors(fields("$key"), {"spec.format.keyConverter": "Bytes"}) == [
        "spec.partitioner.fields: $key cannot be read with keyConverter Bytes: use another one, such as Text"
    ]


@pytest.mark.parametrize("name", ["$key", "$header.tenant", "$topic", "$partition"])
@pytest.mark.parametrize("converter", ["Text", "Bytes"])
def test_a_value_without_fields_can_have_paths_from_elsewhere(name: str, converter: str) -> None:
    keys: dict[str, object] = KEY_TEXT if name == "$key" else {}
    accepted(fields(name), {"spec.format.converter": converter}, keys)


def test_a_value_without_fields_can_have_the_time_of_a_header() -> None:
    accepted(time_field("$header.time"), {"spec.format.converter": "Text"})


def test_a_field_of_a_text_value_is_rejected_beside_a_header() -> None:
    assert spec_errors(fields("$header.a", "$value.b"), {"spec.format.converter": "Text"}) == [
        "spec.partitioner.type: Field needs fields of the value, but the converter Text does not parse any; use "
        "another converter, or another type"
    ]


def test_keys_with_schemas_need_a_registry_and_values_need_none() -> None:
    avro_keys = fields("$key.id") | {"spec.format.keyConverter": "Avro"}
    assert spec_errors(avro_keys) == [
        "spec.format.registry: is missing: the converter Avro reads schemas from a registry"
    ]
    accepted(avro_keys | {"spec.format.registry": {"url": ["https://registry.example.com"]}})


@pytest.mark.parametrize("position", ["Prefix", "Suffix"])
@pytest.mark.parametrize("converter", ["Json", "ConnectJson"])
def test_the_name_of_the_schema_can_be_in_paths(position: str, converter: str) -> None:
    accepted({"spec.partitioner.schemaName": position, "spec.format.converter": converter})
