"""The proxy of the clients of registries."""

from __future__ import annotations

from pathlib import Path

import certifi

from sink_job.registry.clients.http_proxy import http_proxy
from sink_job.registry.settings import RegistrySettings
from sink_job.s3.proxy import ProxySettings
from tests.support.login_proxy import PASSWORD, USER, login_secret

URL = "http://proxy.example.com:3128"


def test_without_a_proxy_that_of_the_environment_is_used() -> None:
    assert http_proxy(RegistrySettings(), "https://registry") is None
    bypass = RegistrySettings(proxy=ProxySettings(url=URL, no_proxy=("registry",)))
    assert http_proxy(bypass, "https://registry") is None


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
