"""Sections of a manifest for access to AWS: the role that is assumed, the proxy, the ledger's bucket, encryption and
Object Lock."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StrictBool

from sink_job.api.aws_types import EncryptionType, ExternalId, KmsKey, LockMode, NoProxy, ProxyUrl, RoleArn, SessionName
from sink_job.api.base_model import SpecModel, description
from sink_job.api.field_types import Bucket, KeyPrefix
from sink_job.api.sections.secret_refs import SecretKey, SecretRef
from sink_job.api.units.quantities import DAY, HOUR, MINUTE, Duration


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


class ProxySpec(SpecModel):
    """An HTTP proxy for requests to S3, AWS STS, AWS Glue and schema registries; not for Kafka. Requests to https://
    go through a tunnel (CONNECT), so the proxy does not see them."""

    url: Annotated[ProxyUrl, description(key="s3.proxy.url", example="http://proxy.example.com:3128")]
    """URL of the proxy. The certificate of an https:// one is verified with caSecret, or that of the registry."""
    credentials: Annotated[
        SecretRef | None,
        description(key="s3.proxy.user, s3.proxy.password", example={"secret": "proxy-login"}),
    ] = None
    """Secret with username and password for the proxy."""
    no_proxy: Annotated[list[NoProxy], description(example=["registry.example.com", "10.0.0.0/8"], max_length=100)] = (
        Field(default_factory=list)
    )
    """Hosts, domains (with all hosts below them), IP addresses and networks that are reached without the proxy."""


class ObjectLockSpec(SpecModel):
    """Object Lock of objects, in a bucket for which it is enabled; not of ledger and staging."""

    mode: Annotated[LockMode | None, description(example="Governance")] = None
    """With retain. Governance: identities with s3:BypassGovernanceRetention can delete a version before its end.
    Compliance: none can."""
    retain: Annotated[Annotated[int, Duration(minimum=DAY)] | None, description(example="400d")] = None
    """How long the version of an object cannot be deleted, from the start of its upload."""
    legal_hold: StrictBool = False
    """Lock objects until their legal hold is removed."""


class LedgerSpec(SpecModel):
    """The place of ledger and staging, at the endpoint and in the region of the objects' bucket. In the objects' bucket
    remain small files that name the owner, in <topicsDir>/_s3sink/. The place is set once."""

    bucket: Annotated[Bucket, description(example="flights-ledger")]
    """Bucket for ledger and staging. May be that of the objects, with a prefix outside of topicsDir."""
    prefix: Annotated[KeyPrefix | None, description(example="ledgers")] = None
    """First elements of the keys; <bucket of the objects>/<topicsDir>/_s3sink/<sinkId>/ follows. Default: none."""
    credentials: Annotated[SecretRef | None, description(example={"secret": "ledger-keys"})] = None
    """Secret with the keys of s3.credentials, for requests to this bucket alone; assumeRole then does not apply to
    them. Default: as for the objects. Can be changed."""


class EncryptionSpec(SpecModel):
    """Encryption by the store, of objects, ledger and staging."""

    type: Annotated[EncryptionType, description(key="s3.ssea.name", example="Kms")]
    """Aes256: with keys of S3. Kms: with a key of AWS KMS. KmsDsse: twice, with a key of AWS KMS. Customer: with
    customerKey (SSE-C), which the store does not keep."""
    kms_key: Annotated[
        KmsKey | None,
        description(key="s3.sse.kms.key.id", example="arn:aws:kms:eu-central-1:123456789012:key/archive"),
    ] = None
    """Key of AWS KMS: id, ARN or alias; for the types Kms and KmsDsse. Default: the key of AWS for S3 (aws/s3)."""
    bucket_key: StrictBool | None = None
    """Use a key of the bucket, which needs fewer requests to AWS KMS; for the type Kms. Default: that of the bucket."""
    customer_key: Annotated[SecretKey | None, description(example={"secret": "s3-encryption", "key": "current"})] = None
    """Secret with the base64 of a key of 32 bytes; for the type Customer. Without it the objects cannot be read. After
    a change, open objects are closed before others begin, and the key before it must be in previousKeys."""
    previous_keys: Annotated[
        list[SecretKey],
        description(example=[{"secret": "s3-encryption", "key": "2025"}], max_length=10),
    ] = Field(default_factory=list)
    """Secrets with earlier keys, to read what was written with them: the ledger as long as the sink exists. With
    another type than Customer: nothing new has a key, and open objects are closed before others begin."""
