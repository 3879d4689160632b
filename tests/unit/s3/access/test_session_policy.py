"""The session policy of a role."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from sink_job.api.errors import ConfigurationError
from sink_job.s3.access.session_policy import BUCKET_ACTIONS, LIST_ACTIONS, OBJECT_ACTIONS, read_policy, session_policy

ARN = "arn:aws:iam::123456789012:role/archive"


def statements(prefixes: list[str], arn: str = ARN) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(session_policy(arn, "archive", prefixes))["Statement"]
    return found


def test_objects_and_listings_are_limited_to_the_prefixes() -> None:
    objects, listing, bucket, keys = statements(["topics/", "rejected/"])
    assert objects["Resource"] == ["arn:aws:s3:::archive/topics/*", "arn:aws:s3:::archive/rejected/*"]
    assert listing["Resource"] == bucket["Resource"] == "arn:aws:s3:::archive"
    assert listing["Condition"] == {"StringLike": {"s3:prefix": ["topics/*", "rejected/*"]}}
    assert all(action.startswith("kms:") for action in keys["Action"])


def test_the_prefix_is_a_condition_only_of_actions_that_have_this_condition_key() -> None:
    _, listing, bucket, _ = statements(["topics/"])
    assert listing["Action"] == ["s3:ListBucket", "s3:ListBucketVersions"]
    assert "s3:ListBucketMultipartUploads" in bucket["Action"]
    assert "Condition" not in bucket


def test_without_a_prefix_the_whole_bucket_is_allowed() -> None:
    objects, listing, *_ = statements([""])
    assert objects["Resource"] == ["arn:aws:s3:::archive/*"]
    assert "Condition" not in listing


def test_the_partition_of_aws_is_that_of_the_role() -> None:
    assert statements([""], ARN.replace("aws", "aws-cn", 1))[2]["Resource"] == "arn:aws-cn:s3:::archive"


def test_a_command_that_only_reads_may_read_all_prefixes_and_write_nothing() -> None:
    found = json.loads(read_policy(ARN.replace("aws", "aws-cn", 1), "archive"))["Statement"]
    actions = [action for statement in found for action in statement["Action"]]
    assert {"s3:GetObject", "s3:ListBucket", "kms:Decrypt"} <= set(actions)
    assert not [action for action in actions if ":Put" in action or ":Delete" in action or ":Abort" in action]
    assert found[0]["Resource"] == "arn:aws-cn:s3:::archive/*"
    assert not any("Condition" in statement for statement in found)


def test_wildcards_of_a_prefix_stand_for_themselves() -> None:
    (resource,) = statements(["a*b?c$/"])[0]["Resource"]
    assert resource == "arn:aws:s3:::archive/a${*}b${?}c${$}/*"


def test_a_policy_that_sts_would_reject_is_reported_with_the_fields() -> None:
    with pytest.raises(ConfigurationError, match=r"AWS allows 2048: shorten spec\.s3\.topicsDir or"):
        session_policy(ARN, "archive", ["ä" * 200])


def test_the_policy_of_the_documentation_has_the_same_actions() -> None:
    text = (Path(__file__).parents[4] / "docs" / "helm.md").read_text(encoding="utf-8")
    documented = json.loads(text.partition('```json\n{\n  "Version"')[2].join(['{"Version"', ""]).partition("```")[0])
    actions = {action for statement in documented["Statement"] for action in statement["Action"]}
    assert actions == {*OBJECT_ACTIONS, *LIST_ACTIONS, *BUCKET_ACTIONS}
    assert not any(fnmatchcase("s3:DeleteBucket", action) for action in actions)


@pytest.mark.parametrize("prefixes", [["topics/"], [""]])
def test_the_ledgers_bucket_is_limited_to_the_folder_of_ledgers(prefixes: list[str]) -> None:
    policy = json.loads(session_policy(ARN, "archive", prefixes, ledger=("ledgers", "archive/topics/_s3sink/")))
    objects, *listings, bucket, _ = policy["Statement"]
    below = "arn:aws:s3:::ledgers/archive/topics/_s3sink/*"
    assert objects["Resource"] == [f"arn:aws:s3:::archive/{prefixes[0]}*", below]
    (of_ledger,) = [each for each in listings if "arn:aws:s3:::ledgers" in each["Resource"]]
    assert "archive/topics/_s3sink/*" in of_ledger["Condition"]["StringLike"]["s3:prefix"]
    assert bucket["Resource"] == ["arn:aws:s3:::archive", "arn:aws:s3:::ledgers"]


def test_a_command_that_only_reads_reads_the_ledger_in_its_bucket() -> None:
    objects, buckets, _ = json.loads(read_policy(ARN, "archive", ("ledgers", "a/_s3sink/")))["Statement"]
    assert objects["Resource"] == ["arn:aws:s3:::archive/*", "arn:aws:s3:::ledgers/a/_s3sink/*"]
    assert buckets["Resource"] == ["arn:aws:s3:::archive", "arn:aws:s3:::ledgers"]
