"""The CEL rules of `s3.prefixes` and `topicInPath`. tests/operator/crd/rejected_manifests.py has what they reject."""

from __future__ import annotations

from s3sink_operator.crd.names_rules import names_rules


def test_each_rule_names_what_to_do() -> None:
    rules = list(names_rules())
    assert len(rules) == 5
    assert all(": " in rule.message for rule in rules)
