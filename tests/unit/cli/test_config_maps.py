"""`spec.format.schema` from a ConfigMap: its directory on a laptop and in a pod."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from sink_job.api.errors import ConfigMapNotFound
from sink_job.api.spec import Sink
from sink_job.cli.common import add_config_maps, with_schema
from tests.unit.api.manifests import accepted

SCHEMA = {"configMap": "flights", "key": "flight.avsc"}
MISSING = "spec.format.schema: the key flight.avsc of the ConfigMap flights"


def sink() -> Sink:
    return accepted({"spec.format": {"converter": "Avro", "schema": SCHEMA}})


def arguments(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_config_maps(parser)
    return parser.parse_args(given)


def text_of(found: Sink) -> str | None:
    schema = found.spec.format.bare_value_schema
    return None if schema is None else schema.text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    directory = tmp_path / "maps" / "flights"
    directory.mkdir(parents=True)
    (directory / "flight.avsc").write_text('"long"')
    return directory


def test_the_directory_of_a_config_map_is_an_argument(folder: Path) -> None:
    assert text_of(with_schema(arguments(f"--config-map=flights={folder}"), sink(), {})) == '"long"'


def test_a_variable_has_the_directory_of_all_config_maps(folder: Path) -> None:
    assert text_of(with_schema(arguments(), sink(), {"S3SINK_CONFIG_MAPS_DIR": str(folder.parent)})) == '"long"'


def test_the_argument_takes_precedence(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "flight.avsc").write_text('"int"')
    environ = {"S3SINK_CONFIG_MAPS_DIR": str(folder.parent)}
    assert text_of(with_schema(arguments(f"--config-map=flights={tmp_path}"), sink(), environ)) == '"int"'


def test_a_sink_without_config_map_is_unchanged() -> None:
    for given in (accepted(), accepted({"spec.format": {"converter": "Avro", "schema": {"text": '"long"'}}})):
        assert with_schema(arguments(), given, {}) is given


def test_a_config_map_without_a_directory_is_a_configuration_error() -> None:
    with pytest.raises(ConfigMapNotFound) as raised:
        with_schema(arguments(), sink(), {})
    assert str(raised.value) == f"{MISSING} was not found: use --config-map flights=DIRECTORY"
    assert raised.value.exit_code == 7


def test_a_missing_key_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigMapNotFound, match=f"{MISSING} cannot be read: .*: No such file or directory"):
        with_schema(arguments(f"--config-map=flights={tmp_path}"), sink(), {})


def test_a_schema_that_is_not_utf8_is_a_configuration_error(folder: Path) -> None:
    (folder / "flight.avsc").write_bytes(b"\xff")
    with pytest.raises(ConfigMapNotFound, match="it is not UTF-8"):
        with_schema(arguments(f"--config-map=flights={folder}"), sink(), {})
