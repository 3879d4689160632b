"""Maps S3's error codes and botocore's exceptions to the errors of this project.

There are three kinds of failures:

- *Outcomes* are answers that the protocol handles (`PreconditionFailed`, `NoSuchUpload`, ...). They are raised at once.
  An outcome that the caller does not handle is a `TransientError`.
- *Transient* failures are retried. They become a `TransientError` when the retry time is over.
- All other failures need user action. They become a `ConfigurationError` whose message says what to do.

Messages name the bucket and the key, never a credential.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from botocore import exceptions as boto
from botocore.parsers import ResponseParserError

from sink_job.api.errors import (
    AccessDenied,
    BucketNotFound,
    ClockSkew,
    ConfigurationError,
    InvalidCredentials,
    SinkError,
    TransientError,
    UnsupportedStore,
)
from sink_job.s3.access.sts_errors import STS_OPERATIONS, role_failure
from sink_job.s3.proxy import PROXY_LOGIN, REJECTED, proxy_failure

__all__ = [
    "EXPIRED",
    "ChecksumMismatch",
    "Conflict",
    "EntityTooSmall",
    "FailureAction",
    "InvalidPart",
    "NoSuchUpload",
    "NotFound",
    "PreconditionFailed",
    "S3Failure",
    "S3Outcome",
    "failure_of",
    "translate",
]


class S3Outcome(TransientError):
    """An answer of S3 that the protocol handles. `key` is the object's key, `code` S3's error code.

    It is a TransientError. Where the protocol does not expect the answer (bytes damaged on the network, a 409 to a
    deletion), the process exits with code 75. Each step can be repeated.
    """

    def __init__(self, message: str, key: str | None = None, code: str = "") -> None:
        self.message = message
        self.key = key
        self.code = code
        super().__init__(message, key, code)

    def __str__(self) -> str:
        return self.message


class PreconditionFailed(S3Outcome):
    """412: an object exists at the key. An upload is not affected by it."""


class Conflict(S3Outcome):
    """409, several times in a row: another write or deletion of the key is in progress."""


class NotFound(S3Outcome):
    """No object exists at the key, or the object ends before the requested range."""


class NoSuchUpload(S3Outcome):
    """The upload does not exist any more: this or another process completed or aborted it."""


class InvalidPart(S3Outcome):
    """A part does not exist, or has another ETag or checksum than the completion request names."""


class EntityTooSmall(S3Outcome):
    """A part other than the last one is smaller than 5 MiB."""


class ChecksumMismatch(S3Outcome):
    """The bytes do not match their checksum."""


class FailureAction(Enum):
    """The reaction to a failure."""

    OUTCOME = "raise to the caller"
    TRANSIENT = "retry"
    CONFLICT = "retry a few times"
    CONFIGURATION = "user action required"


_OUTCOMES: Final[dict[str, type[S3Outcome]]] = {
    "PreconditionFailed": PreconditionFailed,
    "412": PreconditionFailed,
    "NoSuchKey": NotFound,
    "NoSuchVersion": NotFound,
    "InvalidRange": NotFound,
    "404": NotFound,
    "NoSuchUpload": NoSuchUpload,
    "InvalidPart": InvalidPart,
    "InvalidPartOrder": InvalidPart,
    "EntityTooSmall": EntityTooSmall,
    "BadDigest": ChecksumMismatch,
    "XAmzContentChecksumMismatch": ChecksumMismatch,
}

_TRANSIENT: Final = frozenset(
    (
        "SlowDown",
        "SlowDownRead",
        "SlowDownWrite",
        "InternalError",
        "ServiceUnavailable",
        "RequestTimeout",
        "RequestTimeoutException",
        "Throttling",
        "ThrottlingException",
        "RequestThrottled",
        "RequestLimitExceeded",
        "TooManyRequests",
        "BandwidthLimitExceeded",
        "IncompleteBody",
        "429",
    )
)

IN_OBJECTS: Final = "spec.s3"
"""The section of the manifest with the bucket that the messages name."""

EXPIRED: Final = frozenset(("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"))
"""Retried, because the token is renewed: by the client (of a role), or by another process (of a Secret)."""

_RENEW: Final = (
    "renew the session token in the Secret referenced by spec.s3.credentials; the new token is used without a restart"
)
_NO_BUCKET: Final = "no such bucket: create it, or fix spec.s3.bucket, spec.s3.region or spec.s3.endpoint"
_REGION: Final = "the bucket is in another region: fix spec.s3.region"
_DENIED: Final = (
    "access denied: the credentials need s3:PutObject, s3:GetObject, s3:DeleteObject, s3:AbortMultipartUpload, "
    "s3:ListBucket and s3:ListBucketMultipartUploads here"
)
_ACCESS_KEY: Final = "unknown access key: fix the Secret referenced by spec.s3.credentials"
_SECRET_KEY: Final = "the secret key does not match the access key: fix the Secret referenced by spec.s3.credentials"
_TOKEN: Final = "invalid session token: renew it in the Secret referenced by spec.s3.credentials"
_NO_KEYS: Final = (
    "no credentials: set spec.s3.credentials, give the pods an IAM role (spec.serviceAccount.annotations or EKS Pod "
    "Identity), or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
)
_NO_REGION: Final = "no region: set spec.s3.region, which is also that of AWS STS"
_UNTRUSTED: Final = "the store's certificate is not trusted: set its certificate authority in spec.s3.caSecret"
_UNSUPPORTED: Final = "the store does not implement a request that exactly-once delivery needs: use another store"
_CLOCK: Final = (
    "the difference between this host's clock and the store's is too large: synchronize the host's clock (NTP, chrony)"
)
_TOO_LONG: Final = "the key exceeds S3's limit of 1024 bytes: shorten spec.s3.topicsDir or the partitioner's path"

_CONFIGURATION: Final[dict[str, tuple[type[ConfigurationError], str]]] = {
    "NoSuchBucket": (BucketNotFound, _NO_BUCKET),
    "AuthorizationHeaderMalformed": (BucketNotFound, _REGION),
    "PermanentRedirect": (BucketNotFound, _REGION),
    "301": (BucketNotFound, _REGION),
    "AccessDenied": (AccessDenied, _DENIED),
    "AllAccessDisabled": (AccessDenied, _DENIED),
    "403": (AccessDenied, _DENIED),  # the answer to a HEAD, which has no body with a code
    "InvalidAccessKeyId": (InvalidCredentials, _ACCESS_KEY),
    "XAdminUserNotFound": (InvalidCredentials, _ACCESS_KEY),  # VersityGW's code, with status 404
    "SignatureDoesNotMatch": (InvalidCredentials, _SECRET_KEY),
    "InvalidToken": (InvalidCredentials, _TOKEN),
    "NotImplemented": (UnsupportedStore, _UNSUPPORTED),
    "RequestTimeTooSkewed": (ClockSkew, _CLOCK),
    "KeyTooLongError": (ConfigurationError, _TOO_LONG),
}


@dataclass(frozen=True, slots=True)
class S3Failure:
    """One failed attempt.

    `kind`: the reaction to it.
    `code`: S3's error code, or the name of the exception.
    `text`: the error message.
    `retry_after_s`: the pause that S3 requested, in seconds.
    `raises`: the error class if user action is required.
    """

    kind: FailureAction
    code: str
    text: str
    retry_after_s: float = 0.0
    raises: type[ConfigurationError] = ConfigurationError


def failure_of(error: Exception) -> S3Failure | None:
    """The failure that `error` means. None if it is neither an answer of S3 nor a network error, but a bug."""
    if isinstance(error, boto.ClientError):
        return _answered(error)
    if isinstance(error, boto.BotoCoreError):
        return _unanswered(error)
    if isinstance(error, ResponseParserError):  # a proxy's page, or a truncated answer
        return S3Failure(FailureAction.TRANSIENT, type(error).__name__, str(error))
    return None


def _answered(error: boto.ClientError) -> S3Failure:
    answer = error.response
    code = str(answer.get("Error", {}).get("Code", ""))
    message = str(answer.get("Error", {}).get("Message", ""))
    meta = answer.get("ResponseMetadata", {})
    status = int(meta.get("HTTPStatusCode", 0))
    if status == PROXY_LOGIN:
        return S3Failure(FailureAction.CONFIGURATION, code, REJECTED, raises=InvalidCredentials)
    if error.operation_name in STS_OPERATIONS:
        return _of_role(error.operation_name, code, message)
    retry_after = meta.get("HTTPHeaders", {}).get("retry-after", "")
    pause = float(retry_after) if retry_after.isdigit() else 0.0
    text = f"{code}: {message}" if message else code or f"HTTP {status}"
    if code in _CONFIGURATION:
        raises, advice = _CONFIGURATION[code]
        if raises is AccessDenied and message:  # it names the identity and the missing permission
            advice = f"{advice} ({message})"
        return S3Failure(FailureAction.CONFIGURATION, code, advice, raises=raises)
    if code in _OUTCOMES:
        return S3Failure(FailureAction.OUTCOME, code, text)
    if code in EXPIRED:
        return S3Failure(FailureAction.TRANSIENT, code, f"{text}; {_RENEW}", pause)
    if code in _TRANSIENT or status >= 500 or status == 429:
        return S3Failure(FailureAction.TRANSIENT, code, text, pause)
    if status == 409:
        return S3Failure(FailureAction.CONFLICT, code, text, pause)
    if status == 403:
        return S3Failure(FailureAction.CONFIGURATION, code, f"{text}; {_DENIED}", raises=AccessDenied)
    return S3Failure(FailureAction.CONFIGURATION, code, f"the store rejected the request: {text} (HTTP {status})")


def _of_role(operation: str, code: str, message: str) -> S3Failure:
    failure = role_failure(operation, code, message)
    kind = FailureAction.TRANSIENT if failure.raises is None else FailureAction.CONFIGURATION
    return S3Failure(kind, code, failure.text, raises=failure.raises or ConfigurationError)


def _unanswered(error: boto.BotoCoreError) -> S3Failure:
    name = type(error).__name__
    if isinstance(error, boto.NoCredentialsError | boto.PartialCredentialsError):
        return S3Failure(FailureAction.CONFIGURATION, name, _NO_KEYS, raises=InvalidCredentials)
    if isinstance(error, boto.ProxyConnectionError) and (rejection := proxy_failure(str(error.kwargs.get("error")))):
        advice, is_login = rejection
        raises = InvalidCredentials if is_login else AccessDenied
        return S3Failure(FailureAction.CONFIGURATION, name, advice, raises=raises)
    if isinstance(error, boto.NoRegionError):
        return S3Failure(FailureAction.CONFIGURATION, name, _NO_REGION)
    if isinstance(error, boto.SSLError) and "certificate verify failed" in str(error):
        return S3Failure(FailureAction.CONFIGURATION, name, f"{_UNTRUSTED} ({_tls_reason(str(error))})")
    transient = (boto.HTTPClientError, boto.ConnectionError, boto.IncompleteReadError, boto.FlexibleChecksumError)
    if isinstance(error, (*transient, boto.CredentialRetrievalError, boto.MetadataRetrievalError)):
        return S3Failure(FailureAction.TRANSIENT, name, str(error))
    return S3Failure(FailureAction.CONFIGURATION, name, str(error))


def _tls_reason(text: str) -> str:
    """OpenSSL's own message, without the text that three layers add to it."""
    return text[text.rindex("certificate verify failed") :].split(" (_ssl", 1)[0]


