"""Which requests use the proxy, and its login."""

from __future__ import annotations

from pathlib import Path

import pytest

from sink_job.api.errors import InvalidCredentials, SecretNotFound
from sink_job.s3 import S3Settings
from sink_job.s3.proxy import ProxySettings, proxies, proxy_failure
from tests.support.login_proxy import PASSWORD, login_secret
from tests.unit.api.manifests import accepted

URL = "http://proxy.example.com:3128"


def test_the_proxy_of_a_manifest_has_the_mount_of_its_secret() -> None:
    section = {"url": f"{URL}/", "credentials": {"secret": "login"}, "noProxy": ["a.example.com"]}
    settings = S3Settings.of(accepted({"spec.s3.proxy": section}).spec, {"login": Path("/l")})
    assert settings.proxy == ProxySettings(url=URL, credentials_dir=Path("/l"), no_proxy=("a.example.com",))


def test_a_secret_that_is_not_mounted_is_named_with_its_field() -> None:
    section = {"url": URL, "credentials": {"secret": "login"}}
    with pytest.raises(SecretNotFound, match=r"spec\.s3\.proxy\.credentials\.secret: the Secret login is not mounted"):
        S3Settings.of(accepted({"spec.s3.proxy": section}).spec, {})


@pytest.mark.parametrize(
    ("entry", "url", "is_used"),
    [
        ("example.com", "https://example.com", False),
        ("example.com", "https://s3.example.com:9000", False),
        (".example.com", "https://s3.example.com", False),
        ("Example.com", "https://S3.example.COM", False),
        ("example.com", "https://notexample.com", True),
        ("s3.example.com", "https://example.com", True),
        ("10.0.0.0/8", "https://10.1.2.3:9000", False),
        ("10.0.0.1", "https://10.0.0.1", False),
        ("10.0.0.0/8", "https://11.1.2.3", True),
        ("fd00::/8", "https://[fd00::1]:9000", False),
        ("10.0.0.0/8", "https://example.com", True),
    ],
)
def test_hosts_domains_and_networks_of_no_proxy_are_reached_directly(entry: str, url: str, is_used: bool) -> None:
    assert ProxySettings(url=URL, no_proxy=(entry,)).is_used_for(url) is is_used


def test_the_login_is_encoded_in_botocores_url(tmp_path: Path) -> None:
    settings = ProxySettings(url=URL, credentials_dir=login_secret(tmp_path))
    through = proxies(settings, "https://s3", None)["proxies"]
    assert through["https"] == "http://s3sink:p%40ss%3Aword%2F%20%2541@proxy.example.com:3128"
    assert PASSWORD not in repr(settings)


def test_without_a_proxy_that_of_the_environment_is_used_and_with_a_bypass_none() -> None:
    assert proxies(None, "https://s3", None) == {}
    assert proxies(ProxySettings(url=URL, no_proxy=("s3",)), "https://s3", None) == {"proxies": {}}


@pytest.mark.parametrize("password", ["pässword", "line\nbreak"])
def test_a_login_that_cannot_be_sent_is_reported_without_it(tmp_path: Path, password: str) -> None:
    with pytest.raises(InvalidCredentials, match="contains a control character, or one that is not ASCII") as error:
        ProxySettings(url=URL, credentials_dir=login_secret(tmp_path, password=password)).login()
    assert password not in str(error.value)


@pytest.mark.parametrize(
    ("text", "is_login"),
    [
        ("Tunnel connection failed: 407 Proxy Authentication Required", True),
        ("Tunnel connection failed: 403 Forbidden", False),
        ("407 Proxy Authentication Required", True),
        ("403 Forbidden", False),
        ("SSLError: certificate verify failed: self-signed certificate", False),
    ],
)
def test_rejections_by_the_proxy_need_user_action(text: str, is_login: bool) -> None:
    found = proxy_failure(text)
    assert found is not None
    assert found[1] is is_login


@pytest.mark.parametrize(
    "text",
    [
        "Tunnel connection failed: 503 Service Unavailable",
        "Connection refused",
        "503 Service Unavailable after 403 ms",
        "Cannot connect to proxy-407 : timed out after 407 s",
    ],
)
def test_other_failures_of_the_proxy_may_pass(text: str) -> None:
    assert proxy_failure(text) is None
