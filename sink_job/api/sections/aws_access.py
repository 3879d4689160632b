"""Sections of a manifest for access to AWS: the role that is assumed."""

from __future__ import annotations

from typing import Annotated

from sink_job.api.base_model import SpecModel, description
from sink_job.api.sections.aws_types import ExternalId, RoleArn, SessionName
from sink_job.api.units.quantities import HOUR, MINUTE, Duration


class AssumeRoleSpec(SpecModel):
    """An IAM role that is assumed at AWS STS. Its credentials are renewed before they end."""

    arn: Annotated[RoleArn, description(example="arn:aws:iam::123456789012:role/archive")]
    """ARN of the role. The identity of the pods, or that of the credentials, needs sts:AssumeRole for it."""
    external_id: Annotated[ExternalId | None, description(example="s3sink")] = None
    """External id that the role's trust policy requires."""
    session_name: SessionName = "s3sink"
    """Name of the session, as AWS CloudTrail shows it."""
    duration: Annotated[int, Duration(minimum=15 * MINUTE, maximum=12 * HOUR)] = HOUR
    """Lifetime of the credentials of a session. AWS allows at most that of the role, and 1h if the role is assumed with
    the credentials of another role."""
