"""The draft of a manifest: values of keys, and which of them are shown."""

from __future__ import annotations

import pytest

from sink_job.migrate.draft import Draft
from sink_job.migrate.findings import Severity


def draft(**settings: str) -> Draft:
    return Draft({key.replace("_", "."): value for key, value in settings.items()}, {})


def test_a_value_has_no_blanks_around_it_and_its_key_is_handled() -> None:
    made = draft(flush_size=" 5 ")
    assert (made.is_handled("flush.size"), made.text("flush.size"), made.is_handled("flush.size")) == (False, "5", True)
    assert made.raw("flush.size") == " 5 "
    assert made.text("topics") is None


def test_an_invalid_value_is_a_finding_and_none() -> None:
    made = draft(flush_size="many")
    assert made.number("flush.size") is None
    assert [(each.severity, each.setting) for each in made.findings] == [(Severity.DIFFERENT, "flush.size=many")]


def test_a_value_of_a_configuration_provider_is_to_be_written_by_hand() -> None:
    made = draft(flush_size="${file:/etc/sink.properties:size}")
    assert made.number("flush.size") is None
    assert "provider" in made.findings[0].effect


@pytest.mark.parametrize(
    "key",
    [
        "aws.secret.access.key",
        "consumer.override.sasl.jaas.config",
        "value.converter.basic.auth.user.info",
        "value.converter.unknown",
        "unknown",
        "transforms.mask.replacement",
        "key.converter.basic.auth.user.info",
        "confluent.topic.sasl.jaas.config",
        "s3.credentials.provider.sts.aws.secret.access.key",
    ],
)
def test_values_of_secrets_of_unknown_keys_and_of_classes_are_not_shown(key: str) -> None:
    assert Draft({key: "hunter2"}, {}).setting(key) == key


def test_other_values_are_shown() -> None:
    assert Draft({"flush.size": "5"}, {}).setting("flush.size") == "flush.size=5"
    assert Draft({}, {}).setting("flush.size") == "flush.size"


def test_findings_have_their_severities() -> None:
    made = draft(a="1")
    made.left_out("a", "x")
    made.different("a", "x")
    made.impossible("a", "x")
    made.missing("b", "x")
    made.to_do("x", "y")
    assert [int(each.severity) for each in made.findings] == [1, 8, 9, 8, 2]
