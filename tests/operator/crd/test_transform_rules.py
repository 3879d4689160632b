"""The CEL rules of `spec.transforms`. tests/operator/crd/rejected_manifests.py has what they reject."""

from __future__ import annotations

from s3sink_operator.crd.transform_rules import transform_rules


def test_each_rule_names_what_to_do() -> None:
    rules = list(transform_rules())
    assert len(rules) == 4
    assert all(": " in rule.message for rule in rules)
