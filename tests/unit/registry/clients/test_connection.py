"""The clients of a registry's URLs: when they are created, with which credentials, and what is wrong with files."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from sink_job.api.errors import ConfigurationError, SecretNotFound
from sink_job.registry.clients.connection import Endpoints, bearer_token, client_certificate
from sink_job.registry.credentials import RegistryCredentials
from sink_job.registry.settings import RegistrySettings
from tests.support.registry import secret

URLS = ("https://a", "https://b")


class Client:
    """A client of a URL with the token of its credentials."""

    def __init__(self, url: str, token: str) -> None:
        self.url, self.token, self.closed = url, token, False

    def close(self) -> None:
        self.closed = True


def clients(settings: RegistrySettings, credentials: RegistryCredentials | None) -> Callable[[str], Client]:
    return lambda url: Client(url, credentials.token if credentials else "")


def endpoints(settings: RegistrySettings, hidden: list[str] | None = None) -> Endpoints[Client]:
    def hide(secrets: Iterable[str]) -> None:
        if hidden is not None:
            hidden.extend(secrets)

    return Endpoints(settings, clients, hide)


def test_each_url_has_one_client_which_is_kept() -> None:
    current = endpoints(RegistrySettings(urls=URLS))
    first = current()
    assert [(endpoint.url, endpoint.client.url) for endpoint in first] == [
        ("https://a", "https://a"),
        ("https://b", "https://b"),
    ]
    assert [endpoint.client for endpoint in current()] == [endpoint.client for endpoint in first]


def test_clients_are_created_again_after_a_change_of_a_secret_whose_values_are_redacted(tmp_path: Path) -> None:
    hidden: list[str] = []
    current = endpoints(RegistrySettings(urls=URLS, credentials_dir=secret(tmp_path, token="first")), hidden)
    assert {endpoint.client.token for endpoint in current()} == {"first"}
    secret(tmp_path, token="second")
    os.utime(tmp_path / "token", ns=(1, 1))
    assert {endpoint.client.token for endpoint in current()} == {"second"}
    assert hidden == ["first", "second"]


def test_a_secret_that_is_incomplete_during_a_change_is_read_again_later(tmp_path: Path) -> None:
    current = endpoints(RegistrySettings(urls=URLS, credentials_dir=tmp_path))
    with pytest.raises(SecretNotFound, match="has none of the keys"):
        current()
    secret(tmp_path, token="first")
    assert {endpoint.client.token for endpoint in current()} == {"first"}


def test_closed_connections_are_opened_again_on_request() -> None:
    current = endpoints(RegistrySettings(urls=URLS))
    first = current()
    current.close()
    assert all(endpoint.client.closed for endpoint in first)
    assert not any(endpoint.client.closed for endpoint in current())


@pytest.mark.parametrize("error", [ssl.SSLError("PEM lib"), PermissionError("denied")])
def test_an_unreadable_certificate_is_named_by_its_fields_without_its_content(error: Exception) -> None:
    def unreadable(*_: object) -> Callable[[str], Client]:
        raise error

    with pytest.raises(ConfigurationError) as raised:
        Endpoints(RegistrySettings(urls=URLS), unreadable, lambda _: None)()
    assert str(raised.value) == (
        f"schema registry https://a, https://b: the certificates cannot be read ({type(error).__name__}): check "
        "spec.format.registry.caSecret and clientSecret; they must be PEM, the key without a password"
    )


def test_a_registry_without_a_client_secret_needs_no_certificate() -> None:
    assert client_certificate(RegistrySettings(urls=URLS)) is None


@pytest.mark.parametrize("missing", ["tls.crt", "tls.key"])
def test_a_client_certificate_is_a_pair_of_files(tmp_path: Path, missing: str) -> None:
    settings = RegistrySettings(urls=URLS, client_dir=tmp_path)
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).touch()
    assert client_certificate(settings) == (tmp_path / "tls.crt", tmp_path / "tls.key")
    (tmp_path / missing).unlink()
    with pytest.raises(SecretNotFound, match=rf"{missing} does not exist: add the keys tls\.crt and tls\.key"):
        client_certificate(settings)


def test_a_token_of_the_secret_is_used_as_it_is() -> None:
    assert bearer_token(RegistryCredentials(token="abc"), RegistrySettings(urls=URLS))() == "abc"


def test_an_oauth_client_without_a_token_url_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match=r"the tokenUrl in .* is not a URL"):
        bearer_token(RegistryCredentials(client_id="id", client_secret="hidden"), RegistrySettings(urls=URLS))
