"""Texts of sections for AWS."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sink_job.api.aws_types import (
    CannedAcl,
    StorageClass,
    check_external_id,
    check_no_proxy,
    check_proxy_url,
    check_role_arn,
    check_session_name,
)


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (check_role_arn, "arn:aws-cn:iam::123456789012:role/path/to/x"),
        (check_external_id, "partner:7/x"),
        (check_session_name, "s3sink"),
        (check_session_name, "a" * 64),
        (check_proxy_url, "http://proxy:3128"),
        (check_proxy_url, "https://[fd00::1]:443/"),
        (check_no_proxy, ".example.com"),
        (check_no_proxy, "fd00::/8"),
    ],
)
def test_texts_that_aws_accepts_are_accepted(check: Callable[[str], None], text: str) -> None:
    check(text)


@pytest.mark.parametrize(
    ("check", "text", "message"),
    [
        (check_role_arn, "arn:aws:iam::123456789012:user/x", "is not the ARN of a role"),
        (check_external_id, "x", "is not an external id"),
        (check_session_name, "a b", "is not the name of a session"),
        (check_session_name, "a" * 65, "is not the name of a session"),
        (check_proxy_url, "proxy:3128", "is not the URL of a proxy"),
        (check_proxy_url, "http://proxy", "is not the URL of a proxy"),
        (check_proxy_url, "socks5://proxy:1080", "is not the URL of a proxy"),
        (check_proxy_url, "http://proxy:3128/path", "is not the URL of a proxy"),
        (check_proxy_url, "http://u:hunter2@proxy:3128", "contains a login: put it into a secret"),
        (check_proxy_url, f"http://{'a' * 512}:1", "is longer than 512 characters"),
        (check_proxy_url, "http://proxy:x", "is not the URL of a proxy"),
        (check_no_proxy, "*.example.com", "is not a host, domain"),
        (check_no_proxy, "a b", "is not a host, domain"),
    ],
)
def test_other_texts_are_rejected_with_what_is_allowed(check: Callable[[str], None], text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check(text)


def test_names_of_enumerations_are_those_of_s3s_api() -> None:
    assert StorageClass.ONE_ZONE_IA.s3_name == "ONEZONE_IA"
    assert {acl.s3_name for acl in CannedAcl} == {
        "private",
        "public-read",
        "public-read-write",
        "authenticated-read",
        "aws-exec-read",
        "bucket-owner-read",
        "bucket-owner-full-control",
    }
    assert all(each.s3_name for each in StorageClass)
