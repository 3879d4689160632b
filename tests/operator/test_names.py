"""Names, labels and annotations: what Kubernetes and Spark allow, and no two things by one name."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_operator import names
from s3sink_operator.names import Component

LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
KEY = re.compile(r"[a-z0-9.]+/[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")

sinks = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?", fullmatch=True)
attempts = st.integers(min_value=1, max_value=2**31)


def children(sink: str) -> set[str]:
    """Every name that a sink takes, by kind; one name may be taken by several kinds."""
    return {
        f"ConfigMap/{names.config_map_name(sink)}",
        f"ServiceAccount/{names.service_account_name(sink)}",
        f"RoleBinding/{names.role_binding_name(sink)}",
        f"Pod/{names.driver_pod_name(sink)}",
        f"Pod/{names.operation_pod_name(sink)}",
    }


def test_the_edition_of_a_sink_differs_with_its_generation_and_its_skip_annotation() -> None:
    found = [names.edition(generation, skip) for generation in (1, 2) for skip in (None, "", "a-0@1", "a-0@2")]
    assert len(set(found)) == len(found)
    assert found[0] == "1"


def test_the_names_of_a_sink_are_those_of_the_documents() -> None:
    assert children("flights") == {
        "ConfigMap/flights-s3sink",
        "ServiceAccount/flights-s3sink",
        "RoleBinding/flights-s3sink",
        "Pod/flights-s3sink-driver",
        "Pod/flights-s3sink-operation",
    }


@given(sinks)
def test_every_name_of_a_sink_with_an_allowed_name_is_a_host_name(sink: str) -> None:
    assert len(sink) <= names.MAX_SINK_NAME
    assert all(DNS_LABEL.fullmatch(child.split("/")[1]) for child in children(sink))


@given(sinks, attempts, st.integers(min_value=1, max_value=9_999_999_999))
def test_the_pod_that_spark_names_after_an_attempt_is_a_host_name(sink: str, attempt: int, executor: int) -> None:
    name = names.attempt_name(sink, attempt)
    assert len(name) <= names.MAX_ATTEMPT_NAME
    assert DNS_LABEL.fullmatch(f"{name}-exec-{executor}")


@given(sinks, sinks)
def test_no_two_sinks_of_a_namespace_share_a_child(one: str, other: str) -> None:
    assert one == other or not children(one) & children(other)


@given(st.tuples(sinks, st.integers(1, 10**6 - 1)), st.tuples(sinks, st.integers(1, 10**6 - 1)))
def test_no_two_attempts_share_a_name_be_it_of_one_sink_or_two(one: tuple[str, int], other: tuple[str, int]) -> None:
    assert one == other or names.attempt_name(*one) != names.attempt_name(*other)


def test_an_attempt_keeps_its_name_short_after_a_million_of_them() -> None:
    assert names.attempt_name("a" * 40, 1_000_007) == "a" * 40 + "-7"


@given(sinks, st.sampled_from(Component), attempts)
def test_labels_are_ones_that_kubernetes_takes(sink: str, component: Component, attempt: int) -> None:
    for key, value in names.pod_labels(sink, component, attempt).items():
        assert KEY.fullmatch(key)
        assert LABEL_VALUE.fullmatch(value)


def test_the_labels_of_a_driver_pod() -> None:
    assert names.pod_labels("flights", Component.DRIVER, 3) == {
        "app.kubernetes.io/name": "s3sink",
        "app.kubernetes.io/instance": "flights",
        "app.kubernetes.io/component": "driver",
        "app.kubernetes.io/managed-by": "s3sink-operator",
        "s3sink.io/sink": "flights",
        "s3sink.io/attempt": "3",
    }


def test_only_pods_carry_the_number_of_an_attempt() -> None:
    assert names.ATTEMPT_LABEL not in names.labels("flights", Component.CONFIG)


@pytest.mark.parametrize(
    ("component", "text"),
    [
        pytest.param(None, "s3sink.io/sink=flights", id="all children"),
        pytest.param(
            Component.EXECUTOR, "s3sink.io/sink=flights,app.kubernetes.io/component=executor", id="its executors"
        ),
    ],
)
def test_a_selector_finds_what_the_labels_say(component: Component | None, text: str) -> None:
    assert names.selector("flights", component) == text
    desired = dict(part.split("=") for part in text.split(","))
    assert desired.items() <= names.labels("flights", component or Component.CONFIG).items()


def test_what_users_write_on_a_sink() -> None:
    assert (names.RESTART_ANNOTATION, names.STATE_ANNOTATION, names.RECONCILE_PAUSED_ANNOTATION) == (
        "s3sink.io/restart",
        "s3sink.io/state",
        "reconcile.s3sink.io/paused",
    )


@pytest.mark.parametrize(
    "key",
    [
        names.FINALIZER,
        names.RESTART_ANNOTATION,
        names.STATE_ANNOTATION,
        names.RECONCILE_PAUSED_ANNOTATION,
        names.SPEC_HASH_ANNOTATION,
    ],
)
def test_annotations_and_the_finalizer_are_keys_that_kubernetes_takes(key: str) -> None:
    assert KEY.fullmatch(key)
