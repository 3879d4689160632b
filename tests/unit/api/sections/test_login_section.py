"""The section `spec.kafka.login`."""

from __future__ import annotations

import pytest

from sink_job.api.enums import LoginType
from sink_job.api.sections.login_section import AUTHORITY_PROPERTIES, LoginSpec, login_properties
from tests.unit.api.manifests import spec_errors

USERNAME, URL = "spec.kafka.login.username", "spec.kafka.login.tokenUrl"


@pytest.mark.parametrize("kind", LoginType)
def test_a_login_sets_the_protocol(kind: LoginType) -> None:
    assert "security.protocol" in login_properties(kind)


def test_authorities_of_a_login_replace_those_of_properties() -> None:
    login = {"type": "Plain", "credentials": {"secret": "login"}}
    assert not set(AUTHORITY_PROPERTIES) & set(LoginSpec.model_validate(login).properties())
    with_authorities = LoginSpec.model_validate(login | {"caSecret": {"secret": "ca", "key": "ca.crt"}})
    assert set(AUTHORITY_PROPERTIES) <= set(with_authorities.properties())


@pytest.mark.parametrize(("name", "sentence"), [("", "is empty"), ("a\nb", "contains control characters")])
def test_the_name_of_a_user_is_text_of_one_line(name: str, sentence: str) -> None:
    [error] = spec_errors({"spec.kafka.login": {"type": "Plain", "credentials": {"secret": "a"}, "username": name}})
    assert error.startswith(f"{USERNAME}: ")
    assert error.endswith(sentence)


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("login.example.com/token", "is not the URL of a token endpoint: use https://host/path"),
        ("https:///token", "is not the URL of a token endpoint: use https://host/path"),
        ("https://a:b@example.com/token", "contains credentials: put them into the Secret of spec.kafka.login"),
        ("https://example.com/token,https://other", "without blanks, commas, quotes, backslashes, $ and braces"),
        ("https://example.com/to ken", "without blanks, commas, quotes, backslashes, $ and braces"),
        ("https://example.com/'token", "without blanks, commas, quotes, backslashes, $ and braces"),
        ("https://example.com/${env:TOKEN}", "without blanks, commas, quotes, backslashes, $ and braces"),
        (f"https://example.com/{'a' * 500}", "is longer than 512 characters"),
    ],
)
def test_a_token_endpoint_is_one_url(url: str, sentence: str) -> None:
    login = {"type": "OAuth", "credentials": {"secret": "a"}, "tokenUrl": url}
    [error] = spec_errors({"spec.kafka.login": login})
    assert error.startswith(f"{URL}: ")
    assert sentence in error
