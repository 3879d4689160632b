"""The schema of the CustomResourceDefinition: structural, small, described, as the parser reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from s3sink_operator.crd import pod_template
from sink_job.api.field_errors import every_field
from sink_job.api.rules import unsupported
from sink_job.api.spec import Spec
from tests.operator.crd.definition import FIELDS, ROOT, SCHEMA, nodes, rules
from tests.unit.api.manifests import HOURLY, TIME, accepted, document

EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))

PARSED: list[Any] = [
    pytest.param([], id="small"),
    pytest.param([HOURLY], id="hourly"),
    pytest.param([TIME, {"spec.rotation.interval": "90m", "spec.rotation.maxBytes": 1 << 30}], id="by a pattern"),
    pytest.param([{"spec.s3.partSize": 5242880, "spec.executor.memory": {"min": "1.5Gi"}}], id="sizes as numbers"),
    pytest.param([{"spec.driver.podTemplate": {"spec": {"nodeSelector": {"a": "b"}}}}], id="a pod template"),
]


def schema_errors(manifest: Any) -> list[str]:
    """What the schema alone says of a manifest."""
    return [error.message for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(manifest)]


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
