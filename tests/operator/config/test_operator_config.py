"""The configuration file of the operator."""

from __future__ import annotations

import re

import pytest

from s3sink_operator.config.operator_config import read_config


def test_an_empty_configuration_has_no_defaults() -> None:
    for text in ("", "sinkDefaults: {}", "sinkDefaults:\n"):
        assert read_config(text).sink_defaults.is_empty


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sinkDefault: {}", "the only fields are sinkDefaults and sinkRestrictions"),
        (
            "sinkDefaults: {nodeselector: {}}",
            "sinkDefaults.nodeselector: unknown field, or one that only a sink can set",
        ),
        ("sinkDefaults: {s3: {bucket: a}}", "sinkDefaults.s3.bucket: unknown field, or one that only a sink can set"),
        ("sinkDefaults: {executor: {instances: 2}}", "sinkDefaults.executor.instances: unknown field"),
        ("sinkDefaults: {executor: {memory: {max: 1Mi}}}", "sinkDefaults.executor.memory.max: Value error, is below"),
        ("sinkDefaults: {s3: {endpoint: 'minio:9000'}}", "sinkDefaults.s3.endpoint"),
        ("sinkDefaults: {resources: {limits: {memory: 1Gi}}}", "memory is sized by the operator"),
        ("sinkDefaults: {podTemplate: {nodeSelector: {}}}", "nodeSelector is not a field of a pod template"),
        ("sinkDefaults: {labels: {a: 1}}", "sinkDefaults.labels.a"),
        ("a: [", "invalid YAML"),
    ],
)
def test_a_mistake_in_the_configuration_is_named(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        read_config(text)
