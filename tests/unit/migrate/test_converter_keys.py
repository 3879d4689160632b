"""The rows of converters."""

from __future__ import annotations

from sink_job.api.rules.reserved_properties import is_secret
from sink_job.migrate.converter_keys import CONVERTER_KEYS
from sink_job.migrate.table import KeyOwner


def test_rows_are_of_converters_and_without_their_prefix() -> None:
    assert [
        row.key for row in CONVERTER_KEYS if row.owner is KeyOwner.CONNECTOR or row.key.startswith("value.converter")
    ] == []


def test_keys_with_the_name_of_a_secret_are_secrets() -> None:
    harmless = {"basic.auth.credentials.source"}
    shown = {row.key for row in CONVERTER_KEYS if not row.is_secret and not row.key.endswith("*")}
    assert {key for key in shown if is_secret(key)} - harmless == set()
