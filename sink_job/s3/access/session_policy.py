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


def session_policy(role_arn: str, bucket: str, prefixes: Sequence[str], more: Sequence[str] = ()) -> str:
    """The policy for keys of `bucket` that begin with one of `prefixes`; the empty prefix is the whole bucket.

    `more`: further actions on objects. The policy is short: STS limits its length. Raises ConfigurationError if it is
    too long.
    """
    partition = role_arn.split(":", 2)[1]
    patterns = [f"{_literal(prefix)}*" for prefix in prefixes]
    where = f"arn:{partition}:s3:::{bucket}"
    listing: dict[str, Any] = {"Effect": "Allow", "Action": LIST_ACTIONS, "Resource": where}
    if "" not in prefixes:
        listing["Condition"] = {"StringLike": {"s3:prefix": patterns}}
    statements = [
        {
            "Effect": "Allow",
            "Action": [*OBJECT_ACTIONS, *more],
            "Resource": [f"{where}/{pattern}" for pattern in patterns],
        },
        listing,
        {"Effect": "Allow", "Action": BUCKET_ACTIONS, "Resource": where},
        {"Effect": "Allow", "Action": KEY_ACTIONS, "Resource": "*"},
    ]
    policy = json.dumps({"Version": "2012-10-17", "Statement": statements}, separators=(",", ":"))
    if len(policy) > MAX_POLICY:
        raise ConfigurationError(
            f"spec.s3.assumeRole: the session policy has {len(policy)} characters, AWS allows {MAX_POLICY}: shorten "
            "spec.s3.topicsDir or spec.errors.deadLetters.prefix, in which letters beyond ASCII count as six"
        )
    return policy


def read_policy(role_arn: str, bucket: str) -> str:
    """The policy of a command that only reads `bucket`: all of it, since objects can be below the prefixes of earlier
    settings."""
    where = f"arn:{role_arn.split(':', 2)[1]}:s3:::{bucket}"
    statements = [
        {"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": f"{where}/*"},
        {"Effect": "Allow", "Action": [*LIST_ACTIONS, *BUCKET_ACTIONS], "Resource": where},
        {"Effect": "Allow", "Action": ["kms:Decrypt"], "Resource": "*"},
    ]
    return json.dumps({"Version": "2012-10-17", "Statement": statements}, separators=(",", ":"))


def _literal(prefix: str) -> str:
    """`prefix` without wildcards and variables of a policy."""
    return "".join(f"${{{each}}}" if each in "*?$" else each for each in prefix)
