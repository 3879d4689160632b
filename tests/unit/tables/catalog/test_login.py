"""The login of a REST catalog, and the tokens of its OAuth endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from sink_job.api.errors import InvalidCredentials, SecretNotFound, TransientError
from sink_job.tables.catalog.login import CatalogLogin
from tests.support.catalog_front import (
    BASIC,
    CLIENT,
    CLIENT_SECRET,
    PASSWORD,
    USER,
    CatalogFront,
    catalog_front,
    login_folder,
)


class Login:
    """A login at an endpoint; `hidden` are the secrets that it reports."""

    def __init__(self, folder: Path, front: CatalogFront) -> None:
        self.folder = folder / "login"
        self.hidden: set[str] = set()
        self.insecure = False
        self._url = f"{front.url}/v1/oauth/tokens"

    def opened(self, **keys: str) -> CatalogLogin:
        login_folder(self.folder, **keys)
        return CatalogLogin(self.folder, self._url, requests.Session, self.hidden.update, insecure=self.insecure)


@pytest.fixture
def front() -> Iterator[CatalogFront]:
    with catalog_front() as found:
        yield found


@pytest.fixture
def login(tmp_path: Path, front: CatalogFront) -> Login:
    return Login(tmp_path, front)


def test_a_token_and_a_user_are_sent_as_they_are(login: Login, tmp_path: Path) -> None:
    assert login.opened(token="abc").auth_header() == "Bearer abc"
    (login.folder / "token").unlink()
    assert login.opened(username=USER, password=PASSWORD).auth_header() == f"Basic {BASIC}"
    assert login.hidden == {"abc", PASSWORD, BASIC}


def test_a_token_of_oauth_is_fetched_once_and_hidden(login: Login, front: CatalogFront) -> None:
    found = login.opened(clientId=CLIENT, clientSecret=CLIENT_SECRET)
    assert [found.auth_header(), found.auth_header()] == ["Bearer issued-token-1"] * 2
    assert front.forms == [
        {
            "grant_type": "client_credentials",
            "client_id": CLIENT,
            "client_secret": CLIENT_SECRET,
            "scope": "catalog",
        }
    ]
    assert login.hidden == {CLIENT_SECRET, "issued-token-1"}


def test_a_token_is_fetched_again_before_it_ends_and_after_a_rejection(login: Login, front: CatalogFront) -> None:
    front.lifetime_s = 0
    found = login.opened(clientId=CLIENT, clientSecret=CLIENT_SECRET)
    found.auth_header()
    front.lifetime_s = 3600
    assert [found.auth_header(), found.auth_header()] == ["Bearer issued-token-2"] * 2
    found.forget()
    assert found.auth_header() == "Bearer issued-token-3"


def test_a_token_url_has_no_scope_of_its_own(login: Login, front: CatalogFront) -> None:
    url = f"{front.url}/v1/oauth/tokens"
    found = login.opened(clientId=CLIENT, clientSecret=CLIENT_SECRET, tokenUrl=url)
    found.auth_header()
    login_folder(login.folder, scope="PRINCIPAL_ROLE:ALL")
    found.auth_header()
    assert [each.get("scope") for each in front.forms] == [None, "PRINCIPAL_ROLE:ALL"]


def test_a_rotated_secret_is_used_for_the_next_request(login: Login) -> None:
    found = login.opened(token="first")
    found.auth_header()
    (login.folder / "token").unlink()
    login_folder(login.folder, token="second")
    assert found.auth_header() == "Bearer second"
    assert login.hidden == {"first", "second"}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, "has none of the keys"),
        ({"token": "a", "username": "b", "password": "c"}, "has keys of 2 kinds"),
        ({"username": "b"}, "has no password"),
        ({"clientId": "b"}, "has no clientSecret"),
    ],
)
def test_a_secret_without_a_whole_login_is_rejected(login: Login, keys: dict[str, str], expected: str) -> None:
    with pytest.raises(SecretNotFound, match=expected):
        login.opened(**keys)


@pytest.mark.parametrize("keys", [{"token": "hush hush"}, {"username": "a", "password": "hush\nhush"}])
def test_a_value_that_a_header_cannot_contain_is_rejected_and_not_shown(login: Login, keys: dict[str, str]) -> None:
    with pytest.raises(InvalidCredentials, match="contains a character") as caught:
        login.opened(**keys)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://u:hush@host/token", "contains credentials"),
        ("http://host.example.com/hush", "is not encrypted"),
        ("hush", "is not a URL"),
    ],
)
def test_a_token_url_that_would_show_secrets_is_rejected(login: Login, url: str, expected: str) -> None:
    with pytest.raises(InvalidCredentials, match=expected) as caught:
        login.opened(clientId=CLIENT, clientSecret=CLIENT_SECRET, tokenUrl=url).auth_header()
    assert "hush" not in str(caught.value)


def test_a_token_url_without_tls_needs_insecure(login: Login) -> None:
    url = "http://tokens.invalid/token"
    login.insecure = True
    found = login.opened(clientId=CLIENT, clientSecret=CLIENT_SECRET, tokenUrl=url)
    with pytest.raises(TransientError, match="no answer"):
        found.auth_header()


@pytest.mark.parametrize(
    ("status", "kind"), [(400, InvalidCredentials), (503, TransientError), (302, InvalidCredentials)]
)
def test_an_error_of_the_token_endpoint_does_not_contain_its_answer(
    login: Login, front: CatalogFront, status: int, kind: type[Exception]
) -> None:
    front.rejects = status
    with pytest.raises(kind, match=f"HTTP {status}") as caught:
        login.opened(clientId=CLIENT, clientSecret=CLIENT_SECRET).auth_header()
    assert CLIENT_SECRET not in str(caught.value)


def test_a_token_endpoint_that_does_not_answer_is_a_transient_error(login: Login) -> None:
    found = login.opened(clientId=CLIENT, clientSecret=CLIENT_SECRET, tokenUrl="http://127.0.0.1:9/token")
    with pytest.raises(TransientError, match=r"the token endpoint http://127\.0\.0\.1:9/token: no answer"):
        found.auth_header()
