"""The error that each answer of AWS Glue and STS, and each exception of botocore, leads to."""

from __future__ import annotations

import pytest
from botocore import exceptions as boto
from botocore.parsers import ResponseParserError

from sink_job.api.errors import AccessDenied, ClockSkew, ConfigurationError, InvalidCredentials
from sink_job.registry.clients.glue_errors import failure_of
from sink_job.registry.failures import SCHEMA_NOT_FOUND, Reaction, RegistryFailure


def failure(error: Exception) -> RegistryFailure:
    found = failure_of(error)
    assert found is not None
    return found


def answered(code: str, message: str = "no", status: int = 400) -> RegistryFailure:
    answer = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return failure(boto.ClientError(answer, "GetSchemaVersion"))  # type: ignore[arg-type]


def test_an_id_that_does_not_exist_is_left_to_the_caller() -> None:
    found = answered("EntityNotFoundException")
    assert (found.reaction, found.code) == (Reaction.ABSENT, SCHEMA_NOT_FOUND)
    assert found.text == "GetSchemaVersion: EntityNotFoundException (HTTP 400): no"


@pytest.mark.parametrize(
    ("code", "status"),
    [("ThrottlingException", 400), ("ExpiredToken", 403), ("IDPCommunicationError", 400), ("", 429), ("Other", 503)],
)
def test_throttling_and_failures_of_the_service_are_retried(code: str, status: int) -> None:
    assert answered(code, status=status).reaction is Reaction.TRANSIENT


@pytest.mark.parametrize(
    ("code", "message", "status", "raises", "text"),
    [
        ("InvalidSignatureException", "Signature expired: x", 403, ClockSkew, "this host's clock differs from that of"),
        ("SignatureDoesNotMatch", "Signature not yet current: x", 403, ClockSkew, "this host's clock differs"),
        ("InvalidSignatureException", "no match", 403, InvalidCredentials, "AWS does not accept the credentials: fix"),
        ("UnrecognizedClientException", "no", 400, InvalidCredentials, "AWS does not accept the credentials: fix"),
        ("AccessDeniedException", "no", 400, AccessDenied, "access denied: the driver's identity needs glue:GetSchema"),
        ("Unknown", "no", 403, AccessDenied, "access denied: "),
        ("Unknown", "no", 404, ConfigurationError, "this endpoint is not that of AWS Glue: fix spec.format.registry"),
    ],
)
def test_another_answer_needs_user_action(
    code: str, message: str, status: int, raises: type[ConfigurationError], text: str
) -> None:
    found = answered(code, message, status)
    assert (found.reaction, found.raises) == (Reaction.CONFIGURATION, raises)
    assert found.text.startswith(text)
    assert f"(GetSchemaVersion: {code} (HTTP {status}): {message})" in found.text


def test_an_answer_without_code_and_message_is_shown_with_its_status() -> None:
    found = failure(boto.ClientError({}, "GetSchemaVersion"))
    assert "(GetSchemaVersion: error (HTTP 0))" in found.text


@pytest.mark.parametrize(
    "error",
    [
        boto.EndpointConnectionError(endpoint_url="https://glue"),
        boto.ReadTimeoutError(endpoint_url="https://glue"),
        boto.IncompleteReadError(actual_bytes=1, expected_bytes=2),
        boto.CredentialRetrievalError(provider="assume-role", error_msg="no answer"),
        boto.SSLError(endpoint_url="https://glue", error=Exception("EOF occurred in violation of protocol")),
    ],
    ids=lambda error: type(error).__name__,
)
def test_no_answer_is_retried(error: Exception) -> None:
    found = failure(error)
    assert found.reaction is Reaction.TRANSIENT
    assert found.text.startswith(f"no answer ({type(error).__name__}: ")


@pytest.mark.parametrize(
    ("error", "raises", "text"),
    [
        (boto.NoCredentialsError(), InvalidCredentials, "no credentials: give the driver's pod an IAM role"),
        (boto.PartialCredentialsError(provider="env", cred_var="x"), InvalidCredentials, "no credentials: give the"),
        (boto.NoRegionError(), ConfigurationError, "NoRegionError: You must specify a region."),
        (
            boto.SSLError(endpoint_url="https://glue", error=Exception("certificate verify failed")),
            ConfigurationError,
            "the endpoint's certificate is not trusted: set its certificate authority in spec.format.registry.caSecret",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_a_setting_that_botocore_rejects_needs_user_action(
    error: Exception, raises: type[ConfigurationError], text: str
) -> None:
    found = failure(error)
    assert (found.reaction, found.raises) == (Reaction.CONFIGURATION, raises)
    assert found.text.startswith(text)


@pytest.mark.parametrize("error", [ResponseParserError("html"), ValueError("x"), KeyError("SchemaArn")], ids=repr)
def test_an_answer_of_another_form_is_retried(error: Exception) -> None:
    found = failure(error)
    assert found.reaction is Reaction.TRANSIENT
    assert found.text.startswith(f"the answer is not the answer of AWS Glue ({type(error).__name__}: ")


def test_another_exception_is_a_bug() -> None:
    assert failure_of(ZeroDivisionError()) is None
