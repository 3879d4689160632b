"""A registry of a test's own, which starts in some ten milliseconds, and one Apicurio, which starts in some seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devtools.processes import ServerFailedError
from devtools.schema_registry.apicurio import ApicurioServer, apicurio
from devtools.schema_registry.server import SchemaRegistryServer, schema_registry
from sink_job.registry.clients.confluent import ConfluentRegistry
from tests.support.registry import registry_client


@pytest.fixture
def server() -> Iterator[SchemaRegistryServer]:
    with schema_registry() as running:
        yield running


@pytest.fixture
def client(server: SchemaRegistryServer) -> Iterator[ConfluentRegistry]:
    with registry_client(server) as connected:
        yield connected


@pytest.fixture(scope="session")
def apicurio_server() -> Iterator[ApicurioServer]:
    """Apicurio. A test may restart it: then it is empty."""
    try:
        with apicurio() as running:
            yield running
    except ServerFailedError as error:
        pytest.skip(f"Apicurio cannot run here: {error}")
