"""The field reference in docs/spec.md."""

from __future__ import annotations

import pytest

from sink_job.api.spec_reference import reference

PAGE = reference().splitlines()


def row(section: str, field: str) -> list[str]:
    """The cells of a field: name, value, default, description, connector key."""
    after = PAGE[PAGE.index(f"## {section}") :]
    line = next(line for line in after if line.startswith(f"| `{field}` |"))
    return [cell.strip() for cell in line.strip("|").split(" | ")]


@pytest.mark.parametrize(
    ("section", "field", "value", "default"),
    [
        ("spec", "kafka", "[spec.kafka](#speckafka)", "**required**"),
        ("spec.kafka", "propertySecrets", "list of [spec.kafka.propertySecrets[]](#speckafkapropertysecrets)", "–"),
        ("spec.kafka", "topics", "list of text", "–"),
        ("spec.s3", "bucket", "text", "**required**"),
        ("spec.s3", "partSize", "size, 5Mi … 2Gi", None),
        ("spec.rotation", "flushSize", "number, ≥ 1", "–"),
        ("spec.format.bytes", "separator", "text", "line feed"),
        ("spec.format", "envelope", "true, false", "`false`"),
    ],
)
def test_a_row_has_what_is_allowed_and_the_default(section: str, field: str, value: str, default: str | None) -> None:
    found = row(section, field)
    assert found[1] == value
    assert default is None or found[2] == default


def test_values_that_are_not_supported_yet_come_later() -> None:
    assert row("spec.errors", "onNullValue")[1] == "`Fail`, `Ignore`, `Write`"


def test_a_row_has_the_key_of_the_connector() -> None:
    assert row("spec.rotation", "flushSize")[4] == "`flush.size`"


def test_each_link_leads_to_a_section() -> None:
    anchors = {
        "".join(letter for letter in line.removeprefix("## ").lower() if letter.isalnum())
        for line in PAGE
        if line.startswith("## ")
    }
    links = {line.split("](#")[1].split(")")[0] for line in PAGE if line.startswith("| ") and "](#" in line}
    assert links
    assert links <= anchors
