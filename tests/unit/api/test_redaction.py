"""What a text's own words say is secret is hidden, in whatever quotes, and nothing else."""

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
        "spec.kafka.properties.sasl.password: cannot be written here",
        "tokens=5, secrets = 3 are missing",
        "authorization: denied by policy",
        "http://host:8081/subjects",
        'username="kafka"',
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redacted(text) == text


def test_what_stands_around_a_secret_stays() -> None:
    assert redacted("ssl.key.password=hunter22, retries=3") == "ssl.key.password=[hidden], retries=3"


@pytest.mark.parametrize("piece", ["a-", "secret", "password='", 'password=\\"', "://a:", "bearer ", "token."])
def test_a_long_text_made_to_be_slow_is_read_in_one_go(piece: str) -> None:
    """One that takes time by the square of its length would not come to its end."""
    assert redacted(piece * 200_000)


def test_the_secrets_of_a_login_are_found() -> None:
    assert list(named_secrets('required username="kafka" password="hunter22";')) == ["hunter22"]
