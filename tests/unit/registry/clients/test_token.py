"""Tokens of an OAuth client: when they are fetched, and the failure that each answer is."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import partial

import httpx2
import pytest
from authlib.integrations.httpx_client import OAuth2Client

from sink_job.api.errors import ConfigurationError, InvalidCredentials
from sink_job.registry.clients import token
from sink_job.registry.clients.token import OAuthToken, TokenError, check_token_url, shown_url
from sink_job.registry.credentials import RegistryCredentials
from sink_job.registry.failures import Reaction, RegistryFailure
from sink_job.registry.settings import RegistrySettings

URL = "https://login.example.com/token"
CREDENTIALS = RegistryCredentials(client_id="id", client_secret="hidden", token_url=f"{URL}?key=hidden", scope="read")
SETTINGS = RegistrySettings(urls=("https://registry",))
Answer = Callable[[httpx2.Request], httpx2.Response]


def tokens(
    monkeypatch: pytest.MonkeyPatch, answer: Answer, credentials: RegistryCredentials = CREDENTIALS
) -> OAuthToken:
    """The token of a client whose endpoint answers with `answer`."""
    monkeypatch.setattr(token, "OAuth2Client", partial(OAuth2Client, transport=httpx2.MockTransport(answer)))
    return OAuthToken(credentials, SETTINGS)


def failure(monkeypatch: pytest.MonkeyPatch, answer: Answer) -> RegistryFailure:
    with pytest.raises(TokenError) as raised:
        tokens(monkeypatch, answer)()
    assert "hidden" not in str(raised.value)
    return raised.value.failure


def granted(value: object = "abc", **fields: object) -> httpx2.Response:
    return httpx2.Response(200, json={"access_token": value, "token_type": "bearer", **fields})


def test_the_client_asks_with_its_id_secret_and_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        requests.append(request)
        return granted()

    assert tokens(monkeypatch, answer)() == "abc"
    [request] = requests
    assert request.content.decode() == "grant_type=client_credentials&scope=read"
    assert request.headers["authorization"] == "Basic aWQ6aGlkZGVu"


@pytest.mark.parametrize(("expires_in", "requests"), [(3600, 1), (61, 1), (59, 3), (None, 1)])
def test_a_token_is_fetched_again_when_it_expires_within_a_minute(
    monkeypatch: pytest.MonkeyPatch, expires_in: int | None, requests: int
) -> None:
    asked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(str(request.url))
        return granted(str(len(asked)), **({} if expires_in is None else {"expires_in": expires_in}))

    current = tokens(monkeypatch, answer)
    assert [current() for _ in range(3)] == [str(min(n, requests)) for n in (1, 2, 3)]


def test_after_a_failure_the_next_request_fetches_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [httpx2.Response(503), granted()]
    current = tokens(monkeypatch, lambda _: answers.pop(0))
    with pytest.raises(TokenError):
        current()
    assert current() == "abc"


def test_a_rejected_client_needs_other_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    found = failure(monkeypatch, lambda _: httpx2.Response(401, json={"error": "invalid_client"}))
    assert (found.reaction, found.raises) == (Reaction.CONFIGURATION, InvalidCredentials)
    assert found.text.startswith(f"the token endpoint {URL} rejected the client (invalid_client): fix clientId, ")


@pytest.mark.parametrize("reason", ["a\nb", 7, ""])
def test_a_reason_that_a_message_cannot_contain_is_not_shown(monkeypatch: pytest.MonkeyPatch, reason: object) -> None:
    found = failure(monkeypatch, lambda _: httpx2.Response(400, json={"error": reason or " "}))
    assert "rejected the client (no reason)" in found.text


@pytest.mark.parametrize(
    ("status", "reaction"),
    [
        (408, Reaction.TRANSIENT),
        (429, Reaction.TRANSIENT),
        (500, Reaction.TRANSIENT),
        (503, Reaction.TRANSIENT),
    ],
)
def test_an_endpoint_that_is_overloaded_is_retried(
    monkeypatch: pytest.MonkeyPatch, status: int, reaction: Reaction
) -> None:
    assert failure(monkeypatch, lambda _: httpx2.Response(status, text="later")).reaction is reaction


@pytest.mark.parametrize(
    "answer",
    [
        httpx2.Response(200, text="<html>"),
        httpx2.Response(200, json={}),
        httpx2.Response(200, json=["abc"]),
        granted("a token"),
        granted("tok\u00e9n"),
        granted(""),
        granted(7),
        granted(None),
    ],
    ids=lambda answer: answer.text,
)
def test_an_answer_without_a_usable_token_is_retried(monkeypatch: pytest.MonkeyPatch, answer: httpx2.Response) -> None:
    found = failure(monkeypatch, lambda _: answer)
    assert found.reaction is Reaction.TRANSIENT
    assert URL in found.text


def test_no_answer_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("to hidden")

    found = failure(monkeypatch, answer)
    assert (found.reaction, found.text) == (
        Reaction.TRANSIENT, f"the token endpoint {URL}: no answer (ConnectError)",
    )  # fmt: skip


def test_an_untrusted_certificate_needs_its_authority(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        error = ssl.SSLCertVerificationError(1, "failed")
        error.verify_message = "self-signed certificate"
        raise httpx2.ConnectError("failed") from error

    found = failure(monkeypatch, answer)
    assert found.reaction is Reaction.CONFIGURATION
    assert (
        "is not trusted (self-signed certificate): add its certificate authority to spec.format.registry" in found.text
    )


@pytest.mark.parametrize("url", [URL, "https://login.example.com:8443/a?b=c", "http://127.0.0.1:1/t", "http://[::1]/t"])
def test_a_token_url_has_tls_or_is_on_loopback(url: str) -> None:
    check_token_url(url, insecure=False)


def test_a_token_url_without_tls_needs_insecure() -> None:
    check_token_url("http://login.example.com", insecure=True)
    with pytest.raises(ConfigurationError, match=r"is not encrypted: use https://, or set .*insecure: true"):
        check_token_url("http://login.example.com", insecure=False)


@pytest.mark.parametrize("url", ["", "hidden", "ftp://hidden", "https://", "https://h:0", "https://h:x", "https://["])
def test_another_text_is_rejected_without_it(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"is not a URL: use https://host/path") as raised:
        check_token_url(url, insecure=True)
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize("url", ["https://hidden@h", "https://u:hidden@h", "https://:hidden@h"])
def test_credentials_in_a_token_url_are_rejected_without_them(url: str) -> None:
    with pytest.raises(ConfigurationError, match="contains credentials: use clientId and clientSecret") as raised:
        check_token_url(url, insecure=True)
    assert "hidden" not in str(raised.value)


def test_a_url_is_shown_without_user_and_query() -> None:
    assert shown_url("https://u:p@h:8443/path?key=value#f") == "https://h:8443/path"
