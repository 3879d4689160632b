"""Validated text types and enumerations of sections for AWS. The command `convert` uses the checks without pydantic."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Final
from urllib.parse import urlsplit

from sink_job.api.field_types import TextValidator


def check_role_arn(text: str) -> None:
    """Checks the ARN of an IAM role, of any partition of AWS."""
    if len(text) > 2048 or not re.fullmatch(_ROLE_ARN, text):
        raise ValueError("is not the ARN of a role: use arn:aws:iam::123456789012:role/name")


def check_external_id(text: str) -> None:
    """Checks the external id of a role."""
    if not re.fullmatch(_EXTERNAL_ID, text):
        raise ValueError("is not an external id: AWS allows 2 to 1224 letters, digits and _ + = , . @ : / -")


def check_session_name(text: str) -> None:
    """Checks the name of the session of a role."""
    if not re.fullmatch(_SESSION_NAME, text):
        raise ValueError("is not the name of a session: AWS allows 2 to 64 letters, digits and _ + = , . @ -")


def check_proxy_url(text: str) -> None:
    """Checks the URL of a proxy: scheme, host and port, without a login."""
    message = "is not the URL of a proxy: use http://host:port or https://host:port"
    if len(text) > 512:
        raise ValueError("is longer than 512 characters")
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        raise ValueError(message) from None
    if url.username is not None or url.password is not None:
        raise ValueError("contains a login: put it into a secret and reference it in spec.s3.proxy.credentials")
    if url.scheme not in ("http", "https") or not url.hostname or not port:
        raise ValueError(message)
    if url.path not in ("", "/") or url.query or url.fragment or any(each.isspace() for each in text):
        raise ValueError(message)


def check_no_proxy(text: str) -> None:
    """Checks a host, a domain, an IP address or a network."""
    if not re.fullmatch(_NO_PROXY, text):
        raise ValueError("is not a host, domain, IP address or network: use example.com or 10.0.0.0/8")


def check_tag_key(text: str) -> None:
    """Checks the key of a tag of an object."""
    if not re.fullmatch(_TAG_KEY, text) or text.lower().startswith("aws:"):
        raise ValueError("is not the key of a tag: S3 allows 1 to 128 letters, digits, blanks and + - = . _ : / @")


def check_tag_value(text: str) -> None:
    """Checks the value of a tag of an object."""
    if not re.fullmatch(_TAG_VALUE, text):
        raise ValueError("is not the value of a tag: S3 allows up to 256 letters, digits, blanks and + - = . _ : / @")


def check_account(text: str) -> None:
    """Checks the id of an account of AWS."""
    if not re.fullmatch(r"[0-9]{12}", text):
        raise ValueError("is not the id of an account: AWS has 12 digits; write them as a text, in quotes")


def check_kms_key(text: str) -> None:
    """Checks the id, the ARN or the alias of a key of AWS KMS."""
    if not re.fullmatch(_KMS_KEY, text):
        raise ValueError("is not a key of AWS KMS: use its id, its ARN, or alias/name")


_KMS_KEY: Final = r"[a-zA-Z0-9:/_-]{1,2048}"
_TAG_KEY: Final = r"[\w +=.:/@-]{1,128}"
_TAG_VALUE: Final = r"[\w +=.:/@-]{0,256}"
_NO_PROXY: Final = r"[A-Za-z0-9.:_-]{1,253}(/[0-9]{1,3})?"
_ROLE_ARN: Final = r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[a-zA-Z0-9_+=,.@/-]{1,512}"
_EXTERNAL_ID: Final = r"[a-zA-Z0-9_+=,.@:/-]{2,1224}"
_SESSION_NAME: Final = r"[a-zA-Z0-9_+=,.@-]{2,64}"
RoleArn = Annotated[str, TextValidator(check_role_arn, {"pattern": f"^{_ROLE_ARN}$", "maxLength": 2048})]
ExternalId = Annotated[
    str, TextValidator(check_external_id, {"pattern": "^[a-zA-Z0-9_+=,.@:/-]+$", "minLength": 2, "maxLength": 1224})
]
SessionName = Annotated[
    str, TextValidator(check_session_name, {"pattern": "^[a-zA-Z0-9_+=,.@-]+$", "minLength": 2, "maxLength": 64})
]
ProxyUrl = Annotated[str, TextValidator(check_proxy_url, {"pattern": "^https?://", "maxLength": 512})]
NoProxy = Annotated[str, TextValidator(check_no_proxy, {"pattern": f"^{_NO_PROXY}$", "minLength": 1, "maxLength": 257})]
KmsKey = Annotated[
    str, TextValidator(check_kms_key, {"pattern": "^[a-zA-Z0-9:/_-]+$", "minLength": 1, "maxLength": 2048})
]
Account = Annotated[str, TextValidator(check_account, {"pattern": "^[0-9]{12}$", "maxLength": 12})]
TagValue = Annotated[str, TextValidator(check_tag_value, {"maxLength": 256})]


class StorageClass(StrEnum):
    """The storage classes of S3 whose objects can be read back at once."""

    STANDARD = "Standard"
    STANDARD_IA = "StandardIa"
    ONE_ZONE_IA = "OneZoneIa"
    INTELLIGENT_TIERING = "IntelligentTiering"
    GLACIER_INSTANT_RETRIEVAL = "GlacierInstantRetrieval"
    REDUCED_REDUNDANCY = "ReducedRedundancy"

    @property
    def s3_name(self) -> str:
        """The name in S3's API."""
        return _STORAGE_CLASSES[self]


