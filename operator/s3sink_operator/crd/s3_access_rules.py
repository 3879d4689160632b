"""The CEL rules of `spec.s3` for access, as `sink_job.api.aws_types` has them."""

from __future__ import annotations

from collections.abc import Iterator

from s3sink_operator.crd.cel import LOOPBACK_URL, CelRule, cel_list, either
from sink_job.api.aws_types import OFFSET_TAGS, EncryptionType
from sink_job.api.rules.s3_access_rules import MAX_LEDGER_FRONT, MAX_TAGS_BESIDE_OFFSETS


def s3_access_rules() -> Iterator[CelRule]:
    """The rules of the proxy, of tags, of encryption, and of fields that exclude each other."""
    here = "spec.s3"
    yield CelRule(
        f"{here}.proxy.url",
        r"self.matches('^https?://[^/@?#\\s]+:[1-9][0-9]*/?$')",
        f"{here}.proxy.url is not the URL of a proxy: use http://host:port, with the login in {here}.proxy.credentials",
    )
    yield CelRule(
        f"{here}.tags",
        "self.all(key, key.size() <= 128 && key != '' && !key.lowerAscii().startsWith('aws:'))",
        f"{here}.tags has a key that is no key of a tag: S3 allows 1 to 128 characters, and no prefix aws:",
    )
    yield from _offset_tags(here)
    yield from _object_lock(f"{here}.objectLock")
    yield from _ledger(here)
    yield from _encryption(here)
    yield from _exclusive(here)


def _object_lock(here: str) -> Iterator[CelRule]:
    yield CelRule(
        here,
        "has(self.mode) == has(self.retain)",
        f"{here} has mode without retain, or retain without mode: set both",
    )
    yield CelRule(
        here,
        "has(self.mode) || has(self.retain) || self.legalHold",
        f"{here} locks nothing: set mode and retain, or legalHold: true",
    )


def _ledger(here: str) -> Iterator[CelRule]:
    yield CelRule(
        here,
        "!has(self.ledger) || (has(self.ledger.prefix) ? self.ledger.prefix.size() + 1 : 0) + self.bucket.size() "
        f"+ self.topicsDir.size() < {MAX_LEDGER_FRONT}",
        f"{here}.ledger has a prefix and a bucket that are too long with {here}.topicsDir: all names and / have more "
        f"than {MAX_LEDGER_FRONT} characters; shorten the prefix",
    )
    yield CelRule(
        here,
        "!has(self.ledger) || self.ledger.bucket != self.bucket || has(self.ledger.prefix)",
        f"{here}.ledger.prefix is missing: the bucket is that of the objects; set a prefix outside of {here}.topicsDir",
    )
    contains = "({0} + '/').startsWith({1} + '/') || ({1} + '/').startsWith({0} + '/')".format(
        "self.topicsDir", "self.ledger.prefix"
    )
    yield CelRule(
        here,
        "!has(self.ledger) || !has(self.ledger.prefix) || self.ledger.bucket != self.bucket || "
        f"(self.topicsDir != '' && !({contains}))",
        f"{here}.ledger.prefix and {here}.topicsDir must not contain each other in one bucket: readers of the objects "
        "would list the ledger; use another prefix or another bucket",
    )


def _encryption(here: str) -> Iterator[CelRule]:
    for name, is_absent, types in (
        ("kmsKey", "!has(self.kmsKey)", (EncryptionType.KMS, EncryptionType.KMS_DSSE)),
        ("bucketKey", "!has(self.bucketKey)", (EncryptionType.KMS,)),
        ("customerKey", "!has(self.customerKey)", (EncryptionType.CUSTOMER,)),
    ):
        yield CelRule(
            f"{here}.encryption",
            either(is_absent, f"self.type in {cel_list(types)}"),
            f"{here}.encryption.{name} has no effect with this type, only with {' and '.join(types)}: remove it",
        )
    yield CelRule(
        f"{here}.encryption",
        "self.type != 'Customer' || has(self.customerKey)",
        f"{here}.encryption.customerKey is missing: the type Customer needs it",
    )
    yield CelRule(
        here,
        either(
            "!has(self.encryption)",
            "self.encryption.type != 'Customer' && (!has(self.encryption.previousKeys) || "
            "self.encryption.previousKeys.size() == 0)",
            "!has(self.endpoint)",
            "!self.endpoint.startsWith('http://')",
            f"self.endpoint.matches({LOOPBACK_URL})",
        ),
        f"{here}.encryption.type is not possible with an endpoint without TLS, also with insecure: each request has "
        "the key",
    )


def _exclusive(here: str) -> Iterator[CelRule]:
    for name, conflicts in (
        ("accelerate", {"endpoint": "!has(self.endpoint)", "pathStyle": "!has(self.pathStyle) || !self.pathStyle"}),
        ("dualStack", {"endpoint": "!has(self.endpoint)"}),
        ("anonymous", {"credentials": "!has(self.credentials)", "assumeRole": "!has(self.assumeRole)"}),
    ):
        for other, is_absent in conflicts.items():
            yield CelRule(
                here,
                either(f"!self.{name}", is_absent),
                f"{here}.{name} cannot be combined with {other}: remove one of them",
            )
    yield CelRule(
        here,
        "!self.accelerate || !self.bucket.contains('.')",
        f"{here}.accelerate is not possible: AWS accelerates no bucket with a dot in its name; remove it",
    )


def _offset_tags(here: str) -> Iterator[CelRule]:
    yield CelRule(
        here,
        "self.offsetTags || self.onTagError != 'Fail'",
        f"{here}.onTagError has no effect without offsetTags: true: remove it",
    )
    yield CelRule(
        here,
        f"!self.offsetTags || !has(self.tags) || self.tags.size() <= {MAX_TAGS_BESIDE_OFFSETS}",
        f"{here}.tags has more than {MAX_TAGS_BESIDE_OFFSETS} tags beside those of offsetTags: S3 allows ten in all",
    )
    yield CelRule(
        here,
        f"!self.offsetTags || !has(self.tags) || !self.tags.exists(key, key in {cel_list(OFFSET_TAGS)})",
        f"{here}.tags has a tag of offsetTags ({', '.join(OFFSET_TAGS)}): rename it",
    )
