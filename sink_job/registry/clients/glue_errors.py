"""Maps the error codes of AWS Glue and STS, and botocore's exceptions, to failures of a request to a registry.

Source: the API references of AWS Glue (GetSchemaVersion, common errors) and AWS STS (AssumeRole,
AssumeRoleWithWebIdentity).
"""

from __future__ import annotations

from typing import Final

from botocore import exceptions as boto
from botocore.parsers import ResponseParserError

from sink_job.api.errors import AccessDenied, ClockSkew, ConfigurationError, InvalidCredentials
from sink_job.registry.failures import SCHEMA_NOT_FOUND, Reaction, RegistryFailure
from sink_job.s3.access.aws_clients import DENIALS, INVALID_KEYS
from sink_job.s3.proxy import PROXY_LOGIN, REJECTED, proxy_failure

_DENIED: Final = (
    "access denied: the driver's identity needs glue:GetSchemaVersion, and sts:AssumeRole for "
    "spec.format.registry.assumeRole"
)
_KEYS: Final = "AWS does not accept the credentials: fix the Secret referenced by spec.format.registry.credentials"
_NO_KEYS: Final = (
    "no credentials: give the driver's pod an IAM role (spec.serviceAccount.annotations or EKS Pod Identity), set "
    "spec.format.registry.credentials, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
)
_CLOCK: Final = "this host's clock differs from that of AWS: synchronize it (NTP, chrony)"
_UNTRUSTED: Final = (
    "the endpoint's certificate is not trusted: set its certificate authority in spec.format.registry.caSecret"
)
_ENDPOINT: Final = "this endpoint is not that of AWS Glue: fix spec.format.registry.url and region"

_ABSENT: Final = frozenset(("EntityNotFoundException",))
_TRANSIENT: Final = frozenset(
    (
        "ThrottlingException",
        "Throttling",
        "ThrottledException",
        "RequestLimitExceeded",
        "TooManyRequestsException",
        "ProvisionedThroughputExceededException",
        "InternalServiceException",
        "InternalFailure",
        "InternalServerError",
        "ServiceUnavailable",
        "OperationTimeoutException",
        "RequestTimeout",
        "IDPCommunicationError",
        "ExpiredToken",  # another process renews the token
        "ExpiredTokenException",
    )
)
_INVALID: Final = INVALID_KEYS | {"IncompleteSignatureException", "IDPRejectedClaim"}
_SKEWS: Final = ("Signature expired", "Signature not yet current")


def failure_of(error: Exception) -> RegistryFailure | None:
    """The failure that `error` means. None if it is neither an answer nor a network error, but a bug."""
    if isinstance(error, boto.ClientError):
        return _answered(error)
    if isinstance(error, boto.BotoCoreError):
        return _unanswered(error)
    if isinstance(error, ResponseParserError | ValueError | KeyError):  # a proxy's page, or a truncated answer
        return RegistryFailure(
            Reaction.TRANSIENT, f"the answer is not the answer of AWS Glue ({type(error).__name__}: {error})"
        )
    return None


def _answered(error: boto.ClientError) -> RegistryFailure:
    answer = error.response.get("Error", {})
    code, message = str(answer.get("Code", "")), str(answer.get("Message", ""))
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    text = f"{error.operation_name}: {code or 'error'} (HTTP {status}){': ' if message else ''}{message}"
    if status == PROXY_LOGIN:
        return _configuration(REJECTED, InvalidCredentials)
    if code in _ABSENT:
        return RegistryFailure(Reaction.ABSENT, text, SCHEMA_NOT_FOUND)
    if code in _TRANSIENT or status == 429 or status >= 500:
        return RegistryFailure(Reaction.TRANSIENT, text)
    if code in _INVALID and message.startswith(_SKEWS):
        return _configuration(f"{_CLOCK} ({text})", ClockSkew)
    if code in _INVALID:
        return _configuration(f"{_KEYS} ({text})", InvalidCredentials)
    if code in DENIALS or status == 403:
        return _configuration(f"{_DENIED} ({text})", AccessDenied)
    return _configuration(f"{_ENDPOINT} ({text})")


def _unanswered(error: boto.BotoCoreError) -> RegistryFailure:
    name = type(error).__name__
    if isinstance(error, boto.NoCredentialsError | boto.PartialCredentialsError):
        return _configuration(_NO_KEYS, InvalidCredentials)
    if isinstance(error, boto.ProxyConnectionError) and (rejection := proxy_failure(str(error.kwargs.get("error")))):
        advice, is_login = rejection
        return _configuration(advice, InvalidCredentials if is_login else AccessDenied)
    if isinstance(error, boto.SSLError) and "certificate verify failed" in str(error):
        return _configuration(_UNTRUSTED)
    transient = (boto.HTTPClientError, boto.ConnectionError, boto.IncompleteReadError)
    if isinstance(error, (*transient, boto.CredentialRetrievalError, boto.MetadataRetrievalError)):
        return RegistryFailure(Reaction.TRANSIENT, f"no answer ({name}: {error})")
    return _configuration(f"{name}: {error}")


def _configuration(text: str, raises: type[ConfigurationError] = ConfigurationError) -> RegistryFailure:
    return RegistryFailure(Reaction.CONFIGURATION, text, raises=raises)
