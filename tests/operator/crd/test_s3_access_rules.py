"""The CEL rules for access to S3."""

from __future__ import annotations

from s3sink_operator.crd.s3_access_rules import s3_access_rules


def test_each_rule_names_a_field_of_s3() -> None:
    assert all(rule.message.startswith("spec.s3.") for rule in s3_access_rules())
