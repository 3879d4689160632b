"""The role that a connector assumes, and its proxy."""

from __future__ import annotations

import pytest

from sink_job.migrate.findings import Severity
from tests.unit.migrate.test_conversion import findings_of
from tests.unit.migrate.test_store import KEYS, PROVIDER, s3_of

ARN = "arn:aws:iam::123456789012:role/archive"
STS = "s3.credentials.provider.sts."
ROLE = {PROVIDER: "io.confluent.connect.s3.auth.AwsAssumeRoleCredentialsProvider", f"{STS}role.arn": ARN}


@pytest.mark.parametrize("keys", [{}, KEYS])
def test_the_role_of_the_connector_s_provider_is_assumed_with_the_keys_or_the_default_chain(
    keys: dict[str, str],
) -> None:
    more = {f"{STS}role.external.id": "partner-7", f"{STS}role.session.name": "flights"}
    found = s3_of({**ROLE, **more, **keys})
    assert found["assumeRole"] == {"arn": ARN, "externalId": "partner-7", "sessionName": "flights"}
    assert ("credentials" in found) == bool(keys)
    assert findings_of({**ROLE, **more, **keys}) == []


def test_the_region_of_sts_is_that_of_the_bucket() -> None:
    settings = {**ROLE, f"{STS}region": "us-east-1"}
    assert findings_of(settings) == []
    assert len(findings_of(settings, Severity.LEFT_OUT)) > len(findings_of(ROLE, Severity.LEFT_OUT))


@pytest.mark.parametrize("arn", ["", "archive", "${env:ROLE}"])
def test_a_role_that_is_none_is_reported(arn: str) -> None:
    settings = {**ROLE, f"{STS}role.arn": arn}
    assert "assumeRole" not in s3_of(settings)
    assert any(PROVIDER in each for each in findings_of(settings))


def test_the_settings_of_a_provider_of_one_s_own_are_no_role() -> None:
    assert "assumeRole" not in s3_of({**ROLE, PROVIDER: "com.example.AssumeRole"})


def test_a_proxy_with_a_login_names_a_secret_and_no_password() -> None:
    login = {"s3.proxy.user": "squid", "s3.proxy.password": "hunter2hunter2"}
    found = s3_of({"s3.proxy.url": "https://proxy:3128", **login})
    assert found["proxy"] == {"url": "https://proxy:3128", "credentials": {"secret": "flights-proxy"}}


@pytest.mark.parametrize(
    ("url", "written"), [("http://proxy", "http://proxy:80"), ("https://proxy/", "https://proxy:443")]
)
def test_a_proxy_without_a_port_has_that_of_its_scheme(url: str, written: str) -> None:
    assert s3_of({"s3.proxy.url": url})["proxy"] == {"url": written}


@pytest.mark.parametrize("url", ["proxy:3128", "http://u:hunter2@proxy:1", "${env:PROXY}"])
def test_a_proxy_that_is_none_is_reported_without_its_url(url: str) -> None:
    assert "proxy" not in s3_of({"s3.proxy.url": url})
    (finding,) = findings_of({"s3.proxy.url": url})
    assert "hunter2" not in finding


def test_a_login_without_a_proxy_and_half_a_login_have_no_effect() -> None:
    assert "proxy" not in s3_of({"s3.proxy.user": "squid"})
    assert s3_of({"s3.proxy.url": "http://proxy:1", "s3.proxy.user": "squid"})["proxy"] == {"url": "http://proxy:1"}


@pytest.mark.parametrize(
    ("url", "why"),
    [({}, "has no effect without s3.proxy.url"), ({"s3.proxy.url": "proxy:3128"}, "is left out with s3.proxy.url")],
)
def test_a_login_says_whether_there_is_a_proxy(url: dict[str, str], why: str) -> None:
    (finding,) = findings_of({"s3.proxy.user": "squid", **url}, Severity.LEFT_OUT)
    assert finding.endswith(why)