class CannedAcl(StrEnum):
    """The access control lists of S3 that have a name."""

    PRIVATE = "Private"
    PUBLIC_READ = "PublicRead"
    PUBLIC_READ_WRITE = "PublicReadWrite"
    AUTHENTICATED_READ = "AuthenticatedRead"
    AWS_EXEC_READ = "AwsExecRead"
    BUCKET_OWNER_READ = "BucketOwnerRead"
    BUCKET_OWNER_FULL_CONTROL = "BucketOwnerFullControl"

    @property
    def s3_name(self) -> str:
        """The name in S3's API, such as `bucket-owner-full-control`."""
        return re.sub(r"(?<!^)(?=[A-Z])", "-", self.value).lower()


class TagErrors(StrEnum):
    """What happens if an object gets no tags."""

    IGNORE = "Ignore"
    FAIL = "Fail"


class LockMode(StrEnum):
    """The modes of a retention of S3."""

    GOVERNANCE = "Governance"
    COMPLIANCE = "Compliance"


class EncryptionType(StrEnum):
    """How S3 encrypts what it stores."""

    AES256 = "Aes256"
    KMS = "Kms"
    KMS_DSSE = "KmsDsse"
    CUSTOMER = "Customer"

    @property
    def s3_name(self) -> str | None:
        """The name in S3's API; None for keys of customers, which have parameters of their own."""
        return {"Aes256": "AES256", "Kms": "aws:kms", "KmsDsse": "aws:kms:dsse"}.get(self.value)


OFFSET_TAGS: Final = ("startOffset", "endOffset", "recordCount")
"""The keys of the tags with offsets, as the S3 sink of Kafka Connect writes them."""
_STORAGE_CLASSES: Final = {
    StorageClass.STANDARD: "STANDARD",
    StorageClass.STANDARD_IA: "STANDARD_IA",
    StorageClass.ONE_ZONE_IA: "ONEZONE_IA",
    StorageClass.INTELLIGENT_TIERING: "INTELLIGENT_TIERING",
    StorageClass.GLACIER_INSTANT_RETRIEVAL: "GLACIER_IR",
    StorageClass.REDUCED_REDUNDANCY: "REDUCED_REDUNDANCY",
}
