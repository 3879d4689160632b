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


def test_the_command_ends_with_the_exit_code_of_a_configuration_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sink.json").write_text(
        json.dumps(document({"spec.format": {"converter": "Avro", "schema": {"text": "{"}}}))
    )
    (tmp_path / "steps").write_bytes(STEP)
    assert main.main(["simulate", str(tmp_path / "sink.json"), "--records", str(tmp_path / "steps")]) == 7
    assert "ConfigurationError" in capsys.readouterr().err
