"""What S3 can answer, as errors of the domain: the one place that knows S3's codes and botocore's exceptions.

Three kinds. *Outcomes* are answers the protocol acts upon (`PreconditionFailed`, `NoSuchUpload`, ...): they are raised
at once and caught in `sink_job.coordinator`; where nothing acts upon one, it is a `TransientError`. *Transient*
troubles are tried again and become `TransientError` when patience is used up. All else is for a person to mend:
`ConfigurationError`, with what to do. Messages name bucket and key, never a credential.
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

__all__ = [
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
    """An answer of S3 that the protocol acts upon. `key` is the object's, `code` is S3's.

    It is a TransientError, and has its reason: an answer to a request where the protocol does not expect it (a checksum
    that the network has damaged, a 409 to a deletion) ends the process with 75. Each step can be repeated.
    """

    def __init__(self, message: str, key: str | None = None, code: str = "") -> None:
        self.message = message
        self.key = key
        self.code = code
        super().__init__(message, key, code)

    def __str__(self) -> str:
        return self.message


class PreconditionFailed(S3Outcome):
    """412: an object is at that key already. An upload survives it."""


class Conflict(S3Outcome):
    """409, several times in a row: another write or deletion of that key is under way."""


class NotFound(S3Outcome):
    """No object at that key, or no such bytes in it."""


class NoSuchUpload(S3Outcome):
    """The upload was completed or aborted, by whomever."""


class InvalidPart(S3Outcome):
    """A named part is not there, or not with that ETag or checksum."""


class EntityTooSmall(S3Outcome):
    """A part that is not the last one is below 5 MiB."""


class ChecksumMismatch(S3Outcome):
    """The bytes that S3 has are not those of the checksum given with them."""


class FailureAction(Enum):
    """What to do about a trouble."""

    OUTCOME = "tell the caller"
    TRANSIENT = "try again"
    CONFLICT = "try again a few times"
    CONFIGURATION = "a person must act"


_OUTCOMES: Final[dict[str, type[S3Outcome]]] = {
    "PreconditionFailed": PreconditionFailed,
    "412": PreconditionFailed,
    "NoSuchKey": NotFound,
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

_EXPIRED: Final = frozenset(("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"))
"""Tokens are renewed from outside (a role's refresh, a rotated secret), so this is waited for."""

_RENEW: Final = "renew the session token of spec.s3.credentials; a rotated secret is read again by itself"
_NO_BUCKET: Final = "no such bucket: create it, or mend spec.s3.bucket, spec.s3.region or spec.s3.endpoint"
_REGION: Final = "the bucket is in another region: mend spec.s3.region"
_DENIED: Final = (
    "access denied: the credentials need s3:PutObject, s3:GetObject, s3:DeleteObject, s3:AbortMultipartUpload, "
    "s3:ListBucket and s3:ListBucketMultipartUploads here"
)
_ACCESS_KEY: Final = "the store does not know the access key: mend the secret of spec.s3.credentials"
_SECRET_KEY: Final = "the secret key does not belong to the access key: mend the secret of spec.s3.credentials"
_TOKEN: Final = "the session token is not valid: renew the secret of spec.s3.credentials"
_NO_KEYS: Final = (
    "no credentials: name a secret in spec.s3.credentials, give the pods a role (spec.serviceAccount.annotations, or "
    "an association of EKS Pod Identity), or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
)
_UNTRUSTED: Final = "the store's certificate is not trusted: give its authority in spec.s3.caSecret"
_UNBUILT: Final = "the store does not implement what exactly-once delivery needs"
_CLOCK: Final = "this host's clock is too far from the store's: synchronize the host's clock (NTP, chrony)"
_TOO_LONG: Final = "the key is longer than S3 allows (1024 bytes): shorten spec.s3.topicsDir or the partitioner's path"

_CONFIGURATION: Final[dict[str, tuple[type[ConfigurationError], str]]] = {
    "NoSuchBucket": (BucketNotFound, _NO_BUCKET),
    "AuthorizationHeaderMalformed": (BucketNotFound, _REGION),
    "PermanentRedirect": (BucketNotFound, _REGION),
    "301": (BucketNotFound, _REGION),
    "AccessDenied": (AccessDenied, _DENIED),
    "AllAccessDisabled": (AccessDenied, _DENIED),
    "403": (AccessDenied, _DENIED),  # to a HEAD, which has no body to say more
    "InvalidAccessKeyId": (InvalidCredentials, _ACCESS_KEY),
    "XAdminUserNotFound": (InvalidCredentials, _ACCESS_KEY),  # VersityGW's word for it, with a 404
    "SignatureDoesNotMatch": (InvalidCredentials, _SECRET_KEY),
    "InvalidToken": (InvalidCredentials, _TOKEN),
    "NotImplemented": (UnsupportedStore, _UNBUILT),
    "RequestTimeTooSkewed": (ClockSkew, _CLOCK),
    "KeyTooLongError": (ConfigurationError, _TOO_LONG),
}


@dataclass(frozen=True, slots=True)
class S3Failure:
    """One failed try: what kind, S3's code or the exception's name, a sentence for a person, the pause S3 asked for
    (s), and the error it becomes when it is for a person to mend."""

    kind: FailureAction
    code: str
    text: str
    retry_after_s: float = 0.0
    raises: type[ConfigurationError] = ConfigurationError


def failure_of(error: Exception) -> S3Failure | None:
    """What a failed try means; None if the error is not of S3 or of the way to it (a bug: let it fly)."""
    if isinstance(error, boto.ClientError):
        return _answered(error)
    if isinstance(error, boto.BotoCoreError):
        return _unanswered(error)
    if isinstance(error, ResponseParserError):  # a proxy's page, or an answer cut short
        return S3Failure(FailureAction.TRANSIENT, type(error).__name__, str(error))
    return None


def _answered(error: boto.ClientError) -> S3Failure:
    answer = error.response
    code = str(answer.get("Error", {}).get("Code", ""))
    said = str(answer.get("Error", {}).get("Message", ""))
    meta = answer.get("ResponseMetadata", {})
    status = int(meta.get("HTTPStatusCode", 0))
    retry_after = meta.get("HTTPHeaders", {}).get("retry-after", "")
    pause = float(retry_after) if retry_after.isdigit() else 0.0
    text = f"{code}: {said}" if said else code or f"HTTP {status}"
    if code in _CONFIGURATION:
        raises, what = _CONFIGURATION[code]
        if raises is AccessDenied and said:  # names who asked, and the action that is missing
            what = f"{what} ({said})"
        return S3Failure(FailureAction.CONFIGURATION, code, what, raises=raises)
    if code in _OUTCOMES:
        return S3Failure(FailureAction.OUTCOME, code, text)
    if code in _EXPIRED:
        return S3Failure(FailureAction.TRANSIENT, code, f"{text}; {_RENEW}", pause)
    if code in _TRANSIENT or status >= 500 or status == 429:
        return S3Failure(FailureAction.TRANSIENT, code, text, pause)
    if status == 409:
        return S3Failure(FailureAction.CONFLICT, code, text, pause)
    if status == 403:
        return S3Failure(FailureAction.CONFIGURATION, code, f"{text}; {_DENIED}", raises=AccessDenied)
    return S3Failure(FailureAction.CONFIGURATION, code, f"the store refuses the request: {text} (HTTP {status})")


def _unanswered(error: boto.BotoCoreError) -> S3Failure:
    name = type(error).__name__
    if isinstance(error, boto.NoCredentialsError | boto.PartialCredentialsError):
        return S3Failure(FailureAction.CONFIGURATION, name, _NO_KEYS, raises=InvalidCredentials)
    if isinstance(error, boto.SSLError) and "certificate verify failed" in str(error):
        return S3Failure(FailureAction.CONFIGURATION, name, f"{_UNTRUSTED} ({_tls_reason(str(error))})")
    transient = (boto.HTTPClientError, boto.ConnectionError, boto.IncompleteReadError, boto.FlexibleChecksumError)
    if isinstance(error, (*transient, boto.CredentialRetrievalError, boto.MetadataRetrievalError)):
        return S3Failure(FailureAction.TRANSIENT, name, str(error))
    return S3Failure(FailureAction.CONFIGURATION, name, str(error))


def _tls_reason(text: str) -> str:
    """OpenSSL's own words, out of what three layers wrapped around them."""
    return text[text.rindex("certificate verify failed") :].split(" (_ssl", 1)[0]


def translate(trouble: S3Failure, *, doing: str, bucket: str, key: str | None, tried_for_s: float = 0.0) -> SinkError:
    """The domain's error for a trouble that is given up on. `doing` is S3's operation name."""
    where = f"s3://{bucket}/{key}" if key is not None else f"s3://{bucket}"
    if key is None and trouble.code == "404":
        return BucketNotFound(f"{where}: {doing}: {_NO_BUCKET}")
    if trouble.kind is FailureAction.OUTCOME:
        return _OUTCOMES[trouble.code](f"{where}: {doing}: {trouble.text}", key, trouble.code)
    if trouble.kind is FailureAction.CONFLICT:
        return Conflict(f"{where}: {doing}: {trouble.text}", key, trouble.code)
    if trouble.kind is FailureAction.TRANSIENT:
        return TransientError(f"{where}: {doing} failed for {tried_for_s:.0f} s: {trouble.text}")
    return trouble.raises(f"{where}: {doing}: {trouble.text}")
