"""The client of AWS Glue: its endpoint, its credentials, and when it is created again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import botocore.loaders
import pytest

from sink_job.api.enums import RegistryType
from sink_job.api.errors import ConfigurationError, SecretNotFound
from sink_job.registry.clients.glue_client import GlueEndpoints
from sink_job.registry.settings import RegistrySettings
from sink_job.s3.access.assumed_role import AssumedRole
from tests.support.registry import secret


@pytest.fixture(scope="module", autouse=True)
def _one_loader() -> Iterator[None]:
    """Parses botocore's description of Glue once."""
    loader = botocore.loaders.create_loader()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("botocore.session.create_loader", lambda *_: loader)
        yield


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key-of-the-environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")


def settings(**given: Any) -> RegistrySettings:
    return RegistrySettings(type=RegistryType.GLUE, **{"region": "eu-central-1", **given})


def access_key(endpoints: GlueEndpoints) -> str:
    """The access key that the client signs with."""
    [endpoint] = endpoints()
    return str(endpoint.client._request_signer._credentials.get_frozen_credentials().access_key)


@pytest.mark.parametrize(
    ("urls", "url"),
    [((), "https://glue.eu-central-1.amazonaws.com"), (("https://vpce-1.example.com",), "https://vpce-1.example.com")],
)
def test_the_endpoint_is_that_of_the_region_unless_the_manifest_has_one(urls: tuple[str, ...], url: str) -> None:
    [endpoint] = GlueEndpoints(settings(urls=urls))()
    assert (endpoint.url, endpoint.client.meta.endpoint_url) == (url, url)


def test_the_client_does_not_retry_itself() -> None:
    [endpoint] = GlueEndpoints(settings())()
    assert endpoint.client.meta.config.retries["total_max_attempts"] == 1


def test_the_credentials_are_those_of_the_secret_or_of_the_environment(tmp_path: Path) -> None:
    folder = secret(tmp_path, AWS_ACCESS_KEY_ID="key-of-the-secret", AWS_SECRET_ACCESS_KEY="hidden")
    assert access_key(GlueEndpoints(settings())) == "key-of-the-environment"
    assert access_key(GlueEndpoints(settings(credentials_dir=folder))) == "key-of-the-secret"


def test_a_secret_without_a_key_is_reported_with_its_field(tmp_path: Path) -> None:
    with pytest.raises(SecretNotFound, match=r"to the Secret of spec\.format\.registry\.credentials"):
        GlueEndpoints(settings(credentials_dir=secret(tmp_path, username="u")))()


def test_the_client_is_created_again_only_after_a_change_of_the_authorities(tmp_path: Path) -> None:
    import certifi

    file = tmp_path / "ca.crt"
    file.write_bytes(Path(certifi.where()).read_bytes())
    endpoints = GlueEndpoints(settings(ca_file=file))
    first = endpoints()
    assert endpoints() is first
    os.utime(file, ns=(1, 1))
    assert endpoints() is not first


@pytest.mark.parametrize("content", ["no certificate", ""])
def test_authorities_that_are_no_certificates_are_an_error_before_the_first_request(
    tmp_path: Path, content: str
) -> None:
    (tmp_path / "ca.crt").write_text(content)
    with pytest.raises(
        ConfigurationError, match=r"AWS Glue in eu-central-1: the certificates cannot be read .*caSecret"
    ):
        GlueEndpoints(settings(ca_file=tmp_path / "ca.crt"))()


def test_missing_authorities_are_named(tmp_path: Path) -> None:
    with pytest.raises(SecretNotFound, match=r"ca\.crt does not exist: check spec\.format\.registry\.caSecret"):
        GlueEndpoints(settings(ca_file=tmp_path / "ca.crt"))()


def test_a_region_that_is_none_needs_user_action(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "absent"))
    with pytest.raises(ConfigurationError, match=r"^schema registry .*: NoRegionError: You must specify a region"):
        GlueEndpoints(settings(region=None))()


def test_closed_connections_are_opened_again_on_request() -> None:
    endpoints = GlueEndpoints(settings())
    first = endpoints()
    endpoints.close()
    assert endpoints() is not first


def test_a_role_needs_credentials_to_assume_it_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    role = "arn:aws:iam::123456789012:role/schemas"
    GlueEndpoints(settings(role=AssumedRole(arn=role)))()  # sends no request yet
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "absent"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(ConfigurationError, match="no credentials: give the driver's pod an IAM role"):
        GlueEndpoints(settings(role=AssumedRole(arn=role)))()
