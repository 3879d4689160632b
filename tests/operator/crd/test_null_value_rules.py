"""The CEL rules of records without a value."""

from __future__ import annotations

from s3sink_operator.crd.null_value_rules import null_value_rules


def test_each_rule_names_a_field() -> None:
    assert all(rule.message.startswith(("spec.errors.", "spec.schemaCompatibility")) for rule in null_value_rules())
