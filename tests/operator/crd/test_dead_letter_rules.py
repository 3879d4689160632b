"""The CEL rules of dead letters."""

from __future__ import annotations

from s3sink_operator.crd.dead_letter_rules import dead_letter_rules


def test_each_rule_names_the_field() -> None:
    assert all(rule.message.startswith("spec.errors.deadLetters.") for rule in dead_letter_rules())
