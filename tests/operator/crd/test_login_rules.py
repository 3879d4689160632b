"""The CEL rules of `spec.kafka.login`."""

from __future__ import annotations

import pytest

from s3sink_operator.crd.login_rules import login_rules
from sink_job.api.enums import LoginType
from sink_job.api.sections.login_section import login_properties


@pytest.mark.parametrize("field", ["properties", "propertySecrets"])
@pytest.mark.parametrize("kind", LoginType)
def test_each_property_of_each_type_is_rejected_beside_the_login(kind: LoginType, field: str) -> None:
    rules = [rule.cel for rule in login_rules() if rule.message.startswith(f"spec.kafka.{field} ") and kind in rule.cel]
    assert len(rules) == 1
    assert all(f'"{name}"' in rules[0] for name in login_properties(kind))
