"""The CEL expressions of the chart's admission policy reject the same pod templates as the operator."""

from __future__ import annotations

from typing import Any

import pytest

from s3sink_operator.config.admission import rejected_fields, restrictions_document
from s3sink_operator.config.sink_restrictions import ALLOWED_FIELDS, NO_RESTRICTIONS, PROCESSES, SinkRestrictions
from tests.operator.cel_subset import evaluate
from tests.support.restricted_sinks import ALLOWED, EXTENDED, EXTENDED_CASES, REJECTED, Case

EXPRESSION = rejected_fields("variables.driver")
NOT_OF_A_TEMPLATE = {"lists of containers as a mapping", "a spec that is a text", "a volume that is a text"}
"""Values of a type that the CRD rejects, so the policy never gets them."""


def rejected(template: Any, fields: tuple[str, ...] = ()) -> list[str]:
    """The fields of a driver's template that the policy rejects. `fields`: those that it allows in addition."""
    variables = {"driver": template, "fields": [*ALLOWED_FIELDS, *fields]}
    found = str(evaluate(EXPRESSION, {"variables": variables}))
    return found.split(", ") if found else []


def templates(*cases: Case) -> list[Any]:
    return [
        pytest.param(case.spec["driver"]["podTemplate"], case.rejected, id=case.id)
        for case in cases
        if "podTemplate" in case.spec.get("driver", {}) and case.id not in NOT_OF_A_TEMPLATE
    ]


@pytest.mark.parametrize(("template", "_"), templates(*ALLOWED))
def test_an_allowed_template_has_no_rejected_field(template: Any, _: object) -> None:
    assert rejected(template) == []


@pytest.mark.parametrize(("template", "words"), templates(*REJECTED))
def test_a_rejected_template_names_the_fields_that_the_operator_names(template: Any, words: tuple[str, ...]) -> None:
    found = rejected(template)
    messages = SinkRestrictions().errors({"driver": {"podTemplate": template}})
    assert len(found) == len(messages) >= len(words)
    for field, message in zip(sorted(found), sorted(messages), strict=True):
        assert message.startswith(f"spec.driver.podTemplate.{field} ")


@pytest.mark.parametrize(("template", "words"), templates(*EXTENDED_CASES))
def test_fields_of_the_chart_are_allowed_by_the_same_expression(template: Any, words: tuple[str, ...]) -> None:
    assert bool(rejected(template, tuple(EXTENDED["podTemplateFields"]))) == bool(words)


def test_a_section_that_the_chart_allows_as_a_whole_is_not_checked_inside() -> None:
    template = {"spec": {"containers": [{"name": "s3sink", "image": "a", "command": ["b"]}]}}
    assert rejected(template) == ["spec.containers.image", "spec.containers.command"]
    assert rejected(template, ("spec.containers",)) == []


def test_each_item_of_a_list_is_checked() -> None:
    containers = [{"name": "s3sink"}, {"name": "s3sink", "tty": True}, {"name": "s3sink", "ports": [{"hostIP": "a"}]}]
    assert rejected({"spec": {"containers": containers}}) == ["spec.containers.tty", "spec.containers.ports.hostIP"]


@pytest.mark.parametrize("name", ["it's", 'a "quoted" field', "back\\slash", "𐀀"])
def test_a_field_with_any_characters_is_named_as_it_is_written(name: str) -> None:
    assert rejected({"spec": {name: 1}}) == [f"spec.{name}"]


def test_the_document_has_an_expression_for_each_process_that_reads_its_own_template() -> None:
    document = restrictions_document()
    variables: dict[str, Any] = {"fields": document["fields"], **{process: {} for process in PROCESSES}}
    for process in PROCESSES:
        checked = {"variables": {**variables, process: {"spec": {"hostPID": True}}}}
        results = {each: evaluate(cel, checked) for each, cel in document["rejected"].items()}
        assert {each for each, found in results.items() if found} == {process}


def test_without_restrictions_the_operator_allows_what_the_expression_would_reject() -> None:
    template = {"spec": {"hostPID": True}}
    assert rejected(template)
    assert not NO_RESTRICTIONS.errors({"driver": {"podTemplate": template}})
