import pickle

import pytest
from botocore import exceptions as boto
from botocore.exceptions import ClientError

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
from sink_job.s3 import (
    ChecksumMismatch,
    Conflict,
    EntityTooSmall,
    InvalidPart,
    NoSuchUpload,
    NotFound,
    PreconditionFailed,
)
from sink_job.s3.errors import FailureAction, failure_of, translate


def _answer(status: int, code: str, **headers: str) -> ClientError:
    return ClientError(
        {
            "Error": {"Code": code, "Message": "S3's message"},
            "ResponseMetadata": {
                "HTTPStatusCode": status,
                "HTTPHeaders": headers,
                "RequestId": "",
                "HostId": "",
                "RetryAttempts": 0,
            },
        },
        "PutObject",
    )


def _becomes(error: Exception, key: str | None = "a/key") -> SinkError:
    failure = failure_of(error)
    assert failure is not None
    return translate(failure, doing="PutObject", bucket="archive", key=key, tried_for_s=120)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (412, "PreconditionFailed", PreconditionFailed),
        (412, "412", PreconditionFailed),
        (404, "NoSuchKey", NotFound),
        (404, "404", NotFound),
        (416, "InvalidRange", NotFound),
        (404, "NoSuchUpload", NoSuchUpload),
        (400, "InvalidPart", InvalidPart),
        (400, "InvalidPartOrder", InvalidPart),
        (400, "EntityTooSmall", EntityTooSmall),
        (400, "BadDigest", ChecksumMismatch),
        (409, "ConditionalRequestConflict", Conflict),
        (409, "OperationAborted", Conflict),
        (404, "NoSuchBucket", BucketNotFound),
        (301, "PermanentRedirect", BucketNotFound),
        (403, "AccessDenied", AccessDenied),
        (403, "403", AccessDenied),
        (403, "SomethingNew", AccessDenied),
        (403, "InvalidAccessKeyId", InvalidCredentials),
        (404, "XAdminUserNotFound", InvalidCredentials),
        (403, "SignatureDoesNotMatch", InvalidCredentials),
        (400, "InvalidToken", InvalidCredentials),
        (501, "NotImplemented", UnsupportedStore),
        (403, "RequestTimeTooSkewed", ClockSkew),
        (400, "KeyTooLongError", ConfigurationError),
        (400, "InvalidRequest", ConfigurationError),
        (503, "SlowDown", TransientError),
        (500, "InternalError", TransientError),
        (400, "RequestTimeout", TransientError),
        (429, "TooManyRequests", TransientError),
        (502, "502", TransientError),
        (507, "XMinioStorageFull", TransientError),
        (400, "ExpiredToken", TransientError),
    ],
)
def test_an_error_code_of_s3_is_mapped_to(status: int, code: str, kind: type[SinkError]) -> None:
    assert type(_becomes(_answer(status, code))) is kind


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (boto.NoCredentialsError(), InvalidCredentials),
        (boto.PartialCredentialsError(provider="env", cred_var="AWS_SECRET_ACCESS_KEY"), InvalidCredentials),
        (boto.EndpointConnectionError(endpoint_url="https://x"), TransientError),
        (boto.ConnectTimeoutError(endpoint_url="https://x"), TransientError),
        (boto.ReadTimeoutError(endpoint_url="https://x"), TransientError),
        (boto.ConnectionClosedError(endpoint_url="https://x"), TransientError),
        (
            boto.SSLError(endpoint_url="https://x", error=OSError("EOF occurred in violation of protocol")),
            TransientError,
        ),
        (
            boto.SSLError(endpoint_url="https://x", error=OSError("certificate verify failed: x (_ssl.c:992)")),
            ConfigurationError,
        ),
        (boto.IncompleteReadError(actual_bytes=1, expected_bytes=2), TransientError),
        (boto.FlexibleChecksumError(error_msg="other bytes"), TransientError),
        (boto.CredentialRetrievalError(provider="role", error_msg="not now"), TransientError),
        (boto.NoRegionError(), ConfigurationError),
        (boto.ParamValidationError(report="Invalid bucket name"), ConfigurationError),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_an_error_of_the_client_is_mapped_to(error: Exception, kind: type[SinkError]) -> None:
    assert type(_becomes(error)) is kind


def test_a_404_for_the_bucket_itself_is_a_missing_bucket() -> None:
    assert type(_becomes(_answer(404, "404"), key=None)) is BucketNotFound


def test_an_error_of_the_programs_own_is_not_a_failure_of_s3() -> None:
    assert failure_of(ValueError("a bug")) is None


def test_a_message_names_the_object_the_request_and_s3s_message() -> None:
    message = "s3://archive/a/key: PutObject failed for 120 s: SlowDown: S3's message"
    assert str(_becomes(_answer(503, "SlowDown"))) == message


def test_the_message_for_a_missing_bucket_says_what_to_do() -> None:
    assert str(_becomes(_answer(404, "NoSuchBucket"), key=None)) == (
        "s3://archive: PutObject: no such bucket: create it, or fix spec.s3.bucket, spec.s3.region or spec.s3.endpoint"
    )


def test_the_message_for_denied_access_includes_s3s_own_message() -> None:
    assert str(_becomes(_answer(403, "AccessDenied"))).endswith("s3:ListBucketMultipartUploads here (S3's message)")


def test_the_message_for_an_expired_token_says_that_no_restart_is_needed() -> None:
    assert "the new token is used without a restart" in str(_becomes(_answer(400, "ExpiredToken")))


def test_the_message_for_an_untrusted_certificate_includes_openssls_own_message() -> None:
    wrapped = (
        "SSL validation failed for https://x [SSL: X] certificate verify failed: self-signed certificate (_ssl.c:9)"
    )
    message = str(_becomes(boto.SSLError(endpoint_url="https://x", error=OSError(wrapped))))
    assert "spec.s3.caSecret (certificate verify failed: self-signed certificate)" in message


def test_the_pause_that_s3_requests_is_read() -> None:
    failure = failure_of(_answer(503, "SlowDown", **{"retry-after": "7"}))
    assert failure is not None
    assert (failure.kind, failure.retry_after_s) == (FailureAction.TRANSIENT, 7.0)


def test_an_outcome_can_be_pickled() -> None:
    error = _becomes(_answer(412, "PreconditionFailed"))
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is PreconditionFailed
    assert (str(copy), copy.key, copy.code) == (str(error), "a/key", "PreconditionFailed")
