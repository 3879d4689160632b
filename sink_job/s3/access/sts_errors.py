"""Maps the error codes of AWS STS to errors of this project.

Source: the API references of AssumeRole and AssumeRoleWithWebIdentity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sink_job.api.errors import AccessDenied, ClockSkew, ConfigurationError, InvalidCredentials

STS_OPERATIONS: Final = frozenset(("AssumeRole", "AssumeRoleWithWebIdentity"))
"""The operations of STS that botocore or this client calls for credentials."""

_DENIED: Final = (
    "the role cannot be assumed: the identity that assumes it needs sts:AssumeRole for it, and the role's trust policy "
    "must allow this identity and the external id (spec.s3.assumeRole, spec.serviceAccount.annotations)"
)
_KEYS: Final = (
    "AWS STS does not accept the credentials that assume the role: fix the Secret of spec.s3.credentials, or "
    "the IAM role of the pods"
)
_REJECTED: Final = (
    "AWS STS rejects the request for credentials: fix spec.s3.assumeRole. With the credentials of another role, "
    "duration is at most 1h; else at most that of the role"
)
_CLOCK: Final = "this host's clock differs from that of AWS: synchronize it (NTP, chrony)"

_TRANSIENT: Final = frozenset(
    (
        "Throttling",
        "ThrottlingException",
        "RequestLimitExceeded",
        "InternalFailure",
        "InternalError",
        "ServiceUnavailable",
        "RequestTimeout",
        "IDPCommunicationError",
        "ExpiredToken",  # the kubelet or another process renews the token
        "ExpiredTokenException",
    )
)
_INVALID: Final = frozenset(
    (
        "InvalidClientTokenId",
        "UnrecognizedClientException",
        "SignatureDoesNotMatch",
        "IncompleteSignature",
        "MissingAuthenticationToken",
        "InvalidIdentityToken",
        "IDPRejectedClaim",
    )
)
_SKEWS: Final = ("Signature expired", "Signature not yet current")


@dataclass(frozen=True)
class RoleFailure:
    """A rejected request for credentials. `raises`: the error if user action is required; None: try again."""

    text: str
    raises: type[ConfigurationError] | None


def role_failure(operation: str, code: str, message: str) -> RoleFailure:
    """The failure of a request to STS with the error `code`. An unknown code needs user action."""
    text = f"{operation}: {code or 'error'}{': ' if message else ''}{message}"
    if code in _TRANSIENT or (code.isdigit() and (code >= "500" or code == "429")):
        return RoleFailure(text, None)
    if code in _INVALID and message.startswith(_SKEWS):
        return RoleFailure(f"{_CLOCK} ({text})", ClockSkew)
    if code in _INVALID:
        return RoleFailure(f"{_KEYS} ({text})", InvalidCredentials)
    if code in ("AccessDenied", "AccessDeniedException", "403"):
        return RoleFailure(f"{_DENIED} ({text})", AccessDenied)
    return RoleFailure(f"{_REJECTED} ({text})", ConfigurationError)
