"""The CEL rules of `spec.s3` for access, as `sink_job.api.aws_types` has them."""

from __future__ import annotations

from collections.abc import Iterator

from s3sink_operator.crd.cel import CelRule


def s3_access_rules() -> Iterator[CelRule]:
    """The rules of the proxy and of tags."""
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
