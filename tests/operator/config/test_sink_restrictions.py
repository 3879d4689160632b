"""What the author of a sink may choose about its pods."""

from __future__ import annotations

import re
from typing import Any

import pytest

from s3sink_operator.config.operator_config import read_config
from s3sink_operator.config.sink_restrictions import (
    ALLOWED_FIELDS,
    INNER_PATHS,
    LISTS,
    NO_RESTRICTIONS,
    SinkRestrictions,
)
from s3sink_operator.observe.spec_cache import SpecCache
from s3sink_operator.reasons import Reason
from sink_job.api.units.quantities import MANIFEST
from tests.operator.fake_cluster import SETTINGS, Cluster, document
from tests.support.restricted_sinks import ALLOWED, EXTENDED, EXTENDED_CASES, REJECTED, Case

DEFAULT = SinkRestrictions()


def extended() -> SinkRestrictions:
    return SinkRestrictions.model_validate(EXTENDED, context=MANIFEST)


@pytest.mark.parametrize("case", ALLOWED, ids=lambda case: case.id)
def test_what_chooses_no_program_identity_or_node_is_allowed(case: Case) -> None:
    assert DEFAULT.message(case.spec) == ""


@pytest.mark.parametrize("case", REJECTED, ids=lambda case: case.id)
def test_what_reaches_the_node_or_another_identity_is_rejected_by_name(case: Case) -> None:
    message = DEFAULT.message(case.spec)
    assert message.endswith("Remove the fields, or ask the cluster administrator to allow them (sinkRestrictions)")
    for words in case.rejected:
        assert words in message


@pytest.mark.parametrize("case", EXTENDED_CASES, ids=lambda case: case.id)
def test_an_administrator_allows_more_fields_images_and_service_accounts(case: Case) -> None:
    message = extended().message(case.spec)
    assert bool(message) is bool(case.rejected)
    for words in case.rejected:
        assert words in message


def test_restrictions_that_are_off_allow_everything() -> None:
    assert not [case.id for case in REJECTED if NO_RESTRICTIONS.message(case.spec)]


def test_a_message_lists_ten_fields() -> None:
    spec = {"driver": {"podTemplate": {"spec": {f"field{number}": 1 for number in range(100_000)}}}}
    assert DEFAULT.message(spec).count(" is not allowed") == 10
    assert len(DEFAULT.message(spec)) < 1500


def test_the_fields_of_a_list_are_below_a_known_list() -> None:
    assert set(INNER_PATHS) >= LISTS
    assert not [field for field in ALLOWED_FIELDS if field.partition("=")[0] in INNER_PATHS]


@pytest.mark.parametrize(
    "text",
    [
        "sinkRestrictions: {podTemplateFields: [spec.volumes.hostPath.path]}",
        "sinkRestrictions: {podTemplateFields: ['']}",
        "sinkRestrictions: {podTemplateFields: [spec.]}",
        "sinkRestrictions: {enabled: true, podTemplate: []}",
    ],
)
def test_a_mistake_in_the_restrictions_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape("sinkRestrictions.podTemplate")):
        read_config(text)


def test_sinks_are_restricted_without_a_configuration() -> None:
    assert read_config("").sink_restrictions == DEFAULT
    assert not read_config("sinkRestrictions: {enabled: false}").sink_restrictions.enabled


def test_defaults_of_the_operator_are_not_restricted() -> None:
    config = read_config("sinkDefaults: {podTemplate: {spec: {priorityClassName: lake}}}")
    found = SpecCache(config.sink_defaults, config.sink_restrictions).parse(document()).spec
    assert found.sink is not None
    assert found.sink.spec.driver.pod_template == {"spec": {"priorityClassName": "lake"}}


def test_a_restricted_sink_gets_no_driver_and_the_reason() -> None:
    cluster = restricted(image="evil:1")
    cluster.converge()
    assert cluster.driver is None
    for condition in ("Stalled", Reason.SINK_RESTRICTED):
        assert cluster.condition(condition)["reason"] == Reason.SINK_RESTRICTED
        assert "spec.image: the image evil:1 is not allowed" in cluster.condition(condition)["message"]


def restricted(**spec: Any) -> Cluster:
    return Cluster(sink=document(**spec), settings=SETTINGS, restrictions=DEFAULT)
