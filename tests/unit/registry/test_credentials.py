"""Credentials of a registry in a mounted Secret."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sink_job.api.errors import InvalidCredentials, SecretNotFound
from sink_job.registry.credentials import RegistryCredentials, read_credentials, stamp

OAUTH = {"clientId": "id", "clientSecret": "hidden", "tokenUrl": "https://login.example.com"}


def secret(folder: Path, **values: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for key, value in values.items():
        (folder / key).write_text(value + "\n")
    return folder


def test_a_user_has_a_password(tmp_path: Path) -> None:
    found = read_credentials(secret(tmp_path, username="u", password="p"))
    assert found == RegistryCredentials(username="u", password="p")


def test_an_oauth_client_may_have_a_scope(tmp_path: Path) -> None:
    found = read_credentials(secret(tmp_path, **OAUTH, scope="read"))
    assert (found.client_id, found.scope) == ("id", "read")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "has none of the keys"),
        ({"username": "u"}, "has no password"),
        ({"clientId": "id"}, "has no clientSecret and no tokenUrl"),
        ({"token": "t", "username": "u", "password": "p"}, r"has keys of 2 kinds \(username, token\)"),
    ],
)
def test_other_sets_of_keys_are_rejected(tmp_path: Path, values: dict[str, str], message: str) -> None:
    with pytest.raises(SecretNotFound, match=message):
        read_credentials(secret(tmp_path, **values))


@pytest.mark.parametrize(
    "values",
    [
        {"username": "u", "password": "hid\nden"},
        {"username": "u\x7f", "password": "hidden"},
        {"token": "hid\rden"},
        {**OAUTH, "clientSecret": "hid\x00den"},
        {"token": "hidden", "logicalCluster": "lsrc\n1"},
    ],
    ids=["password", "user", "token", "client secret", "logical cluster"],
)
def test_control_characters_are_rejected_without_the_value(tmp_path: Path, values: dict[str, str]) -> None:
    with pytest.raises(InvalidCredentials, match="contains a line break or another control character") as raised:
        read_credentials(secret(tmp_path, **values))
    assert "hid" not in str(raised.value)
    assert raised.value.exit_code == 7


def test_a_token_that_is_not_ascii_is_rejected_without_the_value(tmp_path: Path) -> None:
    with pytest.raises(InvalidCredentials, match="token contains a character that is not ASCII") as raised:
        read_credentials(secret(tmp_path, token="hidd\u00e9n"))
    assert "hidd" not in str(raised.value)


def test_a_password_may_have_characters_beyond_ascii(tmp_path: Path) -> None:
    assert read_credentials(secret(tmp_path, username="u", password="p\u00e4ss")).password == "p\u00e4ss"


def test_no_secret_is_shown(tmp_path: Path) -> None:
    found = read_credentials(secret(tmp_path, **OAUTH))
    assert repr(found) == "RegistryCredentials(client_id, client_secret, token_url)"


def test_the_values_to_redact_are_listed() -> None:
    found = RegistryCredentials(username="u", password="p", token="t", client_secret="c")
    assert found.secrets == ["p", "dTpw", "t", "c"]


def test_all_keys_are_of_one_version_of_the_secret(tmp_path: Path) -> None:
    secret(tmp_path / "..1", username="u", password="p")
    (tmp_path / "..data").symlink_to("..1")
    assert read_credentials(tmp_path).username == "u"


def test_a_changed_key_changes_the_stamp(tmp_path: Path) -> None:
    before = stamp(secret(tmp_path, token="a"))
    secret(tmp_path, token="b")
    os.utime(tmp_path / "token", ns=(1, 1))
    assert stamp(tmp_path) != before