def in_section(text: str, section: str, *, own_credentials: bool) -> str:
    """The text of a failure of a request to the bucket of `section` of the manifest, whose fields it names.
    `own_credentials`: the section has credentials."""
    moved = ("bucket", "credentials") if own_credentials else ("bucket",)
    for name in moved:
        text = text.replace(f"{IN_OBJECTS}.{name}", f"{section}.{name}")
    return f"{text}. This is the bucket of {section}"


def translate(failure: S3Failure, *, doing: str, bucket: str, key: str | None, tried_for_s: float = 0.0) -> SinkError:
    """The error for a failure that is not retried any more. `doing` is S3's operation name."""
    where = f"s3://{bucket}/{key}" if key is not None else f"s3://{bucket}"
    if key is None and failure.code == "404":
        return BucketNotFound(f"{where}: {doing}: {_NO_BUCKET}")
    if failure.kind is FailureAction.OUTCOME:
        return _OUTCOMES[failure.code](f"{where}: {doing}: {failure.text}", key, failure.code)
    if failure.kind is FailureAction.CONFLICT:
        return Conflict(f"{where}: {doing}: {failure.text}", key, failure.code)
    if failure.kind is FailureAction.TRANSIENT:
        return TransientError(f"{where}: {doing} failed for {tried_for_s:.0f} s: {failure.text}")
    return failure.raises(f"{where}: {doing}: {failure.text}")
