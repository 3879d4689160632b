"""The rows of the connector."""

from __future__ import annotations

import pytest

from sink_job.api.rules.reserved_properties import is_secret
from sink_job.migrate.connector_keys import CONNECTOR_KEYS
from sink_job.migrate.table import KeyOwner

KEYS = {row.key for row in CONNECTOR_KEYS}


@pytest.mark.parametrize(
    "key",
    [
        "errors.log.enable",
        "errors.log.include.messages",
        "errors.retry.timeout",
        "errors.retry.delay.max.ms",
        "report.null.values.to.dlq",
        "tombstone.encoded.partition",
        "enable.conditional.writes",
        "max.write.duration.ms",
        "s3.send.digest",
        "storage.class",
        "s3.http.send.expect.continue",
        "s3.elastic.buffer.enable",
        "s3.object.tagging",
        "s3.object.tagging.key.value.pairs",
        "s3.object.behavior.on.tagging.error",
        "s3.retry.backoff.ms",
        "s3.part.retries",
        "header.converter",
        "config.action.reload",
        "tasks.max.enforce",
        "schema.cache.size",
        "retry.backoff.ms",
    ],
)
def test_keys_of_releases_12_have_a_row(key: str) -> None:
    assert key in KEYS


def test_rows_are_of_the_connector() -> None:
    assert {row.owner for row in CONNECTOR_KEYS} == {KeyOwner.CONNECTOR}


def test_keys_with_the_name_of_a_secret_are_secrets_or_stand_for_several_keys() -> None:
    harmless = {"s3.credentials.provider.class", "s3.credentials.provider.sts.region"}
    shown = {row.key for row in CONNECTOR_KEYS if not row.is_secret and not row.key.endswith("*")}
    assert {key for key in shown if is_secret(key)} - harmless == set()
