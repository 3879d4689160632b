"""The session policy of an assumed role: what a sink does in its bucket, below its prefixes, and nothing else.

AWS allows a request if both the role and this policy do. The policy of docs/helm.md lists the same actions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from sink_job.api.errors import ConfigurationError

MAX_POLICY: Final = 2048
"""Maximum length of a session policy, in characters."""
OBJECT_ACTIONS: Final = (
    "s3:PutObject",
    "s3:GetObject",
    "s3:GetObjectVersion",
    "s3:DeleteObject",
    "s3:AbortMultipartUpload",
    "s3:ListMultipartUploadParts",
)
LIST_ACTIONS: Final = ("s3:ListBucket", "s3:ListBucketVersions")
BUCKET_ACTIONS: Final = (
    "s3:ListBucketMultipartUploads",
    "s3:GetLifecycleConfiguration",
    "s3:GetBucketVersioning",
    "s3:GetBucketObjectLockConfiguration",
)
"""The condition `s3:prefix` is not a key of ListBucketMultipartUploads: it would deny the request."""
KEY_ACTIONS: Final = ("kms:GenerateDataKey", "kms:Decrypt")


def session_policy(
    role_arn: str,
    bucket: str,
    prefixes: Sequence[str],
    more: Sequence[str] = (),
    *,
    ledger: tuple[str, str] | None = None,
) -> str:
    """The policy for keys of `bucket` that begin with one of `prefixes`; the empty prefix is the whole bucket.

    `more`: further actions on objects. `ledger`: another bucket with the ledger, and the prefix of its keys.
    The policy is short: STS limits its length. Raises ConfigurationError if it is too long.
    """
    partition = role_arn.split(":", 2)[1]
    patterns = [f"{_literal(prefix)}*" for prefix in prefixes]
    where = f"arn:{partition}:s3:::{bucket}"
    buckets, resources = [where], [f"{where}/{pattern}" for pattern in patterns]
    if ledger is not None:
        of_ledger = f"arn:{partition}:s3:::{ledger[0]}"
        buckets = list(dict.fromkeys((where, of_ledger)))
        resources.append(f"{of_ledger}/{_literal(ledger[1])}*")
        patterns.append(f"{_literal(ledger[1])}*")
    listings = [_listing(buckets, patterns)]
    if "" in prefixes:
        listings = [_listing([where], []), *([] if ledger is None else [_listing(buckets[1:], patterns[-1:])])]
    statements = [
        {
            "Effect": "Allow",
            "Action": [*OBJECT_ACTIONS, *more],
            "Resource": resources,
        },
        *listings,
        {"Effect": "Allow", "Action": BUCKET_ACTIONS, "Resource": _one_or_all(buckets)},
        {"Effect": "Allow", "Action": KEY_ACTIONS, "Resource": "*"},
    ]
    policy = json.dumps({"Version": "2012-10-17", "Statement": statements}, separators=(",", ":"))
    if len(policy) > MAX_POLICY:
        raise ConfigurationError(
            f"spec.s3.assumeRole: the session policy has {len(policy)} characters, AWS allows {MAX_POLICY}: shorten "
            "spec.s3.topicsDir or spec.errors.deadLetters.prefix, in which letters beyond ASCII count as six"
        )
    return policy


def _listing(buckets: list[str], patterns: list[str]) -> dict[str, Any]:
    """The statement for listings below prefixes with these patterns, or of whole buckets if there are none."""
    found: dict[str, Any] = {"Effect": "Allow", "Action": LIST_ACTIONS, "Resource": _one_or_all(buckets)}
    return found | ({"Condition": {"StringLike": {"s3:prefix": patterns}}} if patterns else {})


def read_policy(role_arn: str, bucket: str, ledger: tuple[str, str] | None = None) -> str:
    """The policy of a command that only reads `bucket`: all of it, since objects can be below the prefixes of earlier
    settings; and the bucket of `ledger`, below its prefix."""
    where = f"arn:{role_arn.split(':', 2)[1]}:s3:::"
    buckets = list(dict.fromkeys((bucket, bucket if ledger is None else ledger[0])))
    below = [f"{where}{bucket}/*", *(() if ledger is None else (f"{where}{ledger[0]}/{_literal(ledger[1])}*",))]
    statements = [
        {"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": _one_or_all(below)},
        {
            "Effect": "Allow",
            "Action": [*LIST_ACTIONS, *BUCKET_ACTIONS],
            "Resource": _one_or_all([f"{where}{each}" for each in buckets]),
        },
        {"Effect": "Allow", "Action": ["kms:Decrypt"], "Resource": "*"},
    ]
    return json.dumps({"Version": "2012-10-17", "Statement": statements}, separators=(",", ":"))


def _one_or_all(resources: list[str]) -> str | list[str]:
    return resources[0] if len(resources) == 1 else resources


def _literal(prefix: str) -> str:
    """`prefix` without wildcards and variables of a policy."""
    return "".join(f"${{{each}}}" if each in "*?$" else each for each in prefix)
