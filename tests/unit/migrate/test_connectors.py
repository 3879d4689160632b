"""The public configurations in `connectors/`: what the command makes of each, and that its manifests are valid."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from sink_job.api.parser import load_sink
from sink_job.migrate.converters import PREFIX, converter_class
from sink_job.migrate.inputs.properties_text import read_properties
from sink_job.migrate.table import KeyOwner, key_table
from tests.unit.migrate.connector_cases import ConnectorCase, connector_cases, converted

CASES = list(connector_cases())
EACH = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def settings_of(case: ConnectorCase) -> list[dict[str, str]]:
    """The settings of the connectors in a case, read without the code under test where the form allows it."""
    if case.input.lstrip().startswith("{"):
        document = json.loads(re.sub(r",(\s*[}\]])", r"\1", case.input))
        found = document.get("config") or document.get("connectorConfiguration") or document
        return [{key: str(value) for key, value in found.items()}]
    if "kind:" in case.input:
        specs: list[Any] = [document.get("spec", {}) for document in yaml.safe_load_all(case.input)]
        return [{k: str(v) for k, v in (spec.get("config") or spec.get("configs") or {}).items()} for spec in specs]
    return [read_properties(case.input)]


@EACH
def test_a_public_configuration_has_its_manifest_its_comments_and_its_exit_code(case: ConnectorCase) -> None:
    assert converted(case) == (case.exit_code, case.output, case.errors)


@EACH
def test_every_manifest_is_valid_and_has_the_same_values_for_every_reader_of_yaml(case: ConnectorCase) -> None:
    for document in case.output.split("\n---\n") if case.output else ():
        sink = load_sink(document)
        assert sink.name == yaml.safe_load(document)["metadata"]["name"]
        assert load_sink(yaml.safe_dump(yaml.safe_load(document))) == sink


@EACH
def test_only_a_connector_that_can_be_converted_has_a_manifest(case: ConnectorCase) -> None:
    assert bool(case.output) == (case.exit_code in (0, 8))
    assert bool(case.errors) == (case.exit_code != 0)


SECRET = re.compile(r"password|secret|user\.info|jaas|license|access\.?key\.id$|access_key|auth\.token$")


@EACH
def test_no_output_has_a_secret(case: ConnectorCase) -> None:
    _, output, errors = converted(case, "--debug")
    for settings in settings_of(case):
        for key, value in settings.items():
            if SECRET.search(key) and len(value) > 6 and "${" not in value:
                assert value not in output + errors, key


def test_each_case_has_the_address_of_its_source() -> None:
    assert [case.name for case in CASES if not case.source.startswith("https://")] == []
    assert len(CASES) >= 60


def test_every_key_of_the_table_occurs_in_a_case() -> None:
    seen: set[tuple[KeyOwner, str]] = set()
    for case in CASES:
        for settings in settings_of(case):
            kind = converter_class(settings.get("value.converter", ""))
            for key in settings:
                owner, name = KeyOwner.CONNECTOR, key
                if key.startswith(PREFIX) and kind is not None and key_table().row(key) is None:
                    owner, name = kind.owner, key.removeprefix(PREFIX)
                row = key_table().row(name, owner)
                seen |= {(row.owner, row.key)} if row else set()
    assert [row.key for row in key_table().rows if (row.owner, row.key) not in seen] == []
