"""Redaction by patterns: secret values in any kind of quotes are hidden, other text is unchanged."""

from __future__ import annotations

import pytest

from sink_job.api.redaction import named_secrets, redacted

SECRETS = {
    "property": "ssl.keystore.password=hunter22, retries=3",
    "login": 'ScramLoginModule required username="kafka" password="hunter22";',
    "login in JSON": r'{"value": "required username=\"kafka\" password=\"hunter22\";"}',
    "login in JSON in JSON": r"password=\\\"hunter22\\\";",
    "a quote in the value": r'password="pre\"hunter22" next=1',
    "JSON": '{"password": "hunter22"}',
    "Python": "{'sasl.password': 'hunter22'}",
    "environment": "AWS_SECRET_ACCESS_KEY=hunter22",
    "with a dash": "secret-key=hunter22",
    "private key": "private_key=hunter22",
    "short header": "Authorization: Basic hunter22",
    "bearer": "Bearer hunter22.hunter22-hunter22",
    "address": "http://user:hunter22@host:8081/subjects",
}


@pytest.mark.parametrize("text", SECRETS.values(), ids=SECRETS)
def test_a_secret_is_hidden(text: str) -> None:
    assert "hunter22" not in redacted(text)


@pytest.mark.parametrize(
    "text",
    [
        "spec.s3.credentials: unknown field",
        "spec.kafka.properties.sasl.password: cannot be set here",
        "tokens=5, secrets = 3 are missing",
        "authorization: denied by policy",
        "http://host:8081/subjects",
        'username="kafka"',
    ],
)
def test_text_without_a_secret_is_unchanged(text: str) -> None:
    assert redacted(text) == text


def test_text_around_a_secret_is_unchanged() -> None:
    assert redacted("ssl.key.password=hunter22, retries=3") == "ssl.key.password=[hidden], retries=3"


@pytest.mark.parametrize("text", ["a-", "secret", "password='", 'password=\\"', "://a:", "bearer ", "token."])
def test_redaction_takes_linear_time(text: str) -> None:
    """A quadratic pattern would not finish within the test's time limit."""
    assert redacted(text * 200_000)


def test_the_secrets_of_a_jaas_login_are_found() -> None:
    assert list(named_secrets('required username="kafka" password="hunter22";')) == ["hunter22"]
