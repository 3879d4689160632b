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


def test_beside_tags_with_offsets_there_are_at_most_seven() -> None:
    seven = {f"k{n}": "" for n in range(7)}
    assert accepted({"spec.s3.offsetTags": True, "spec.s3.tags": seven}).spec.s3.offset_tags
    (error,) = spec_errors({"spec.s3.offsetTags": True, "spec.s3.tags": {**seven, "k8": ""}})
    assert error.startswith("spec.s3.tags: has more than 7 tags")


def test_a_tag_with_offsets_cannot_be_given() -> None:
    (error,) = spec_errors({"spec.s3.offsetTags": True, "spec.s3.tags": {"endOffset": "1"}})
    assert error.startswith("spec.s3.tags: endOffset is a tag of offsetTags")
    assert accepted({"spec.s3.tags": {"endOffset": "1"}}).spec.s3.tags == {"endOffset": "1"}


def test_the_reaction_to_errors_of_tags_needs_tags_with_offsets() -> None:
    (error,) = spec_errors({"spec.s3.onTagError": "Fail"})
    assert error.startswith("spec.s3.onTagError: has no effect without offsetTags")


@pytest.mark.parametrize(
    ("lock", "said"),
    [
        ({"mode": "Governance"}, "spec.s3.objectLock.retain: is missing"),
        ({"retain": "30d"}, "spec.s3.objectLock.mode: is missing"),
        ({}, "spec.s3.objectLock: locks nothing"),
        ({"mode": "Compliance", "retain": "23h"}, "spec.s3.objectLock.retain: 23h is below the minimum of 1d"),
    ],
)
def test_a_lock_has_a_mode_with_a_time_or_a_legal_hold(lock: dict[str, object], said: str) -> None:
    (error,) = spec_errors({"spec.s3.objectLock": lock})
    assert error.startswith(said)


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
        ({"type": "Kms", "customerKey": {"secret": "a", "key": "b"}}, "customerKey"),
    ],
)
def test_a_field_of_another_encryption_is_rejected(fields: dict[str, object], name: str) -> None:
    (error,) = spec_errors({"spec.s3.encryption": fields})
    assert error.startswith(f"spec.s3.encryption.{name}: has no effect with the type {fields['type']}")


def test_previous_keys_are_for_each_type_and_need_tls() -> None:
    keys = {"type": "Aes256", "previousKeys": [{"secret": "a", "key": "b"}]}
    assert accepted({"spec.s3.encryption": keys}).spec.s3.encryption is not None
    (error,) = spec_errors(
        {"spec.s3.encryption": keys, "spec.s3.endpoint": "http://store:9000", "spec.s3.insecure": True}
    )
    assert error.startswith("spec.s3.encryption.type: is not possible with an endpoint without TLS")


def test_keys_of_customers_need_a_key_and_tls() -> None:
    (error,) = spec_errors({"spec.s3.encryption": {"type": "Customer"}})
    assert error.startswith("spec.s3.encryption.customerKey: is missing")
    section = {"type": "Customer", "customerKey": {"secret": "a", "key": "b"}}
    (error,) = spec_errors(
        {"spec.s3.encryption": section, "spec.s3.endpoint": "http://store:9000", "spec.s3.insecure": True}
    )
    assert error.startswith("spec.s3.encryption.type: is not possible with an endpoint without TLS")
    for endpoint in ("http://127.0.0.1:9000", "https://store:9000"):
        assert accepted({"spec.s3.encryption": section, "spec.s3.endpoint": endpoint}).spec.s3.endpoint == endpoint


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


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"spec.s3.ledger": {"bucket": "archive"}}, "spec.s3.ledger.prefix: is missing"),
        (
            {"spec.s3.ledger": {"bucket": "archive", "prefix": "topics"}},
            "spec.s3.ledger.prefix: topics and spec.s3.",
        ),
        (
            {"spec.s3.ledger": {"bucket": "archive", "prefix": "a"}, "spec.s3.topicsDir": ""},
            "spec.s3.ledger.prefix: a ",
        ),
        (
            {
                "spec.s3.ledger": {"bucket": "archive", "prefix": "rejected"},
                "spec.errors": {"tolerance": "All", "deadLetters": {"prefix": "rejected/x"}},
            },
            "spec.s3.ledger.prefix: rejected and spec.errors.deadLetters.prefix rejected/x must not contain",
        ),
        (
            {"spec.s3.ledger": {"bucket": "other", "prefix": "a" * 250}, "spec.s3.topicsDir": "b" * 260},
            "spec.s3.ledger: has a prefix and a bucket that are too long",
        ),
    ],
)
def test_readers_of_the_objects_do_not_list_the_ledger(changes: dict[str, object], said: str) -> None:
    (error,) = spec_errors(changes)
    assert error.startswith(said)


@pytest.mark.parametrize("literal", ["'_s3sink'", "'_s3''sink'"])
def test_no_path_looks_like_the_folder_of_a_ledger_in_another_bucket(literal: str) -> None:
    time = {"type": "Time", "timezone": "UTC", "duration": "1h", "pathFormat": f"{literal}/YYYY"}
    changes = {"spec.partitioner": time, "spec.s3.ledger": {"bucket": "other"}}
    (error,) = spec_errors(changes)
    assert error.startswith("spec.partitioner.pathFormat: contains the directory _s3sink")
    accepted({"spec.partitioner": time})


def test_a_ledger_may_be_in_another_bucket_or_directory() -> None:
    for place in (
        {"bucket": "other"},
        {"bucket": "other", "prefix": "topics"},
        {"bucket": "archive", "prefix": "topic"},
    ):
        assert accepted({"spec.s3.ledger": place}).spec.s3.ledger is not None
