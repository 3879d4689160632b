"""A manifest as a whole: names with their defaults, settings of objects, and whether it may run."""

from __future__ import annotations

import pytest

from sink_job.api.spec import ObjectSettings, Sink
from tests.unit.api.manifests import accepted, case, spec_errors

REGISTRY = {"url": ["https://registry"]}
CONFIG_MAP = {
    "spec.format": {"converter": "Json", "output": "Avro", "schema": {"configMap": "schemas", "key": "flight.json"}}
}

SCHEMA = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'
IN_TEXT = {"spec.format": {"converter": "Avro", "schema": {"text": SCHEMA}}}


@pytest.mark.parametrize(
    ("changes", "sink_id", "group_id"),
    [
        ({}, "default.flights", "s3sink-default.flights"),
        ({"metadata.namespace": "n"}, "n.flights", "s3sink-n.flights"),
        ({"spec.sinkId": "own"}, "own", "s3sink-own"),
        ({"spec.kafka.groupId": "group"}, "default.flights", "group"),
    ],
)
def test_ledger_and_group_have_names_by_default(changes: dict[str, object], sink_id: str, group_id: str) -> None:
    found = accepted(changes)
    assert (found.sink_id, found.group_id) == (sink_id, group_id)


@pytest.mark.parametrize(
    ("changes", "topic", "reads"),
    [
        ({}, "flights", True),
        ({}, "flights2", False),
        ({"spec.kafka": {"bootstrapServers": "k:1", "topicsPattern": "fl.*"}}, "flights", True),
        ({"spec.kafka": {"bootstrapServers": "k:1", "topicsPattern": "fl"}}, "flights", False),
    ],
)
def test_a_sink_reads_its_topics_or_those_whose_whole_name_matches(
    changes: dict[str, object], topic: str, reads: bool
) -> None:
    assert accepted(changes).spec.reads(topic) is reads


@pytest.mark.parametrize("changes", [{"spec.format": {"converter": "Avro", "registry": REGISTRY}}, IN_TEXT])
def test_the_settings_of_objects_have_no_connection_and_no_text_of_a_schema(changes: dict[str, object]) -> None:
    found = accepted(changes).object_settings()
    assert (found.format.registry, found.format.bare_value_schema) == (None, None)
    assert found.has_schemas
    assert ObjectSettings.model_validate(found.model_dump()) == found


def test_a_change_of_the_connection_changes_no_settings_of_objects() -> None:
    def settings(url: str) -> ObjectSettings:
        return accepted({"spec.format": {"converter": "Avro", "registry": {"url": [url]}}}).object_settings()

    assert settings("https://a") == settings("https://b")


def test_json_has_schemas_only_with_one_in_the_manifest() -> None:
    assert not accepted().object_settings().has_schemas
    schema = {"spec.format": {"converter": "Json", "output": "Avro", "schema": {"text": SCHEMA}}}
    assert accepted(schema).object_settings().has_schemas


def test_the_text_of_a_config_map_takes_its_place() -> None:
    schema = accepted(CONFIG_MAP).with_schema_text("{}").spec.format.bare_value_schema
    assert schema is not None
    assert (schema.text, schema.config_map, schema.key) == ("{}", None, None)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"spec.state": "Stopped"}, "spec.state is Stopped: set it to Running to run this sink"),
        ({"spec.state": "Running"}, None),
    ],
)
def test_only_a_running_sink_may_run(changes: dict[str, object], reason: str | None) -> None:
    assert accepted(changes).reason_not_to_run() == reason


def test_the_manifest_for_logs_has_no_pod_templates_and_is_one_otherwise() -> None:
    found = accepted({"spec.driver.podTemplate": {"metadata": {"labels": {"a": "b"}}}}).redacted()
    assert "podTemplate" not in found["spec"]["driver"]
    assert Sink.model_validate(found).spec.kafka.topics == ["flights"]


def test_all_other_metadata_is_ignored() -> None:
    assert accepted({"metadata.labels": {"a": "b"}}).namespace == "default"


INVALID = [
    case(
        "an unknown value is rejected with the allowed values",
        {"spec.onDataLoss": "Ignore"},
        "spec.onDataLoss: Ignore is not one of Fail, Continue",
    ),
    case(
        "a sink id with a parent directory is rejected",
        {"spec.sinkId": "a..b"},
        "spec.sinkId: a..b is not a valid sink id: it must not contain ..",
    ),
    case(
        "a sink id with the name of the owners directory is rejected",
        {"spec.sinkId": "topics"},
        "spec.sinkId: topics is reserved: this directory holds the owners of topics; use another sink id",
    ),
    case(
        "a sink id of more than 127 characters is rejected",
        {"spec.sinkId": "a" * 128},
        f"spec.sinkId: {'a' * 79}… is longer than 127 characters",
    ),
    case(
        "a name in upper case is rejected",
        {"metadata.name": "Flights"},
        "metadata.name: Flights is not a valid name: use lower-case letters, digits and -; the first and last "
        "character must be a letter or a digit",
    ),
]


@pytest.mark.parametrize(("changes", "expected"), INVALID)
def test_an_invalid_value_is_rejected(changes: dict[str, object], expected: list[str]) -> None:
    assert spec_errors(changes) == expected


VALID = [
    case("a status from a cluster", {"status": {"conditions": []}}),
    case("metadata from a cluster", {"metadata.uid": "8a", "metadata.labels": {"a": "b"}}),
]


@pytest.mark.parametrize(("changes", "expected"), VALID)
def test_a_valid_value_is_accepted(changes: dict[str, object], expected: list[str]) -> None:
    assert expected == []
    accepted(changes)
