"""Rules for the fields of `spec.s3` that concern access and attributes of objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from sink_job.api.aws_types import OFFSET_TAGS, EncryptionType, TagErrors, check_tag_key
from sink_job.api.field_errors import FieldError, Path, shown
from sink_job.api.field_types import RESERVED, is_loopback
from sink_job.api.rules.dead_letter_rules import overlap

if TYPE_CHECKING:
    from sink_job.api.spec import Spec

_S3: Final[Path] = ("spec", "s3")
MAX_LEDGER_FRONT: Final = 512
"""Maximum number of characters before `/_s3sink/` in the keys of a ledger in another place, as of topicsDir."""
MAX_TAGS_BESIDE_OFFSETS: Final = 7
"""S3 allows ten tags for an object, and three have its offsets."""


def check_s3_access(spec: Spec) -> Iterator[FieldError]:
    """The errors of the fields."""
    yield from _encryption(spec)
    yield from _combinations(spec)
    yield from _offset_tags(spec)
    yield from _object_lock(spec)
    yield from _ledger(spec)
    for key in spec.s3.tags:
        try:
            check_tag_key(key)
        except ValueError as error:
            here = (*_S3, "tags")
            yield FieldError(here, f"{shown(here, key)} {error}")


def _offset_tags(spec: Spec) -> Iterator[FieldError]:
    s3, tags, switch = spec.s3, (*_S3, "tags"), (*_S3, "offsetTags")
    if not s3.offset_tags:
        if s3.on_tag_error is TagErrors.FAIL:
            yield FieldError((*_S3, "onTagError"), "has no effect without offsetTags: true: remove it", (switch,))
        return
    if len(s3.tags) > MAX_TAGS_BESIDE_OFFSETS:
        message = f"has more than {MAX_TAGS_BESIDE_OFFSETS} tags beside those of offsetTags: S3 allows ten in all"
        yield FieldError(tags, message, (switch,))
    for key in OFFSET_TAGS:
        if key in s3.tags:
            yield FieldError(tags, f"{shown(tags, key)} is a tag of offsetTags: rename it", (switch,))


def _object_lock(spec: Spec) -> Iterator[FieldError]:
    lock, here = spec.s3.object_lock, (*_S3, "objectLock")
    if lock is None:
        return
    if (lock.mode is None) != (lock.retain is None):
        given, missing = ("mode", "retain") if lock.retain is None else ("retain", "mode")
        yield FieldError((*here, missing), f"is missing: {given} has no effect without it", ((*here, given),))
    elif lock.mode is None and not lock.legal_hold:
        yield FieldError(here, "locks nothing: set mode and retain, or legalHold: true")


def _ledger(spec: Spec) -> Iterator[FieldError]:
    """Readers of the objects must not list the ledger, and its keys must not be too long."""
    s3, here = spec.s3, (*_S3, "ledger")
    if s3.ledger is None:
        return
    if len(s3.ledger_front) + len(s3.topics_dir) > MAX_LEDGER_FRONT:
        message = (
            f"has a prefix and a bucket that are too long with spec.s3.topicsDir: all names and / have more than "
            f"{MAX_LEDGER_FRONT} characters; shorten the prefix"
        )
        yield FieldError(here, message, ((*_S3, "topicsDir"),))
    if RESERVED in (spec.partitioner.path_format or "").replace("'", ""):
        # The key of an object could be one of a ledger: in a topic with the name of the bucket, without topicsDir.
        yield FieldError(
            ("spec", "partitioner", "pathFormat"), f"contains the directory {RESERVED}, which is reserved for ledgers"
        )
    if s3.ledger.bucket != s3.bucket:
        return
    if s3.ledger.prefix is None:
        message = "is missing: the bucket is that of the objects; set a prefix outside of spec.s3.topicsDir"
        yield FieldError((*here, "prefix"), message, ((*here, "bucket"),))
        return
    dead_letters = spec.errors.dead_letters.prefix
    for name, directory in (("spec.s3.topicsDir", s3.topics_dir), ("spec.errors.deadLetters.prefix", dead_letters)):
        path = tuple(name.split("."))
        if directory is not None and (not directory or overlap(s3.ledger.prefix, directory, s3.directory_delimiter)):
            message = (
                f"{shown((*here, 'prefix'), s3.ledger.prefix)} and {name} {shown(path, directory)} must not "
                "contain each other in one bucket: readers of the objects would list the ledger; use another prefix "
                "or another bucket"
            )
            yield FieldError((*here, "prefix"), message, (path,))


def _encryption(spec: Spec) -> Iterator[FieldError]:
    encryption, here = spec.s3.encryption, (*_S3, "encryption")
    if encryption is None:
        return
    for name, is_set, types in (
        ("kmsKey", encryption.kms_key is not None, (EncryptionType.KMS, EncryptionType.KMS_DSSE)),
        ("bucketKey", encryption.bucket_key is not None, (EncryptionType.KMS,)),
        ("customerKey", encryption.customer_key is not None, (EncryptionType.CUSTOMER,)),
    ):
        if is_set and encryption.type not in types:
            message = f"has no effect with the type {encryption.type}, only with {' and '.join(types)}: remove it"
            yield FieldError((*here, name), message, ((*here, "type"),))
    if encryption.type is EncryptionType.CUSTOMER and encryption.customer_key is None:
        yield FieldError((*here, "customerKey"), "is missing: the type Customer needs it", ((*here, "type"),))
    if encryption.type is EncryptionType.CUSTOMER or encryption.previous_keys:
        endpoint = spec.s3.endpoint
        if endpoint is not None and endpoint.startswith("http://") and not is_loopback(endpoint):
            message = "is not possible with an endpoint without TLS, also with insecure: each request contains the key"
            yield FieldError((*here, "type"), message, ((*_S3, "endpoint"),))


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
