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
    yield from _combinations(spec)
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


def _combinations(spec: Spec) -> Iterator[FieldError]:
    s3 = spec.s3
    for name, is_set, others in (
        ("accelerate", s3.accelerate, {"endpoint": s3.endpoint is not None, "pathStyle": s3.path_style}),
        ("dualStack", s3.dual_stack, {"endpoint": s3.endpoint is not None}),
        (
            "anonymous",
            s3.anonymous,
            {"credentials": s3.credentials is not None, "assumeRole": s3.assume_role is not None},
        ),
    ):
        for other in (found for found, conflicts in others.items() if is_set and conflicts):
            message = f"cannot be combined with spec.s3.{other}: remove one of them"
            yield FieldError((*_S3, name), message, ((*_S3, other),))
    if s3.accelerate and "." in s3.bucket:
        message = "is not possible: AWS accelerates no bucket with a dot in its name; remove it"
        yield FieldError((*_S3, "accelerate"), message, ((*_S3, "bucket"),))
