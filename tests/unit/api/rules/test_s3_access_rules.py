"""Attributes of objects in a manifest."""

from __future__ import annotations

import pytest

from tests.unit.api.manifests import accepted, spec_errors


def test_objects_have_no_attributes_by_default() -> None:
    s3 = accepted().spec.s3
    assert (s3.storage_class, s3.acl, s3.tags) == (None, None, {})


@pytest.mark.parametrize("key", ["", "aws:team", "AWS:team", "a" * 129, "a;b"])
def test_a_key_that_s3_rejects_is_reported(key: str) -> None:
    (error,) = spec_errors({"spec.s3.tags": {key: "x"}})
    assert error.startswith("spec.s3.tags: ")
    assert "is not the key of a tag: S3 allows" in error


@pytest.mark.parametrize("value", ["a" * 257, "a;b"])
def test_a_value_that_s3_rejects_is_reported(value: str) -> None:
    (error,) = spec_errors({"spec.s3.tags": {"team": value}})
    assert error.startswith("spec.s3.tags")


def test_more_than_ten_tags_are_rejected() -> None:
    (error,) = spec_errors({"spec.s3.tags": {f"k{n}": "" for n in range(11)}})
    assert error.startswith("spec.s3.tags: ")


@pytest.mark.parametrize("name", ["Glacier", "DeepArchive", "GLACIER", "STANDARD_IA"])
def test_classes_that_cannot_be_read_back_and_unknown_ones_are_rejected(name: str) -> None:
    (error,) = spec_errors({"spec.s3.storageClass": name})
    assert error.startswith(f"spec.s3.storageClass: {name} is not ")


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"type": "Aes256", "kmsKey": "alias/archive"}, "kmsKey"),
        ({"type": "Aes256", "bucketKey": False}, "bucketKey"),
        ({"type": "KmsDsse", "bucketKey": True}, "bucketKey"),
    ],
)
def test_a_field_of_another_encryption_is_rejected(fields: dict[str, object], name: str) -> None:
    (error,) = spec_errors({"spec.s3.encryption": fields})
    assert error.startswith(f"spec.s3.encryption.{name}: has no effect with the type {fields['type']}")


def test_a_key_that_is_none_of_kms_is_rejected() -> None:
    (error,) = spec_errors({"spec.s3.encryption": {"type": "Kms", "kmsKey": "a b"}})
    assert error.startswith('spec.s3.encryption.kmsKey: "a b" is not a key of AWS KMS')


@pytest.mark.parametrize(
    ("name", "other", "value"),
    [
        ("accelerate", "endpoint", "https://store"),
        ("accelerate", "pathStyle", True),
        ("dualStack", "endpoint", "https://store"),
        ("anonymous", "credentials", {"secret": "keys"}),
        ("anonymous", "assumeRole", {"arn": "arn:aws:iam::123456789012:role/archive"}),
    ],
)
def test_fields_that_exclude_each_other_are_rejected(name: str, other: str, value: object) -> None:
    assert spec_errors({f"spec.s3.{name}": True, f"spec.s3.{other}": value}) == [
        f"spec.s3.{name}: cannot be combined with spec.s3.{other}: remove one of them"
    ]


def test_a_bucket_with_a_dot_is_not_accelerated() -> None:
    (error,) = spec_errors({"spec.s3.accelerate": True, "spec.s3.bucket": "a.b"})
    assert error.startswith("spec.s3.accelerate: is not possible")


@pytest.mark.parametrize("owner", ["1", "12345678901a"])
def test_an_owner_that_is_no_account_is_rejected(owner: str) -> None:
    (error,) = spec_errors({"spec.s3.expectedBucketOwner": owner})
    assert error.startswith(f"spec.s3.expectedBucketOwner: {owner} is not the id of an account")


def test_requests_are_tried_again_for_at_most_an_hour() -> None:
    assert accepted({"spec.s3.retryFor": "0s"}).spec.s3.retry_for == 0
    (error,) = spec_errors({"spec.s3.retryFor": "61m"})
    assert error == "spec.s3.retryFor: 61m is above the maximum of 1h"


def test_objects_expire_after_a_day_or_more() -> None:
    assert accepted({"spec.s3.expireAfter": "400d"}).spec.s3.expire_after == 400 * 86_400_000
    (error,) = spec_errors({"spec.s3.expireAfter": "23h"})
    assert error == "spec.s3.expireAfter: 23h is below the minimum of 1d"
