"""S3, AWS STS and registries through a proxy that demands a login."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from devtools.certificates import Certificate, self_signed
from devtools.s3 import ACCESS_KEY, SECRET_KEY, VersityGW, credentials_secret
from devtools.schema_registry.server import schema_registry
from sink_job.api.errors import AccessDenied, InvalidCredentials, SecretNotFound
from sink_job.cli import main as cli
from sink_job.s3 import S3Client, S3Settings
from sink_job.s3.access.assumed_role import AssumedRole
from sink_job.s3.proxy import ProxySettings
from tests.support.login_proxy import PASSWORD, LoginProxy, login_proxy, login_secret
from tests.support.registry import FLIGHT, apicurio_client, glue_client, registry_client
from tests.support.s3_store import MIN_PART, running, upload_parts

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return self_signed(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, certificate: Certificate) -> Iterator[VersityGW]:
    with running(VersityGW(tmp_path_factory.mktemp("store"), certificate=certificate)) as server:
        yield server


@pytest.fixture(params=["http", "https"])
def proxy(request: pytest.FixtureRequest, certificate: Certificate) -> Iterator[LoginProxy]:
    with login_proxy(certificate if request.param == "https" else None) as running_proxy:
        yield running_proxy


Connect = Callable[..., S3Client]


@pytest.fixture
def through(settings: S3Settings, store: VersityGW, certificate: Certificate, tmp_path: Path) -> Iterator[Connect]:
    clients = []

    def connected(server: LoginProxy, /, *, password: str = PASSWORD, **changes: Any) -> S3Client:
        login = login_secret(tmp_path / "login", password=password)
        client = S3Client(
            dataclasses.replace(
                settings,
                **{
                    "endpoint": store.endpoint,
                    "ca_file": certificate.certificate,
                    "proxy": ProxySettings(url=server.url, credentials_dir=login),
                    **changes,
                },
            )
        )
        clients.append(client)
        return client

    yield connected
    for client in clients:
        client.close()


def test_requests_with_tls_go_through_a_tunnel_with_the_login(
    proxy: LoginProxy, through: Connect, store: VersityGW, key: str
) -> None:
    s3 = through(proxy)
    content = os.urandom(MIN_PART)
    upload_id, parts = upload_parts(s3, key, content, b"tail")
    s3.complete(key, upload_id, parts)
    assert s3.get(key) == content + b"tail"
    assert set(proxy.hosts) == {f"CONNECT 127.0.0.1:{store.port}"}
    assert proxy.rejected == 0


def test_requests_without_tls_go_to_the_proxy_with_the_login(
    proxy: LoginProxy, through: Connect, settings: S3Settings
) -> None:
    assert settings.endpoint is not None
    s3 = through(proxy, endpoint=settings.endpoint)
    s3.check_access()
    assert proxy.hosts == [f"GET {settings.endpoint.removeprefix('http://')}"]


@pytest.mark.parametrize("is_tunnel", [True, False])
def test_a_rejected_login_is_reported_at_once_and_without_the_password(
    proxy: LoginProxy, through: Connect, settings: S3Settings, is_tunnel: bool
) -> None:
    s3 = through(proxy, password="a-wrong-password", **({} if is_tunnel else {"endpoint": settings.endpoint}))
    with pytest.raises(
        InvalidCredentials, match=r"the proxy rejects the login: fix the Secret of spec\.s3\.proxy"
    ) as error:
        s3.check_access()
    assert error.value.exit_code == 7
    assert proxy.rejected == 1
    assert "a-wrong-password" not in f"{error.value!r} {error.value.__cause__!r} {s3!r}"


def test_a_proxy_without_a_login_that_demands_one_is_reported(proxy: LoginProxy, through: Connect) -> None:
    with pytest.raises(InvalidCredentials, match="the proxy rejects the login"):
        through(proxy, proxy=ProxySettings(url=proxy.url)).check_access()


def test_a_proxy_that_does_not_allow_the_host_is_reported(proxy: LoginProxy, through: Connect) -> None:
    proxy.forbids = True
    with pytest.raises(AccessDenied, match="the proxy does not allow the connection"):
        through(proxy).check_access()


def test_a_secret_without_a_password_is_reported_with_its_field(
    proxy: LoginProxy, through: Connect, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "username").write_text("u")
    with pytest.raises(SecretNotFound, match=r"has no password; the Secret of spec\.s3\.proxy\.credentials"):
        through(proxy, proxy=ProxySettings(url=proxy.url, credentials_dir=tmp_path / "other"))


def test_hosts_of_no_proxy_are_reached_directly(proxy: LoginProxy, through: Connect) -> None:
    through(proxy, proxy=ProxySettings(url=proxy.url, no_proxy=("127.0.0.0/8",))).check_access()
    assert proxy.hosts == []


def test_a_role_is_assumed_through_the_proxy(
    proxy: LoginProxy, through: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", "https://sts.invalid:1")
    proxy.forbids = True
    with pytest.raises(AccessDenied, match="the proxy does not allow the connection"):
        through(proxy, role=AssumedRole(arn="arn:aws:iam::123456789012:role/archive")).check_access()
    assert proxy.hosts == ["CONNECT sts.invalid:1"]


def test_registries_use_the_proxy_and_report_a_rejected_login(
    proxy: LoginProxy, tmp_path: Path, certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    login = ProxySettings(url=proxy.url, credentials_dir=login_secret(tmp_path / "login"))
    wrong = ProxySettings(url=proxy.url, credentials_dir=login_secret(tmp_path / "wrong", password="a-wrong-password"))
    ca_file = certificate.certificate
    with schema_registry() as server:
        first = str(server.register("flights-value", json.dumps(FLIGHT)))
        with registry_client(server, proxy=login, ca_file=ca_file) as client:
            assert client.fetch("flights", first) is not None
        assert proxy.hosts[0].startswith("GET 127.0.0.1:")
        glue_id = "01234567-89ab-cdef-0123-456789abcdef"
        for connect, schema_id in (
            (registry_client(server, proxy=wrong, ca_file=ca_file), first),
            (apicurio_client(f"{server.url}/apis/registry/v3", proxy=wrong, ca_file=ca_file), first),
            (glue_client(server.url, proxy=wrong, ca_file=ca_file), glue_id),
        ):
            with connect as rejected, pytest.raises(InvalidCredentials, match="the proxy rejects the login") as error:
                rejected.fetch("flights", schema_id)
            assert "a-wrong-password" not in str(error.value)


def test_check_store_ends_with_7_for_a_rejected_login(
    store: VersityGW, certificate: Certificate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with login_proxy() as proxy:
        spec = {
            "kafka": {"bootstrapServers": "localhost:9092", "topics": ["flights"]},
            "rotation": {"flushSize": 1},
            "s3": {
                "bucket": "archive",
                "endpoint": store.endpoint,
                "region": "us-east-1",
                "pathStyle": True,
                "credentials": {"secret": "keys"},
                "caSecret": {"secret": "authority", "key": certificate.certificate.name},
                "proxy": {"url": proxy.url, "credentials": {"secret": "login"}},
            },
        }
        head = {"apiVersion": "s3sink.io/v1alpha1", "kind": "S3Sink", "metadata": {"name": "flights"}}
        (tmp_path / "sink.yaml").write_text(json.dumps({**head, "spec": spec}))
        secrets = {
            "keys": credentials_secret(tmp_path / "keys"),
            "authority": certificate.certificate.parent,
            "login": login_secret(tmp_path / "login", password="a-wrong-password"),
        }
        flags = [word for name, folder in secrets.items() for word in ("--secret", f"{name}={folder}")]
        assert cli.main(["check-store", str(tmp_path / "sink.yaml"), *flags]) == 7
        shown = capsys.readouterr()
        assert "access              FAILED (InvalidCredentials)" in shown.out
        assert not any(text in shown.out + shown.err for text in ("a-wrong-password", SECRET_KEY, ACCESS_KEY))
        flags[-1] = f"login={login_secret(tmp_path / 'right')}"
        assert cli.main(["check-store", str(tmp_path / "sink.yaml"), *flags]) == 0
