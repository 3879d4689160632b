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
            "Error": {"Code": code, "Message": "what S3 says"},
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
    trouble = failure_of(error)
    assert trouble is not None
    return translate(trouble, doing="PutObject", bucket="archive", key=key, tried_for_s=120)


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
def test_an_answer_of_s3_becomes(status: int, code: str, kind: type[SinkError]) -> None:
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
def test_a_failure_on_the_way_becomes(error: Exception, kind: type[SinkError]) -> None:
    assert type(_becomes(error)) is kind


def test_a_404_for_the_bucket_itself_is_not_a_missing_object() -> None:
    assert type(_becomes(_answer(404, "404"), key=None)) is BucketNotFound


def test_a_mistake_of_our_own_is_not_dressed_up() -> None:
    assert failure_of(ValueError("a bug")) is None


def test_messages_name_the_object_the_request_and_what_s3_said() -> None:
    message = "s3://archive/a/key: PutObject failed for 120 s: SlowDown: what S3 says"
    assert str(_becomes(_answer(503, "SlowDown"))) == message


def test_a_trouble_with_the_bucket_says_what_to_do() -> None:
    assert str(_becomes(_answer(404, "NoSuchBucket"), key=None)) == (
        "s3://archive: PutObject: no such bucket: create it, or mend spec.s3.bucket, spec.s3.region or spec.s3.endpoint"
    )


def test_denied_access_repeats_which_action_is_missing() -> None:
    assert str(_becomes(_answer(403, "AccessDenied"))).endswith("s3:ListBucketMultipartUploads here (what S3 says)")


def test_an_expired_token_says_that_a_rotated_secret_is_enough() -> None:
    assert "a rotated secret is read again by itself" in str(_becomes(_answer(400, "ExpiredToken")))


def test_an_untrusted_certificate_is_told_in_openssls_words() -> None:
    wrapped = (
        "SSL validation failed for https://x [SSL: X] certificate verify failed: self-signed certificate (_ssl.c:9)"
    )
    message = str(_becomes(boto.SSLError(endpoint_url="https://x", error=OSError(wrapped))))
    assert "spec.s3.caSecret (certificate verify failed: self-signed certificate)" in message


def test_the_pause_that_s3_asks_for_is_kept() -> None:
    trouble = failure_of(_answer(503, "SlowDown", **{"retry-after": "7"}))
    assert trouble is not None
    assert (trouble.kind, trouble.retry_after_s) == (FailureAction.TRANSIENT, 7.0)


def test_outcomes_travel_between_processes() -> None:
    error = _becomes(_answer(412, "PreconditionFailed"))
    travelled = pickle.loads(pickle.dumps(error))
    assert type(travelled) is PreconditionFailed
    assert (str(travelled), travelled.key, travelled.code) == (str(error), "a/key", "PreconditionFailed")
