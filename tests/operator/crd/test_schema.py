"""The CRD as text, without a server: made from the models, small, structural, described, as the parser reads it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from s3sink_operator import crd
from s3sink_operator.crd import __main__ as command
from s3sink_operator.crd import pod_template
from s3sink_operator.crd.cel import CelRule
from s3sink_operator.crd.rules import RULES
from s3sink_operator.crd.schema import attach, fields
from sink_job.api import unsupported
from sink_job.api.errors import InvalidSpec
from sink_job.api.field_errors import every_field
from sink_job.api.parser import parse_sink
from sink_job.api.reserved_properties import (
    KAFKA_OWNED,
    SPARK_OWNED,
    SPARK_OWNED_PREFIXES,
    kafka_property_error,
    spark_property_error,
)
from sink_job.api.spec import Spec
from tests.operator.crd.rejected_manifests import CHANGED, REJECTED
from tests.unit.api.manifests import HOURLY, TIME, accepted, document

ROOT = Path(__file__).parents[3]
FILE = ROOT / crd.FILE
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
MADE = crd.crd()
VERSION = MADE["spec"]["versions"][0]
SCHEMA = VERSION["schema"]["openAPIV3Schema"]
FIELDS = [(path, field) for path, field in fields(SCHEMA) if path != "metadata"]
KEEPS_UNKNOWN = "x-kubernetes-preserve-unknown-fields"
ANNOTATION_LIMIT = 256 * 1024
"""Bytes of all annotations of an object; client-side `kubectl apply` keeps a copy of the definition in one."""

PARSED: list[Any] = [
    pytest.param([], id="small"),
    pytest.param([HOURLY], id="hourly"),
    pytest.param([TIME, {"spec.rotation.interval": "90m", "spec.rotation.maxBytes": 1 << 30}], id="by a pattern"),
    pytest.param([{"spec.s3.partSize": 5242880, "spec.executor.memory": {"min": "1.5Gi"}}], id="sizes as numbers"),
    pytest.param([{"spec.driver.podTemplate": {"spec": {"nodeSelector": {"a": "b"}}}}], id="a pod template"),
]


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema in a schema, itself first."""
    yield schema
    for inner in schema.get("properties", {}).values():
        yield from nodes(inner)
    for below in ("items", "additionalProperties"):
        if isinstance(schema.get(below), dict):
            yield from nodes(schema[below])


def rules() -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    """Every rule of the schema, with the node that it belongs to."""
    for node in nodes(SCHEMA):
        for rule in node.get("x-kubernetes-validations", ()):
            yield node, rule


def schema_errors(manifest: Any) -> list[str]:
    """What the schema alone says of a manifest."""
    return [error.message for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(manifest)]


def test_the_file_is_what_the_models_make() -> None:
    assert FILE.read_text(encoding="utf-8") == crd.text()


def test_the_text_means_the_definition() -> None:
    assert yaml.safe_load(crd.text()) == MADE


def test_a_copy_of_the_definition_takes_less_than_half_of_the_space_for_annotations() -> None:
    assert len(json.dumps(crd.crd(), separators=(",", ":"))) < ANNOTATION_LIMIT / 2


def test_a_drifted_file_is_reported_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drifted = tmp_path / "crd.yaml"
    drifted.write_text(crd.text().replace("topicsDir", "topicDir"), encoding="utf-8")
    assert command.main(["--check", str(drifted)]) == 1
    assert capsys.readouterr().err == f"{drifted} differs from the models in sink_job.api: run `make crd`\n"


def test_a_file_that_has_not_drifted_is_fine() -> None:
    assert command.main(["--check", str(FILE)]) == 0


