"""The error that each answer of a registry, and each exception of its client, leads to."""

from __future__ import annotations

import json
import ssl

import httpx2
import pytest
from confluent_kafka.schema_registry.error import SchemaRegistryError

from sink_job.api.errors import AccessDenied, ConfigurationError, InvalidCredentials, RegistryNotFound
from sink_job.registry.clients.errors import failure_of, is_missing_endpoint, text_of
from sink_job.registry.clients.token import TokenError
from sink_job.registry.failures import Reaction, RegistryFailure


def failure(error: Exception, *, has_credentials: bool = False) -> RegistryFailure:
    found = failure_of(error, has_credentials=has_credentials)
    assert found is not None
    return found


def caused(error: Exception, cause: Exception) -> Exception:
    """The error as a client library raises it after `cause`."""
    error.__cause__ = cause
    return error


def tls(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {reason}]")
    error.reason = reason
    return error


@pytest.mark.parametrize("code", [40401, 40402, 40403, "40403"])
def test_an_id_that_does_not_exist_is_left_to_the_caller(code: int | str) -> None:
    found = failure(SchemaRegistryError(404, code, "Schema not found"))  # type: ignore[arg-type]
    assert (found.reaction, found.code, found.text) == (Reaction.ABSENT, int(code), "HTTP 404: Schema not found")


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_an_overloaded_registry_is_retried(status: int) -> None:
    found = failure(SchemaRegistryError(status, 50001, "later"))
    assert (found.reaction, found.text) == (Reaction.TRANSIENT, f"HTTP {status}: later")


@pytest.mark.parametrize(
    ("status", "has_credentials", "raises", "text"),
    [
        (401, False, InvalidCredentials, "the registry requires credentials: set spec.format.registry.credentials"),
        (401, True, InvalidCredentials, "fix the Secret referenced by spec.format.registry.credentials"),
        (403, True, AccessDenied, "access denied: the credentials need read access to schemas and subjects"),
        (404, True, RegistryNotFound, "this URL has no schema registry: fix spec.format.registry.url"),
        (400, True, ConfigurationError, "the registry rejected the request"),
        (301, True, ConfigurationError, "the registry rejected the request"),
    ],
)
def test_another_answer_needs_user_action(
    status: int, has_credentials: bool, raises: type[ConfigurationError], text: str
) -> None:
    found = failure(SchemaRegistryError(status, status, "no"), has_credentials=has_credentials)
    assert (found.reaction, found.raises) == (Reaction.CONFIGURATION, raises)
    assert found.text.startswith(text)
    assert f"(HTTP {status}: no)" in found.text


@pytest.mark.parametrize("reason", ["TLSV1_ALERT_UNKNOWN_CA", "TLSV13_ALERT_CERTIFICATE_REQUIRED"])
def test_a_rejected_client_certificate_is_named(reason: str) -> None:
    found = failure(caused(httpx2.ReadError("closed"), tls(reason)))
    assert found.reaction is Reaction.CONFIGURATION
    assert found.text.startswith("the registry does not accept the client certificate: set spec.format.registry.client")
    assert reason in found.text


def test_an_untrusted_certificate_needs_its_authority() -> None:
    error = ssl.SSLCertVerificationError(1, "verify failed")
    error.verify_message = "self-signed certificate"
    found = failure(caused(httpx2.ConnectError("failed"), error))
    assert found.reaction is Reaction.CONFIGURATION
    assert "spec.format.registry.caSecret (self-signed certificate)" in found.text


@pytest.mark.parametrize("reason", ["WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"])
def test_a_port_without_tls_is_suspect(reason: str) -> None:
    found = failure(caused(httpx2.ConnectError("failed"), tls(reason)))
    assert (found.reaction, found.raises) == (Reaction.SUSPECT, RegistryNotFound)
    assert found.text == (
        f"the port has no TLS: fix spec.format.registry.url (https:// or http://, and the port) ({reason})"
    )


def test_another_failure_of_tls_is_retried() -> None:
    assert failure(caused(httpx2.ConnectError("failed"), tls("UNEXPECTED_EOF_WHILE_READING"))).reaction is (
        Reaction.TRANSIENT
    )


@pytest.mark.parametrize(("answer", "reaction"), [(" <html>", Reaction.SUSPECT), ('{"schema": ', Reaction.TRANSIENT)])
def test_a_web_page_is_suspect_and_a_truncated_answer_is_retried(answer: str, reaction: Reaction) -> None:
    with pytest.raises(json.JSONDecodeError) as raised:
        json.loads(answer)
    assert failure(raised.value).reaction is reaction


def test_a_url_that_is_none_needs_user_action() -> None:
    found = failure(httpx2.InvalidURL("Invalid port"))
    assert found.reaction is Reaction.CONFIGURATION
    assert found.text.endswith("(InvalidURL: Invalid port)")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (httpx2.ConnectError("connection refused"), "no answer (ConnectError: connection refused)"),
        (httpx2.ReadTimeout(""), "no answer (ReadTimeout)"),
        (caused(KeyError("x"), httpx2.ConnectError("closed")), "no answer (KeyError: 'x')"),
        (ValueError("no schema"), "the answer is not the answer of a schema registry (ValueError: no schema)"),
        (KeyError("schema"), "the answer is not the answer of a schema registry (KeyError: 'schema')"),
        (AttributeError("get"), "the answer is not the answer of a schema registry (AttributeError: get)"),
    ],
    ids=repr,
)
def test_no_answer_and_another_answer_are_retried(error: Exception, text: str) -> None:
    found = failure(error)
    assert (found.reaction, found.text) == (Reaction.TRANSIENT, text)


def test_a_missing_token_has_the_failure_of_its_endpoint() -> None:
    rejected = RegistryFailure(Reaction.CONFIGURATION, "rejected", raises=InvalidCredentials)
    assert failure(caused(ValueError("no token"), TokenError(rejected))) == rejected


def test_another_exception_is_a_bug() -> None:
    assert failure_of(ZeroDivisionError(), has_credentials=False) is None
    assert failure_of(RuntimeError("closed"), has_credentials=False) is None


@pytest.mark.parametrize(
    ("status", "code", "missing"), [(404, 404, True), (405, 405, True), (404, 40403, False), (500, 404, False)]
)
def test_a_missing_path_is_not_a_missing_schema(status: int, code: int, missing: bool) -> None:
    assert is_missing_endpoint(SchemaRegistryError(status, code, "no")) is missing


def test_a_long_answer_is_one_short_line() -> None:
    text = text_of(SchemaRegistryError(500, -1, "a\n  b " + "x" * 300))
    assert text.startswith("HTTP 500: a b xxx")
    assert (len(text), text[-1]) == (len("HTTP 500: ") + 200, "…")
