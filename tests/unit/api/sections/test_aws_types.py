"""Texts of sections for AWS."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sink_job.api.sections.aws_types import check_external_id, check_role_arn, check_session_name


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (check_role_arn, "arn:aws-cn:iam::123456789012:role/path/to/x"),
        (check_external_id, "partner:7/x"),
        (check_session_name, "s3sink"),
        (check_session_name, "a" * 64),
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
    ],
)
def test_other_texts_are_rejected_with_what_is_allowed(check: Callable[[str], None], text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check(text)