def test_the_command_prints_the_definition(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([]) == 0
    assert capsys.readouterr().out == crd.text()


def test_every_supported_field_of_the_models_is_in_the_schema() -> None:
    expected = {".".join(map(str, path)).replace(".0", "[]") for path, _ in every_field(Spec, ("spec",))}
    single = [path for path, values in unsupported.CHOICES.items() if len(values) == 1]
    expected -= {".".join(map(str, path)) for path in [*unsupported.ABSENT, *single]}
    assert {path for path, _ in FIELDS if path.startswith("spec.")} == expected


@pytest.mark.parametrize(("path", "field"), FIELDS, ids=[path for path, _ in FIELDS])
def test_every_field_has_a_description(path: str, field: dict[str, Any]) -> None:
    assert path
    assert field["description"].endswith(".")


def test_the_schema_is_structural() -> None:
    for node in nodes(SCHEMA):
        assert ("type" in node) != node.get("x-kubernetes-int-or-string", False)
        assert not {"$ref", "$defs", "oneOf", "allOf", "not", "definitions", "title", "examples", "const"} & set(node)
        assert not {name for name in node if name.startswith("x-") and not name.startswith("x-kubernetes-")}
        assert not ("properties" in node and "additionalProperties" in node)


def test_only_a_size_is_of_two_types() -> None:
    for node in nodes(SCHEMA):
        either = node.get("anyOf")
        assert either is None or (
            node["x-kubernetes-int-or-string"] and either == [{"type": "integer"}, {"type": "string"}]
        )


def test_nothing_may_be_null_but_fields_of_pod_templates() -> None:
    templates = [field["properties"] for path, field in FIELDS if path in pod_template.PATHS]
    own = {id(node) for template in templates for field in template.values() for node in nodes(field)}
    assert len(templates) == 2
    assert not any("nullable" in node or node.get("type") == "null" for node in nodes(SCHEMA) if id(node) not in own)


def test_a_pod_template_keeps_the_fields_that_the_definition_does_not_know() -> None:
    (template, _) = [field for path, field in FIELDS if path in pod_template.PATHS]
    closed = [node for node in nodes(template) if "properties" in node and not node[KEEPS_UNKNOWN]]
    assert closed == []


def test_no_item_of_a_list_has_a_default() -> None:
    for node in nodes(SCHEMA):
        if "items" in node:
            assert not [each for each in nodes(node["items"]) if "default" in each]


def test_the_status_has_no_defaults() -> None:
    assert not [node for node in nodes(SCHEMA["properties"]["status"]) if "default" in node]


def test_the_keys_of_a_list_are_required_in_its_items() -> None:
    for node in nodes(SCHEMA):
        assert set(node.get("x-kubernetes-list-map-keys", ())) <= set(node.get("items", {}).get("required", ()))


def test_the_spec_is_required() -> None:
    assert SCHEMA["required"] == ["spec"]
    assert set(SCHEMA["properties"]["spec"]["required"]) == {"kafka", "s3"}


def test_defaults_are_those_of_the_models_as_people_write_them() -> None:
    spec = SCHEMA["properties"]["spec"]["properties"]
    assert spec["s3"]["properties"]["partSize"]["default"] == "25Mi"
    assert spec["rounds"]["properties"]["maxDelay"]["default"] == "10s"
    assert spec["executor"]["properties"]["instances"]["default"] == 1
    assert "default" not in spec["kafka"]["properties"]["topics"]


def test_the_default_of_a_section_holds_those_of_its_fields() -> None:
    spec = SCHEMA["properties"]["spec"]["properties"]
    assert spec["rounds"]["default"] == {"minBytes": "8Mi", "maxDelay": "10s", "maxBytes": "512Mi"}
    scaling = {"mode": "Fixed", "minInstances": 1, "maxInstances": 8, "partitionsPerTask": 8}
    assert spec["executor"]["default"] == {"mode": "Cluster", "instances": 1, "memory": {}, "scaling": scaling}
    assert spec["offsets"]["default"] == {}


def test_the_description_of_a_size_begins_with_its_type() -> None:
    sizes = [field for _, field in FIELDS if field.get("x-kubernetes-int-or-string")]
    assert sizes
    assert all(field["description"].startswith("Quantity such as 64Mi, or bytes. ") for field in sizes)


def test_only_pod_templates_keep_unknown_fields() -> None:
    open_fields = {path for path, field in FIELDS if field.get(KEEPS_UNKNOWN)}
    assert open_fields == {"spec.driver.podTemplate", "spec.executor.podTemplate"}


def test_a_field_that_is_not_supported_is_not_in_the_schema() -> None:
    known = {path for path, _ in FIELDS}
    assert not known & {".".join(map(str, path)) for path in unsupported.ABSENT}
    assert not known & {".".join(map(str, path)) for path, values in unsupported.CHOICES.items() if len(values) == 1}


def test_a_choice_has_the_supported_values_alone() -> None:
    choices = {path: field["enum"] for path, field in FIELDS if "enum" in field}
    for path, values in unsupported.CHOICES.items():
        if len(values) > 1:
            assert choices[".".join(map(str, path))] == [value.value for value in values]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_fits_the_schema(example: Path) -> None:
    assert schema_errors(yaml.safe_load(example.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("changes", PARSED)
def test_what_the_parser_takes_fits_the_schema(changes: list[dict[str, object]]) -> None:
    accepted(*changes)
    assert schema_errors(document(*changes)) == []


def test_each_rule_has_a_sentence_of_its_own() -> None:
    sentences = Counter(rule["message"] for _, rule in rules())
    assert not [sentence for sentence, count in sentences.items() if count > 1]


@pytest.mark.parametrize("rule", [rule for _, rule in rules()], ids=lambda rule: rule["message"])
def test_a_sentence_begins_with_the_field_and_stays_in_a_line(rule: dict[str, str]) -> None:
    assert rule["message"].startswith(("spec.", "metadata.name "))
    assert rule["message"].isprintable()
    assert len(rule["message"]) < 400


def test_the_field_path_of_a_rule_is_the_field_that_its_message_names() -> None:
    found = 0
    for node, rule in rules():
        if "fieldPath" in rule:
            *steps, name = rule["fieldPath"].removeprefix(".").split(".")
            section = node
            for step in steps:
                section = section["properties"][step]
            assert name in section["properties"]
            assert rule["message"].split(" ")[0].rstrip(":").endswith(rule["fieldPath"])
            found += 1
    assert found > 20


def test_no_enum_value_is_a_boolean_or_null_of_yaml_1_1() -> None:
    words = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
    values = [value for path, field in FIELDS if path.startswith("spec.") for value in field.get("enum", ())]
    assert not [value for value in values if value.lower() in words]


def test_sizes_and_durations_have_the_bounds_of_the_models() -> None:
    said = {rule["message"] for _, rule in rules()}
    assert "spec.s3.partSize is below the minimum of 5Mi: write 5Mi or more" in said
    assert "spec.s3.partSize is above the maximum of 2Gi: write 2Gi or less" in said
    assert "spec.rotation.scheduleInterval is above the maximum of 1d: write 1d or less" in said
    assert "spec.rotation.interval is below the minimum of 1ms: write 1ms or more" in said


def test_texts_and_lists_in_rules_are_bounded() -> None:
    for node, _ in rules():
        if node.get("type") == "string":
            assert "maxLength" in node
        if node.get("type") == "array":
            assert "maxItems" in node
        if "additionalProperties" in node:
            assert "maxProperties" in node


@pytest.mark.parametrize("name", [*SPARK_OWNED, *SPARK_OWNED_PREFIXES])
def test_a_spark_property_that_the_job_rejects_is_in_a_rule(name: str) -> None:
    assert spark_property_error(name)
    assert any(json.dumps(name) in rule.cel for rule in RULES if rule.path == "spec.sparkConf")


@pytest.mark.parametrize("name", list(KAFKA_OWNED))
def test_a_kafka_property_that_the_job_rejects_is_in_a_rule(name: str) -> None:
    assert kafka_property_error(name)
    for path in ("spec.kafka.properties", "spec.kafka.propertySecrets"):
        assert any(json.dumps(name) in rule.cel for rule in RULES if rule.path == path)


def test_every_rule_has_a_manifest_that_it_rejects() -> None:
    shown = [case.values[-1] for case in (*REJECTED, *CHANGED)]
    assert not [rule["message"] for _, rule in rules() if not any(said in rule["message"] for said in shown)]


@pytest.mark.parametrize("said", sorted({case.values[-1] for case in (*REJECTED, *CHANGED)}))
def test_the_expected_message_of_a_rejection_is_in_one_rule_only(said: str) -> None:
    assert sum(said in rule["message"] for _, rule in rules()) == 1


@pytest.mark.parametrize(("manifest", "said"), [case for case in REJECTED if "40 characters" not in case.values[-1]])
def test_a_manifest_that_a_rule_rejects_is_rejected_by_the_parser(manifest: dict[str, Any], said: str) -> None:
    assert said
    with pytest.raises(InvalidSpec):
        parse_sink(manifest)


def test_a_rule_for_a_field_that_there_is_not_is_an_error() -> None:
    with pytest.raises(KeyError):
        attach({"properties": {}}, (CelRule("spec.zebra", "true", "spec.zebra is wrong"),))


def test_scaling_and_status_are_resources_of_their_own() -> None:
    assert VERSION["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.executor.instances",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }
    assert SCHEMA["properties"]["spec"]["properties"]["executor"]["properties"]["instances"]["minimum"] == 1


def test_the_columns_of_kubectl_get() -> None:
    columns = VERSION["additionalPrinterColumns"]
    names = [column["name"] for column in columns]
    assert names == ["Ready", "State", "Partitions", "Lag", "Memory", "Age", "Reason", "Updated"]
    assert [column["name"] for column in columns if column.get("priority")] == ["Reason", "Updated"]


def test_a_column_shows_a_field_that_there_is() -> None:
    known = {f".{path}" for path, _ in FIELDS}
    paths = {column["jsonPath"] for column in VERSION["additionalPrinterColumns"]} - {".metadata.creationTimestamp"}
    conditions = {path for path in paths if path.startswith(".status.conditions[?")}
    assert paths - conditions <= known
    assert {path.rsplit(".", 1)[1] for path in conditions} == {"status", "reason"}


def test_names_of_the_resource() -> None:
    assert MADE["metadata"]["name"] == "s3sinks.s3sink.io"
    assert MADE["spec"]["names"] == {
        "kind": "S3Sink",
        "listKind": "S3SinkList",
        "plural": "s3sinks",
        "singular": "s3sink",
        "shortNames": ["s3s"],
        "categories": ["sinks"],
    }
