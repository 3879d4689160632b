"""The session of a client: whose credentials sign its requests."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import botocore.session
import pytest

from sink_job.api.errors import AccessDenied, InvalidCredentials
from sink_job.s3 import S3Client, S3Settings
from sink_job.s3.access.assumed_role import AssumedRole, RoleCredentials
from sink_job.s3.session import aws_endpoint, new_session
from tests.unit.s3.conftest import Reply, ScriptedStore, error_reply

ROLE = AssumedRole(arn="arn:aws:iam::123456789012:role/archive", external_id="partner-7")
LISTING = Reply(body="<ListBucketResult></ListBucketResult>")


def session_reply(key: str) -> Reply:
    names = {"AccessKeyId": key, "SecretAccessKey": "hidden-key", "SessionToken": "hidden-token"}
    fields = "".join(f"<{name}>{value}</{name}>" for name, value in names.items())
    end = "<Expiration>2099-01-01T00:00:00Z</Expiration>"
    return Reply(
        body=f"<AssumeRoleResponse><AssumeRoleResult><Credentials>{fields}{end}</Credentials></AssumeRoleResult>"
        "</AssumeRoleResponse>"
    )


@pytest.mark.parametrize(
    ("service", "region", "url"),
    [
        ("sts", "eu-central-1", "https://sts.eu-central-1.amazonaws.com"),
        ("sts", "cn-north-1", "https://sts.cn-north-1.amazonaws.com.cn"),
        ("glue", "cn-northwest-1", "https://glue.cn-northwest-1.amazonaws.com.cn"),
        ("sts", None, "https://sts.us-east-1.amazonaws.com"),
    ],
)
def test_the_endpoints_of_aws_are_those_of_the_region(
    service: str, region: str | None, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL_STS", raising=False)
    session = botocore.session.Session()
    assert aws_endpoint(session, service, region) == url
    monkeypatch.setenv(f"AWS_ENDPOINT_URL_{service.upper()}", "https://vpce.example.com")
    assert aws_endpoint(session, service, region) == "https://vpce.example.com"


@pytest.fixture
def with_role(settings: S3Settings, store: ScriptedStore, monkeypatch: pytest.MonkeyPatch) -> S3Settings:
    """The store answers requests to STS, too."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", store.endpoint)
    return dataclasses.replace(settings, role=ROLE, prefix="topics/")


def test_without_a_role_the_keys_are_those_of_the_secret(settings: S3Settings) -> None:
    assert new_session(settings).get_credentials().get_frozen_credentials().access_key == "the-access-key"


def test_the_keys_of_the_secret_assume_the_role_and_its_keys_sign_the_request(
    with_role: S3Settings, store: ScriptedStore
) -> None:
    store.replies.extend([session_reply("ASIA1"), LISTING])
    client = S3Client(with_role)
    client.check_access()
    sts, listing = store.received
    assert "Credential=the-access-key/" in sts.headers["authorization"]
    assert b"ExternalId=partner-7" in sts.body
    assert "Credential=ASIA1/" in listing.headers["authorization"]
    assert listing.headers["x-amz-security-token"] == "hidden-token"
    client.close()


def test_a_role_lists_only_below_the_prefix_of_its_policy(with_role: S3Settings, store: ScriptedStore) -> None:
    store.replies.extend([session_reply("ASIA1"), LISTING])
    client = S3Client(with_role)
    client.check_access()
    assert "prefix=topics%2F" in store.received[1].path
    client.close()


def test_keys_that_the_store_does_not_accept_any_more_are_renewed(with_role: S3Settings, store: ScriptedStore) -> None:
    store.replies.extend([session_reply("ASIA1"), error_reply(400, "ExpiredToken"), session_reply("ASIA2"), LISTING])
    client = S3Client(with_role)
    client.check_access()
    assert "Credential=ASIA2/" in store.received[-1].headers["authorization"]
    client.close()


def test_a_role_that_must_not_be_assumed_is_an_error_without_a_secret(
    with_role: S3Settings, store: ScriptedStore
) -> None:
    store.replies.append(
        Reply(403, "<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>")
    )
    client = S3Client(with_role)
    with pytest.raises(AccessDenied, match="the role cannot be assumed: the identity") as raised:
        client.check_access()
    assert "the-secret-key" not in str(raised.value)
    client.close()


def test_a_role_needs_credentials_to_assume_it_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "absent"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(InvalidCredentials, match=r"s3://archive: no credentials: set spec\.s3\.credentials"):
        S3Client(S3Settings(bucket="archive", region="eu-central-1", role=ROLE))


def test_a_web_identity_assumes_the_role(
    with_role: S3Settings, store: ScriptedStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "token").write_text("the-identity")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/pods")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "absent"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "absent"))
    identity = session_reply("ASIAPODS")
    store.replies.extend(
        [
            Reply(body=identity.body.replace("AssumeRole", "AssumeRoleWithWebIdentity")),
            session_reply("ASIA1"),
            LISTING,
        ]
    )
    client = S3Client(dataclasses.replace(with_role, credentials_dir=None))
    client.check_access()
    web, sts, listing = store.received
    assert b"WebIdentityToken=the-identity" in web.body
    assert "Credential=ASIAPODS/" in sts.headers["authorization"]
    assert "Credential=ASIA1/" in listing.headers["authorization"]
    client.close()


def test_the_keys_of_a_role_are_not_fetched_before_a_request(with_role: S3Settings, store: ScriptedStore) -> None:
    assert isinstance(new_session(with_role).get_credentials(), RoleCredentials)
    assert store.received == []