def test_the_acl_and_the_tags_of_a_connector_are_those_of_objects() -> None:
    tagging = {"s3.object.tagging": "true", "s3.object.tagging.key.value.pairs": "team:orders, cost:a:b"}
    found = s3_of({"s3.acl.canned": "bucket-owner-full-control", **tagging})
    assert (found["acl"], found["tags"]) == ("BucketOwnerFullControl", {"team": "orders", "cost": "a:b"})


def test_tags_without_tagging_have_no_effect() -> None:
    given = {"s3.object.tagging.key.value.pairs": "team:orders", "s3.object.behavior.on.tagging.error": "fail"}
    assert not {"tags", "offsetTags", "onTagError"} & s3_of(given).keys()


@pytest.mark.parametrize(
    ("on_error", "expected"),
    [
        ({}, None),
        ({"s3.object.behavior.on.tagging.error": "fail"}, "Fail"),
        ({"s3.object.behavior.on.tagging.error": "ignore"}, None),
    ],
)
def test_tagging_becomes_tags_with_offsets(on_error: dict[str, str], expected: str | None) -> None:
    found = s3_of({"s3.object.tagging": "true", **on_error})
    assert (found["offsetTags"], found.get("onTagError")) == (True, expected)


@pytest.mark.parametrize(
    "settings",
    [
        {"s3.acl.canned": "log-delivery-write"},
        {"s3.object.tagging.key.value.pairs": "a;b:c"},
        {"s3.object.tagging.key.value.pairs": ",".join(f"k{n}:v" for n in range(8))},
        {"s3.object.tagging.key.value.pairs": "endOffset:1"},
        {"s3.object.behavior.on.tagging.error": "stop"},
    ],
)
def test_attributes_that_s3_rejects_are_reported(settings: dict[str, str]) -> None:
    found = findings_of({"s3.object.tagging": "true", **settings})
    assert any(next(iter(settings)) in each for each in found)


@pytest.mark.parametrize(
    ("settings", "encryption"),
    [
        ({"s3.ssea.name": "AES256"}, {"type": "Aes256"}),
        ({"s3.ssea.name": "aws:kms"}, {"type": "Kms"}),
        ({"s3.ssea.name": "aws:kms", "s3.sse.kms.key.id": "alias/a"}, {"type": "Kms", "kmsKey": "alias/a"}),
        ({"s3.ssea.name": "AES256", "s3.sse.kms.key.id": "alias/a"}, {"type": "Aes256"}),
        (
            {"s3.ssea.name": "AES256", "s3.sse.customer.key": "the-key"},
            {"type": "Customer", "customerKey": {"secret": "flights-encryption", "key": "customerKey"}},
        ),
        ({"s3.ssea.name": "aws:kms", "s3.sse.customer.key": "the-key"}, {"type": "Kms"}),
        ({"s3.sse.kms.key.id": "alias/a"}, None),
        ({"s3.ssea.name": ""}, None),
    ],
)
def test_the_encryption_of_a_connector_is_written(settings: dict[str, str], encryption: object) -> None:
    assert s3_of(settings).get("encryption") == encryption
    assert findings_of(settings) == []


def test_an_unknown_encryption_is_reported() -> None:
    assert "encryption" not in s3_of({"s3.ssea.name": "rot13"})
    assert any("s3.ssea.name" in each for each in findings_of({"s3.ssea.name": "rot13"}))


def test_an_accelerated_endpoint_is_taken_over_if_it_is_one_of_aws() -> None:
    assert s3_of({"s3.wan.mode": "true"})["accelerate"] is True
    assert "accelerate" not in s3_of({"s3.wan.mode": "false"})
    both = {"s3.wan.mode": "true", "store.url": "https://minio:9000"}
    assert "accelerate" not in s3_of(both)
    assert any("s3.wan.mode" in each for each in findings_of(both))


def test_a_key_of_customers_needs_a_store_with_tls() -> None:
    settings = {"s3.ssea.name": "AES256", "s3.sse.customer.key": "the-key", "store.url": "http://minio:9000"}
    (finding,) = findings_of(settings, Severity.IMPOSSIBLE)
    assert "needs a store with TLS" in finding
    assert "encryption" in s3_of({**settings, "store.url": "https://minio:9000"})
