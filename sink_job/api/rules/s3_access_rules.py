"""Rules for the fields of `spec.s3` that concern access and attributes of objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from sink_job.api.aws_types import EncryptionType, check_tag_key
from sink_job.api.field_errors import FieldError, Path, shown

if TYPE_CHECKING:
    from sink_job.api.spec import Spec

_S3: Final[Path] = ("spec", "s3")


def check_s3_access(spec: Spec) -> Iterator[FieldError]:
    """The errors of the fields."""
    yield from _encryption(spec)
    for key in spec.s3.tags:
        try:
            check_tag_key(key)
        except ValueError as error:
            here = (*_S3, "tags")
            yield FieldError(here, f"{shown(here, key)} {error}")


def _encryption(spec: Spec) -> Iterator[FieldError]:
    encryption, here = spec.s3.encryption, (*_S3, "encryption")
    if encryption is None:
        return
    for name, is_set, types in (
        ("kmsKey", encryption.kms_key is not None, (EncryptionType.KMS, EncryptionType.KMS_DSSE)),
        ("bucketKey", encryption.bucket_key is not None, (EncryptionType.KMS,)),
    ):
        if is_set and encryption.type not in types:
            message = f"has no effect with the type {encryption.type}, only with {' and '.join(types)}: remove it"
            yield FieldError((*here, name), message, ((*here, "type"),))
