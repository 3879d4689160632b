"""Pod templates in the schema: they keep the fields that the definition does not know."""

from __future__ import annotations

from s3sink_operator.crd import pod_template
from tests.operator.crd.definition import FIELDS, nodes

KEEPS_UNKNOWN = "x-kubernetes-preserve-unknown-fields"


def test_a_pod_template_keeps_the_fields_that_the_definition_does_not_know() -> None:
    (template, _) = [field for path, field in FIELDS if path in pod_template.PATHS]
    closed = [node for node in nodes(template) if "properties" in node and not node[KEEPS_UNKNOWN]]
    assert closed == []


def test_only_pod_templates_keep_unknown_fields() -> None:
    open_fields = {path for path, field in FIELDS if field.get(KEEPS_UNKNOWN)}
    assert open_fields == {"spec.driver.podTemplate", "spec.executor.podTemplate"}
