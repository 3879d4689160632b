"""The JSON schema for the CRD: complete, described, and consistent with the parser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from sink_job.api import spec_reference
from sink_job.api.field_errors import Path as FieldPath
from sink_job.api.field_errors import connector_key, dotted, every_field
from sink_job.api.parser import load_sink, parse_sink
from sink_job.api.spec import Sink, Spec
from tests.unit.api.manifests import HOURLY, TIME, document

ROOT = Path(__file__).parents[3]
SCHEMA: dict[str, Any] = Sink.model_json_schema()
FIELDS = list(every_field(Spec, ("spec",)))
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))


def schema_errors(manifest: object) -> list[str]:
    """The errors of a JSON schema validator for a manifest."""
    validator = jsonschema.Draft202012Validator(SCHEMA)
    return [str(error.message) for error in validator.iter_errors(manifest)]


@pytest.mark.parametrize(("path", "field"), FIELDS, ids=[dotted(path) for path, _ in FIELDS])
def test_every_field_has_a_description(path: FieldPath, field: Any) -> None:
    assert path
    assert re.fullmatch(r"(?s)[A-Z].*\.", field.description or "")


def test_every_default_is_a_valid_value() -> None:
    rotation = SCHEMA["$defs"]["RoundsSpec"]["properties"]
    assert (rotation["maxDelay"]["default"], rotation["minBytes"]["default"]) == ("10s", "8Mi")


def test_the_schema_contains_bounds_and_enum_values() -> None:
    parts = SCHEMA["$defs"]
    assert parts["RotationSpec"]["properties"]["flushSize"]["minimum"] == 1
    assert parts["S3Spec"]["properties"]["partSize"]["x-s3sink-minimum"] == "5Mi"
    assert parts["OnNullValue"]["enum"] == ["Fail", "Ignore", "Write"]
    assert parts["KafkaSpec"]["additionalProperties"] is False


def test_the_schema_has_optional_fields_and_no_null() -> None:
    assert "null" not in {found for part in SCHEMA["$defs"].values() for found in _types(part)}


def _types(part: Any) -> list[Any]:
    if isinstance(part, dict):
        own = [part["type"]] if isinstance(part.get("type"), str) else []
        return own + [found for value in part.values() for found in _types(value)]
    return []


@pytest.mark.parametrize("changes", [{}, HOURLY, TIME], ids=["small", "hourly", "by a pattern"])
def test_the_schema_accepts_what_the_parser_accepts(changes: dict[str, object]) -> None:
    assert schema_errors(document(changes)) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"spec.rotation.flushSize": 0},
        {"spec.rotation.interval": 600},
        {"spec.rotation.interval": "10 minutes"},
        {"spec.s3.partSize": "25MB"},
        {"spec.s3.bucket": "Archive"},
        {"spec.s3.zebra": 1},
        {"spec.format.output": "json"},
        {"spec.sinkId": "/"},
    ],
    ids=str,
)
def test_the_schema_rejects_what_it_can_express(changes: dict[str, object]) -> None:
    assert schema_errors(document(changes))


def test_a_dumped_manifest_parses_to_the_same_sink() -> None:
    sink = parse_sink(document(TIME, {"spec.rotation.interval": "90m", "spec.rotation.maxBytes": "1Gi"}))
    assert parse_sink(sink.model_dump(mode="json")) == sink


def test_every_supported_connector_key_is_in_the_schema() -> None:
    keys = {key for _, field in FIELDS for key in connector_key(field).split(", ") if key}
    semantics = (ROOT / "docs" / "semantics.md").read_text(encoding="utf-8")
    table = semantics.split("| field | connector key |")[1].split("\n\n")[0]
    named = {key.strip() for row in table.splitlines()[2:] for key in row.split("|")[2].split(",")}
    assert named - {"errors.*"} <= keys


def test_the_field_reference_is_up_to_date() -> None:
    assert (ROOT / "docs" / "spec.md").read_text(encoding="utf-8") == spec_reference.reference()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_accepted_by_parser_and_schema(example: Path) -> None:
    text = example.read_text(encoding="utf-8")
    load_sink(text)
    assert schema_errors(yaml.safe_load(text)) == []


def test_there_are_examples() -> None:
    assert {path.name for path in EXAMPLES} >= {"minimal.yaml", "json-hourly.yaml", "field-partitioned.yaml"}
