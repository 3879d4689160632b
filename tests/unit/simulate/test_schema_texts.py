"""`s3sink simulate` with the schema of bare values: its text is checked as by the driver."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sink_job.api.errors import ConfigurationError
from sink_job.cli import main
from sink_job.cli.simulate import simulate
from tests.unit.api.manifests import accepted, document

AVRO = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'
PROTO = 'syntax = "proto3"; message Flight { int64 id = 1; }'
STEP = json.dumps({"write": [{"topic": "t", "partition": 0, "offset": 0, "value": {"id": 1}}]}).encode()


def reports(converter: str, schema: dict[str, Any]) -> int:
    """The number of reports of one write."""
    of = accepted({"spec.rotation.flushSize": 2, "spec.format": {"converter": converter, "schema": schema}})
    return len(list(simulate(of, [STEP])))


@pytest.mark.parametrize(
    ("converter", "schema"),
    [
        ("Avro", {"text": AVRO}),
        ("Avro", {"configMap": "schemas", "key": "flight.avsc"}),
        ("JsonSchema", {"text": '{"type": "object"}'}),
        ("Protobuf", {"text": PROTO, "message": "Flight"}),
    ],
)
def test_a_schema_that_is_valid_or_in_a_config_map_is_accepted(converter: str, schema: dict[str, Any]) -> None:
    assert reports(converter, schema) == 1


@pytest.mark.parametrize(
    ("converter", "schema"),
    [
        ("Avro", {"text": "{"}),
        ("Avro", {"text": '{"type": "recrod"}'}),
        ("JsonSchema", {"text": "{"}),
        ("Protobuf", {"text": "message Flight {", "message": "Flight"}),
        ("Protobuf", {"text": PROTO, "message": "Fligth"}),
    ],
)
def test_a_schema_that_the_driver_rejects_is_a_configuration_error(converter: str, schema: dict[str, Any]) -> None:
    with pytest.raises(
        ConfigurationError, match=rf"spec\.format\.schema cannot be used with the converter {converter}"
    ):
        reports(converter, schema)


FIELDS = {"text": "- {name: id, type: int64}"}
OBJECT = {"text": '{"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}'}


def errors(value: object, **given: Any) -> list[str]:
    """The data errors of a record with this value, in Parquet."""
    of = accepted({"spec.rotation.flushSize": 1, "spec.format": {"output": "Parquet", **given}})
    record = {"topic": "t", "partition": 0, "offset": 0, "value": value}
    (report,) = simulate(of, [json.dumps({"write": [record]}).encode()])
    assert bool(report.closed) != bool(report.errors)
    return [each.message for each in report.errors]


@pytest.mark.parametrize(
    "given", [{"schema": FIELDS}, {"schema": OBJECT}, {"schema": OBJECT, "converter": "JsonSchema"}]
)
def test_a_json_value_that_does_not_conform_to_the_schema_of_the_sink_is_a_data_error(given: dict[str, Any]) -> None:
    assert errors({"id": 1}, **given) == []
    assert errors({"id": "one"}, **given) == ["the field id: a JSON value must be an integer"]
    assert errors({"id": 1, "gate": "B7"}, **given) == ["the field gate: its schema does not have this property"]
    assert errors({"id": 1, "gate": "B7"}, unknownFields="Json", **given) == []


def test_a_json_value_is_not_checked_against_a_schema_that_is_in_a_config_map() -> None:
    assert errors({"id": "one"}, schema={"configMap": "schemas", "key": "flight"}) == []


@pytest.mark.parametrize("source", [{"inference": "Once"}, {"schema": {"text": "- {name: id, type: int64}"}}])
def test_json_with_a_schema_of_the_sink_is_simulated_as_it_is(source: dict[str, Any]) -> None:
    of = accepted({"spec.rotation.flushSize": 1, "spec.format": {"output": "Parquet", **source}})
    (report,) = simulate(of, [STEP])
    assert [each.key for each in report.closed] == ["topics/t/partition=0/t+0+0000000000.snappy.parquet"]


def test_the_command_ends_with_the_exit_code_of_a_configuration_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sink.json").write_text(
        json.dumps(document({"spec.format": {"converter": "Avro", "schema": {"text": "{"}}}))
    )
    (tmp_path / "steps").write_bytes(STEP)
    assert main.main(["simulate", str(tmp_path / "sink.json"), "--records", str(tmp_path / "steps")]) == 7
    assert "ConfigurationError" in capsys.readouterr().err
