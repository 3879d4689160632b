"""What the registries with a REST API share: which failures a request has, and what is shown of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.schema_registry.error import SchemaRegistryError

from sink_job.api.errors import InvalidCredentials
from sink_job.registry.clients.rest_registry import RestRegistry
from sink_job.registry.credentials import RegistryCredentials
from sink_job.registry.settings import RegistrySettings
from tests.support.registry import QUICK, secret


class Client:
    """A client that is rejected."""

    closed = 0

    def request(self) -> str:
        raise SchemaRegistryError(401, 401, "Unauthorized")

    def close(self) -> None:
        Client.closed += 1


def clients(settings: RegistrySettings, credentials: RegistryCredentials | None) -> Callable[[str], Client]:
    return lambda url: Client()


class Registry(RestRegistry[Client]):
    """A registry of another kind."""

    def ask(self) -> None:
        self._requests.send("schema id 7", Client.request)


def registry(credentials: Path | None = None) -> Registry:
    settings = RegistrySettings(urls=("https://a", "https://b"), credentials_dir=credentials, retry=QUICK)
    return Registry(settings, clients, lambda _: False, lambda _: None)


def test_a_rejected_request_leads_to_the_credentials_that_are_missing_or_wrong(tmp_path: Path) -> None:
    with pytest.raises(InvalidCredentials, match=r"https://a: schema id 7: .* set spec\.format\.registry\.credentials"):
        registry().ask()
    with pytest.raises(InvalidCredentials, match="fix the Secret referenced by"):
        registry(secret(tmp_path, token="t")).ask()


def test_a_registry_is_shown_by_its_class_and_urls_without_secrets(tmp_path: Path) -> None:
    found = registry(secret(tmp_path, token="hidden"))
    assert repr(found) == "Registry(https://a, https://b)"


def test_only_connections_that_were_opened_are_closed() -> None:
    found, Client.closed = registry(), 0
    found.close()
    assert Client.closed == 0
    with pytest.raises(InvalidCredentials):
        found.ask()
    found.close()
    assert Client.closed == 2
