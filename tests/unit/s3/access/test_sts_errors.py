"""Errors of AWS STS: what is tried again, and which advice the others have."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from sink_job.api.errors import AccessDenied, ClockSkew, ConfigurationError, InvalidCredentials
from sink_job.s3.access.sts_errors import role_failure
from sink_job.s3.errors import FailureAction, failure_of


@pytest.mark.parametrize("code", ["Throttling", "ExpiredToken", "IDPCommunicationError", "500", "503", "429"])
def test_failures_that_pass_are_tried_again(code: str) -> None:
    assert role_failure("AssumeRole", code, "").raises is None


@pytest.mark.parametrize(
    ("code", "message", "raises", "advice"),
    [
        ("AccessDenied", "not authorized", AccessDenied, "needs sts:AssumeRole for it"),
        ("InvalidClientTokenId", "invalid", InvalidCredentials, "fix the Secret of spec.s3.credentials"),
        ("SignatureDoesNotMatch", "Signature expired: now", ClockSkew, "synchronize it"),
        ("ValidationError", "DurationSeconds exceeds", ConfigurationError, "duration is at most 1h"),
        ("400", "", ConfigurationError, "fix spec.s3.assumeRole"),
    ],
)
def test_other_failures_need_user_action(
    code: str, message: str, raises: type[ConfigurationError], advice: str
) -> None:
    failure = role_failure("AssumeRole", code, message)
    assert failure.raises is raises
    assert advice in failure.text
    assert f"(AssumeRole: {code}" in failure.text


def test_a_denied_role_is_not_a_denied_request_to_s3() -> None:
    failure = failure_of(ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "AssumeRole"))
    assert failure is not None
    assert (failure.kind, failure.raises) == (FailureAction.CONFIGURATION, AccessDenied)
    assert "s3:PutObject" not in failure.text
    failure = failure_of(ClientError({"Error": {"Code": "Throttling"}}, "AssumeRoleWithWebIdentity"))
    assert failure is not None
    assert failure.kind is FailureAction.TRANSIENT
