import json
import pickle
from pathlib import Path

import pytest

from sink_job.api.errors import SecretNotFound
from sink_job.api.spec import Spec
from sink_job.s3 import S3Settings, connect
from sink_job.s3.object_lock import ObjectLock
from tests.unit.api.manifests import accepted

SPEC = {
    "bucket": "archive",
    "region": "eu-central-1",
    "endpoint": "https://store.example.com",
    "pathStyle": True,
    "credentials": {"secret": "keys"},
    "caSecret": {"secret": "authority", "key": "ca.crt"},
}


def spec(**changes: object) -> Spec:
    return accepted({"spec.s3": {**SPEC, **changes}}).spec


def test_settings_are_derived_from_the_manifest_and_the_directories_of_its_secrets() -> None:
    settings = S3Settings.of(spec(), {"keys": Path("/k"), "authority": Path("/a")})
    assert settings == S3Settings(
        bucket="archive",
        region="eu-central-1",
        endpoint="https://store.example.com",
        path_style=True,
        credentials_dir=Path("/k"),
        ca_file=Path("/a/ca.crt"),
    )


def test_without_secrets_the_defaults_of_botocore_and_the_system_are_used() -> None:
    settings = S3Settings.of(accepted().spec, {})
    assert (settings.credentials_dir, settings.ca_file) == (None, None)


@pytest.mark.parametrize(
    ("given", "missing"), [("keys", "spec.s3.caSecret.secret: the Secret authority"), ("authority", "keys")]
)
def test_the_error_for_a_secret_without_a_directory_names_it(given: str, missing: str) -> None:
    with pytest.raises(SecretNotFound, match=missing):
        S3Settings.of(spec(), {given: Path("/x")})


def test_pickled_settings_contain_no_secret(secret: Path) -> None:
    settings = S3Settings(bucket="archive", credentials_dir=secret)
    pickled = pickle.dumps(settings)
    assert pickle.loads(pickled) == settings
    assert b"the-secret-key" not in pickled
    assert "the-secret-key" not in repr(settings)


def test_equal_settings_share_a_client(settings: S3Settings) -> None:
    assert connect(settings) is connect(pickle.loads(pickle.dumps(settings)))


def test_different_settings_have_different_clients(settings: S3Settings) -> None:
    assert connect(settings) is not connect(S3Settings(**{**vars(settings), "bucket": "another"}))


def test_the_error_for_a_missing_file_of_authorities_names_it(tmp_path: Path, secret: Path) -> None:
    with pytest.raises(SecretNotFound, match=r"ca\.crt does not exist"):
        connect(S3Settings(bucket="archive", region="x", credentials_dir=secret, ca_file=tmp_path / "ca.crt"))


ROLE = {"arn": "arn:aws:iam::123456789012:role/archive"}


@pytest.mark.parametrize(
    ("changes", "prefixes"),
    [
        ({}, ["topics/"]),
        ({"spec.s3.topicsDir": ""}, [""]),
        ({"spec.s3.directoryDelimiter": "-"}, ["topics/", "topics-"]),
        ({"spec.errors": {"tolerance": "All", "deadLetters": {"prefix": "rejected"}}}, ["topics/", "rejected/"]),
    ],
)
def test_the_policy_of_a_role_has_the_prefixes_of_ledger_objects_and_dead_letters(
    changes: dict[str, object], prefixes: list[str]
) -> None:
    settings = S3Settings.of(accepted({"spec.s3.assumeRole": ROLE}, changes).spec, {})
    assert settings.role is not None
    assert settings.role.policy is not None
    objects = json.loads(settings.role.policy)["Statement"][0]["Resource"]
    assert objects == [f"arn:aws:s3:::archive/{prefix}*" for prefix in prefixes]
    assert settings.prefix == prefixes[0]


def test_without_a_role_the_whole_bucket_is_listed() -> None:
    assert S3Settings.of(accepted().spec, {}).prefix == ""


def test_attributes_of_objects_are_parameters_of_an_upload_and_need_permissions() -> None:
    fields = {"storageClass": "StandardIa", "acl": "BucketOwnerRead", "tags": {"b": "2 3", "a": ""}}
    settings = S3Settings.of(
        accepted({"spec.s3.assumeRole": ROLE, **{f"spec.s3.{name}": value for name, value in fields.items()}}).spec, {}
    )
    assert settings.attributes == (
        ("StorageClass", "STANDARD_IA"),
        ("ACL", "bucket-owner-read"),
        ("Tagging", "a=&b=2+3"),
    )
    assert settings.role is not None
    assert settings.role.policy is not None
    actions = json.loads(settings.role.policy)["Statement"][0]["Action"]
    assert actions[-3:] == ["s3:PutObjectTagging", "s3:GetObjectTagging", "s3:PutObjectAcl"]


