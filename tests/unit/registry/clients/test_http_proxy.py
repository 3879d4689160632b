"""The proxy of the clients of registries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import certifi
import httpx2
import pytest

from sink_job.registry.clients.apicurio_client import apicurio_clients
from sink_job.registry.clients.confluent_client import confluent_clients
from sink_job.registry.clients.http_proxy import http_proxy
from sink_job.registry.settings import RegistrySettings
from sink_job.s3.proxy import ProxySettings
from tests.support.login_proxy import PASSWORD, USER, login_secret

URL = "http://proxy.example.com:3128"


def test_without_a_proxy_that_of_the_environment_is_used() -> None:
    assert http_proxy(RegistrySettings(), "https://registry") is None
    bypass = RegistrySettings(proxy=ProxySettings(url=URL, no_proxy=("registry",)))
    assert http_proxy(bypass, "https://registry") is None


@pytest.mark.parametrize(("no_proxy", "is_direct"), [(("registry",), True), ((), False)])
def test_a_host_of_no_proxy_is_reached_without_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, no_proxy: tuple[str, ...], is_direct: bool
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://of-the-environment:3128")
    settings = RegistrySettings(proxy=ProxySettings(url=URL, no_proxy=no_proxy))
    url = "https://registry"
    for create in (confluent_clients(settings, None), apicurio_clients(settings, None)):
        client: Any = create(url)
        session = client._rest_client.session if hasattr(client, "_rest_client") else client._http
        transport = session._transport_for_url(httpx2.URL(url))
        assert (transport is session._transport) is is_direct


def test_the_login_is_no_part_of_the_url(tmp_path: Path) -> None:
    found = http_proxy(
        RegistrySettings(proxy=ProxySettings(url=URL, credentials_dir=login_secret(tmp_path))), "https://registry"
    )
    assert found is not None
    assert (str(found.url), found.auth) == (URL, (USER, PASSWORD))
    assert PASSWORD not in repr(found)


def test_the_certificate_of_a_proxy_is_verified_with_the_authorities_of_the_registry() -> None:
    settings = RegistrySettings(proxy=ProxySettings(url="https://proxy:3128"), ca_file=Path(certifi.where()))
    found = http_proxy(settings, "https://registry")
    assert found is not None
    assert found.ssl_context is not None
