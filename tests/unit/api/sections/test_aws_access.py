"""The sections for access to AWS."""

from __future__ import annotations

import pytest

from tests.unit.api.manifests import accepted, spec_errors

ARN = "arn:aws:iam::123456789012:role/archive"


def test_a_role_has_a_session_of_an_hour_by_default() -> None:
    role = accepted({"spec.s3.assumeRole": {"arn": ARN}}).spec.s3.assume_role
    assert role is not None
    assert (role.session_name, role.duration, role.external_id) == ("s3sink", 3_600_000, None)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "spec.s3.assumeRole.arn: is missing"),
        ({"arn": "archive"}, "spec.s3.assumeRole.arn: archive is not the ARN of a role"),
        ({"arn": ARN, "duration": "10m"}, "spec.s3.assumeRole.duration: 10m is below the minimum of 15m"),
        ({"arn": ARN, "duration": "13h"}, "spec.s3.assumeRole.duration: 13h is above the maximum of 12h"),
        ({"arn": ARN, "sessionName": "a b"}, 'spec.s3.assumeRole.sessionName: "a b" is not the name of a session'),
    ],
)
def test_what_aws_would_reject_is_reported_with_the_field(fields: dict[str, str], message: str) -> None:
    (error,) = spec_errors({"spec.s3.assumeRole": fields})
    assert error.startswith(message)