def test_a_lock_and_tags_with_offsets_are_in_the_settings_and_their_permissions_in_the_policy() -> None:
    fields = {"objectLock": {"legalHold": True}, "offsetTags": True, "onTagError": "Fail"}
    settings = S3Settings.of(
        accepted({"spec.s3.assumeRole": ROLE, **{f"spec.s3.{name}": value for name, value in fields.items()}}).spec, {}
    )
    assert settings.lock == ObjectLock(legal_hold=True)
    assert (settings.offset_tags, settings.ignores_tag_errors) == (True, False)
    assert settings.role is not None
    assert settings.role.policy is not None
    actions = json.loads(settings.role.policy)["Statement"][0]["Action"]
    assert actions[-3:] == ["s3:PutObjectTagging", "s3:GetObjectTagging", "s3:PutObjectLegalHold"]


def test_a_command_that_only_reads_has_a_session_that_writes_nothing() -> None:
    reads = S3Settings.of(accepted({"spec.s3.assumeRole": ROLE}).spec, {}, reads_only=True)
    assert reads.role is not None
    assert reads.role.policy is not None
    assert "PutObject" not in reads.role.policy


@pytest.mark.parametrize(
    ("acl", "of_all"), [("BucketOwnerFullControl", "bucket-owner-full-control"), ("PublicRead", None)]
)
def test_only_full_control_of_the_owner_is_the_acl_of_all_that_is_written(acl: str, of_all: str | None) -> None:
    assert S3Settings.of(accepted({"spec.s3.acl": acl}).spec, {}).acl == of_all


@pytest.mark.parametrize(
    ("fields", "parameters"),
    [
        ({"type": "Aes256"}, (("ServerSideEncryption", "AES256"),)),
        (
            {"type": "Kms", "kmsKey": "alias/a", "bucketKey": True},
            (("ServerSideEncryption", "aws:kms"), ("SSEKMSKeyId", "alias/a"), ("BucketKeyEnabled", True)),
        ),
        ({"type": "KmsDsse"}, (("ServerSideEncryption", "aws:kms:dsse"),)),
    ],
)
def test_the_encryption_is_in_parameters_of_requests(fields: dict[str, object], parameters: object) -> None:
    assert S3Settings.of(accepted({"spec.s3.encryption": fields}).spec, {}).encryption == parameters


def test_owner_payer_and_retry_time_are_those_of_the_manifest() -> None:
    fields = {"requesterPays": True, "expectedBucketOwner": "123456789012", "retryFor": "5m"}
    settings = S3Settings.of(accepted({f"spec.s3.{name}": value for name, value in fields.items()}).spec, {})
    assert settings.every_request == (("RequestPayer", "requester"), ("ExpectedBucketOwner", "123456789012"))
    assert settings.retry.max_elapsed_s == 300


def test_the_ledgers_bucket_has_the_settings_of_the_objects_bucket_except_those_of_objects() -> None:
    changes = {
        "spec.s3.tags": {"a": "b"},
        "spec.s3.offsetTags": True,
        "spec.s3.expectedBucketOwner": "123456789012",
        "spec.s3.requesterPays": True,
        "spec.s3.assumeRole": ROLE,
        "spec.s3.ledger": {"bucket": "ledgers", "prefix": "of"},
    }
    settings = S3Settings.of(accepted(changes).spec, {})
    assert settings.ledger is not None
    own = settings.ledger.settings
    assert (own.bucket, own.attributes, own.offset_tags) == ("ledgers", (), False)
    assert (own.every_request, own.role) == ((("RequestPayer", "requester"),), settings.role)
    assert (settings.ledger.front, own.prefix) == ("of/archive/", "of/archive/topics/_s3sink/")
    assert settings.role is not None
    assert "arn:aws:s3:::ledgers/of/archive/topics/_s3sink/*" in (settings.role.policy or "")
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_credentials_of_the_ledgers_bucket_replace_the_role() -> None:
    place = {"bucket": "ledgers", "credentials": {"secret": "own"}}
    spec = accepted({"spec.s3.assumeRole": ROLE, "spec.s3.ledger": place}).spec
    settings = S3Settings.of(spec, {"own": Path("/own")})
    assert settings.ledger is not None
    assert (settings.ledger.settings.credentials_dir, settings.ledger.settings.role) == (Path("/own"), None)
    assert settings.role is not None
    assert "ledgers" not in (settings.role.policy or "")
    with pytest.raises(SecretNotFound, match=r"spec\.s3\.ledger\.credentials\.secret: the Secret own is not mounted"):
        S3Settings.of(spec, {})


def test_the_url_of_a_key_has_the_bucket_in_which_it_is() -> None:
    settings = S3Settings.of(accepted({"spec.s3.ledger": {"bucket": "ledgers"}}).spec, {})
    assert settings.url_of("topics/a") == "s3://archive/topics/a"
    assert settings.url_of("topics/_s3sink/a/owner.json") == "s3://archive/topics/_s3sink/a/owner.json"
    assert settings.url_of("archive/topics/_s3sink/a/b") == "s3://ledgers/archive/topics/_s3sink/a/b"
