"""The source of all schemas of a sink: the client of its registry, the schema of its manifest, or both."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from sink_job.api.enums import ConverterType, RegistryType
from sink_job.api.errors import ConfigurationError
from sink_job.api.sections.format_section import FormatSpec
from sink_job.api.sections.schema_section import SchemaSpec
from sink_job.registry.bare_values import BareValueSchema
from sink_job.registry.client import open_registry, open_schemas
from sink_job.registry.clients.apicurio import ApicurioRegistry
from sink_job.registry.clients.confluent import ConfluentRegistry
from sink_job.registry.clients.glue import GlueRegistry
from sink_job.registry.settings import RegistrySettings

AVRO = json.dumps({"type": "record", "name": "Flight", "fields": [{"name": "carrier", "type": "string"}]})
UNREACHABLE = RegistrySettings(urls=("http://127.0.0.1:1",))


def wait(seconds: float) -> bool:
    return False


def hide(secrets: Iterable[str]) -> None:
    pass


def bare(text: str) -> FormatSpec:
    return FormatSpec(converter=ConverterType.AVRO, bare_value_schema=SchemaSpec(text=text))


@pytest.mark.parametrize(
    ("type_", "client"),
    [
        (RegistryType.CONFLUENT, ConfluentRegistry),
        (RegistryType.APICURIO, ApicurioRegistry),
        (RegistryType.GLUE, GlueRegistry),
    ],
)
def test_each_type_of_registry_has_its_client_which_sends_no_request_yet(
    type_: RegistryType, client: type[object]
) -> None:
    settings = RegistrySettings(urls=UNREACHABLE.urls, type=type_, region="eu-central-1")
    registry = open_registry(settings, wait, hide)
    assert isinstance(registry, client)
    assert registry.url == "http://127.0.0.1:1"
    assert repr(registry) == f"{client.__name__}(http://127.0.0.1:1)"
    registry.close()


def test_a_sink_without_registry_and_schema_has_no_schemas() -> None:
    assert open_schemas(FormatSpec(), None, wait, hide) is None


def test_a_sink_with_a_registry_alone_has_its_client() -> None:
    assert isinstance(open_schemas(FormatSpec(), UNREACHABLE, wait, hide), ConfluentRegistry)


@pytest.mark.parametrize(("registry", "url"), [(None, "spec.format.schema"), (UNREACHABLE, "http://127.0.0.1:1")])
def test_the_schema_of_bare_values_is_found_beside_a_registry(registry: RegistrySettings | None, url: str) -> None:
    found: Any = open_schemas(bare(AVRO), registry, wait, hide)
    assert isinstance(found, BareValueSchema)
    assert found.url == url
    found.close()


def test_an_invalid_schema_of_bare_values_is_an_error_before_the_registry_is_opened() -> None:
    with pytest.raises(ConfigurationError, match=r"spec\.format\.schema cannot be used with the converter Avro"):
        open_schemas(bare('{"type": "recrod"}'), UNREACHABLE, wait, hide)
