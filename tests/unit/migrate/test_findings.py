"""Findings and exit codes."""

from __future__ import annotations

import pytest

from sink_job.migrate.findings import Conversion, KeyFinding, Severity


@pytest.mark.parametrize(
    ("severities", "code"),
    [
        ((), 0),
        ((Severity.LEFT_OUT, Severity.TO_DO), 0),
        ((Severity.DIFFERENT, Severity.LEFT_OUT), 8),
        ((Severity.DIFFERENT, Severity.IMPOSSIBLE), 9),
    ],
)
def test_the_worst_finding_is_the_exit_code(severities: tuple[Severity, ...], code: int) -> None:
    findings = tuple(KeyFinding(each, "a=1", "is left out") for each in severities)
    assert Conversion("flights", "flights", (), findings).exit_code == code


def test_a_finding_is_setting_effect_and_action() -> None:
    assert str(KeyFinding(Severity.DIFFERENT, "a=1", "is left out", "use b")) == "a=1: is left out; use b"
    assert str(KeyFinding(Severity.LEFT_OUT, "a=1", "off")) == "a=1: off"


def test_the_manifest_ends_with_a_line_feed() -> None:
    assert Conversion("flights", "flights", ("a", "b"), ()).manifest == "a\nb\n"
