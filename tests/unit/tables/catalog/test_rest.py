"""The connections of a REST catalog: login, certificate authorities, proxy, and no second request."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.table.update import AddSchemaUpdate, AssertCreate, SetPropertiesUpdate
from pyiceberg.types import LongType, NestedField

from devtools.certificates import Certificate, self_signed
from sink_job.api.enums import CatalogType
from sink_job.api.errors import AccessDenied, ConfigurationError, TableNotRegistered, TransientError
from sink_job.api.sections.secret_refs import SecretRef
from sink_job.api.sections.tables_section import CatalogSpec
from sink_job.s3.proxy import ProxySettings
from sink_job.tables.catalog import rest
from sink_job.tables.catalog.access import CatalogAccess
from sink_job.tables.catalogs import CommitUnknown, IcebergCatalog, open_catalog
from tests.support.catalog_front import CLIENT, CLIENT_SECRET, TOKEN, CatalogFront, catalog_front, login_folder
from tests.support.login_proxy import login_proxy, login_secret
from tests.support.memory_s3 import MemoryS3


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return self_signed(tmp_path_factory.mktemp("certificate"))


def opened(front: CatalogFront, access: CatalogAccess) -> IcebergCatalog:
    client: Any = MemoryS3()
    credentials = None if access.credentials_dir is None else SecretRef(secret="login")
    spec = CatalogSpec(type=CatalogType.REST, uri=front.url, credentials=credentials)
    return open_catalog(spec, lambda bucket: client, access)


def test_every_request_has_the_login_and_trusts_the_authority_of_the_manifest(
    certificate: Certificate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "other.crt"))
    folder = login_folder(tmp_path / "login", clientId=CLIENT, clientSecret=CLIENT_SECRET)
    with catalog_front(certificate) as front:
        access = CatalogAccess(credentials_dir=folder, ca_file=certificate.certificate)
        assert opened(front, access).load("lake.log") is None
    assert front.requests == [
        "POST /v1/oauth/tokens",
        "GET /v1/config",
        "GET /v1/namespaces/lake/tables/log",
    ]


def test_a_certificate_of_another_authority_is_a_configuration_error(certificate: Certificate) -> None:
    with (
        catalog_front(certificate) as front,
        pytest.raises(ConfigurationError, match=r"is not trusted: set its certificate authority in spec\.tables"),
    ):
        opened(front, CatalogAccess())


@pytest.mark.parametrize(
    ("keys", "advice"), [({}, r"Set spec\.tables\.catalog\.credentials"), ({"token": "wrong"}, "Fix the Secret")]
)
def test_a_rejected_login_names_the_secret(keys: dict[str, str], advice: str, tmp_path: Path) -> None:
    folder = login_folder(tmp_path / "login", **keys) if keys else None
    with catalog_front() as front, pytest.raises(AccessDenied, match=advice):
        opened(front, CatalogAccess(credentials_dir=folder))


def test_a_token_that_ended_early_is_fetched_again(tmp_path: Path) -> None:
    folder = login_folder(tmp_path / "login", clientId=CLIENT, clientSecret=CLIENT_SECRET)
    with catalog_front() as front:
        catalog = opened(front, CatalogAccess(credentials_dir=folder))
        front.accepted.clear()
        assert catalog.load("lake.log") is None
    assert len(front.forms) == 2


def test_requests_use_the_proxy_of_the_sink_with_its_login(tmp_path: Path, certificate: Certificate) -> None:
    folder = login_folder(tmp_path / "login", token=TOKEN)
    with login_proxy() as proxy, catalog_front(certificate) as front:
        settings = ProxySettings(url=proxy.url, credentials_dir=login_secret(tmp_path / "proxy"))
        access = CatalogAccess(credentials_dir=folder, ca_file=certificate.certificate, proxy=settings)
        opened(front, access)
    assert [each.split()[0] for each in proxy.hosts] == ["CONNECT"]


def test_hosts_without_the_proxy_do_not_use_that_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    settings = ProxySettings(url="http://127.0.0.1:9", no_proxy=("127.0.0.0/8",))
    with catalog_front() as front:
        opened(front, CatalogAccess(credentials_dir=login_folder(tmp_path / "login", token=TOKEN), proxy=settings))
    assert front.requests == ["GET /v1/config"]


def test_a_request_is_not_sent_again_after_a_lost_reply(tmp_path: Path) -> None:
    with catalog_front() as front:
        front.accepted.add("")
        catalog = opened(front, CatalogAccess(timeout_s=10))
        front.requests.clear()
        front.loses = 9
        session = catalog._catalog._session  # type: ignore[attr-defined]
        with pytest.raises(Exception, match="without response"):
            session.post(f"{front.url}/v1/namespaces/lake/tables/log", json={})
    assert len(front.requests) == 1


def test_a_catalog_that_does_not_answer_in_time_is_a_transient_error() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        front = CatalogFront(url=f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(TransientError, match="Read timed out"):
            opened(front, CatalogAccess(timeout_s=0.2))


@pytest.mark.parametrize("size", [20_000, 2_000_000])
def test_a_response_that_is_too_large_is_an_error_and_not_read(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "MAX_METADATA", 100_000)
    with catalog_front() as front:
        front.accepted.add("")
        front.overrides = {"text": "x" * size}
        if size < 100_000:
            assert opened(front, CatalogAccess()).load("lake.log") is None
            return
        with pytest.raises(TableNotRegistered, match=r"GET http://.*/v1/config has more than 100,000 bytes: expire"):
            opened(front, CatalogAccess())


def test_the_configuration_of_a_server_chooses_no_class_and_no_other_address(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    custom = {"type": "custom", "impl": "os.system", "custom": {"command": f"touch {mark}"}}
    with catalog_front() as front:
        front.accepted.add("")
        front.overrides = {"auth": custom, "prefix": "lake", "rest.sigv4-enabled": "true"}
        assert opened(front, CatalogAccess()).load("lake.log") is None
        assert front.requests[-1] == "GET /v1/lake/namespaces/lake/tables/log"
        front.overrides = {"uri": "https://evil.example.com"}
        with pytest.raises(ConfigurationError, match="names another address"):
            opened(front, CatalogAccess())
    assert not mark.exists()


def test_a_commit_has_the_forms_of_updates_that_all_servers_accept() -> None:
    """Nessie 0.99 rejects new columns without last-column-id, and two updates of properties."""
    table: Any = SimpleNamespace(name=lambda: ("lake", "log"), metadata=SimpleNamespace(last_column_id=9))
    schemas = [Schema(NestedField(number, "x", LongType(), required=False)) for number in (3, 12)]
    properties = [SetPropertiesUpdate(updates=each) for each in ({"a": "1", "b": "1"}, {"b": "2"})]
    with catalog_front() as front:
        front.accepted.add("")
        catalog = opened(front, CatalogAccess())
        with pytest.raises(CommitUnknown, match="no table"):
            catalog.commit(table, (AssertCreate(),), (properties[0], *map(_added, schemas), properties[1]))
    sent = json.loads(front.commits[-1])
    assert sent["requirements"] == [{"type": "assert-create"}]
    assert [each["action"] for each in sent["updates"]] == ["add-schema", "add-schema", "set-properties"]
    assert [each["last-column-id"] for each in sent["updates"][:2]] == [9, 12]
    assert sent["updates"][0]["schema"]["fields"][0]["id"] == 3
    assert sent["updates"][2]["updates"] == {"a": "1", "b": "2"}


def _added(schema: Schema) -> AddSchemaUpdate:
    return AddSchemaUpdate(schema=schema)
