"""Pod templates on a real API server: what it accepts of what they change."""

from __future__ import annotations

import json

import pytest

from devtools.kube.client import Json
from s3sink_operator.nesting import deep_json
from tests.support.operator_fixture import Operated, condition

pytestmark = pytest.mark.cluster
TEMPLATE: Json = {
    "spec": {
        "terminationGracePeriodSeconds": 90,
        "securityContext": {"runAsUser": 2000, "fsGroup": 2000},
        "containers": [{"name": "s3sink", "imagePullPolicy": "Always"}],
        "volumes": [
            {
                "name": "tmp",
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "spec": {
                            "accessModes": ["ReadWriteOnce"],
                            "resources": {"requests": {"storage": "50Gi"}},
                        }
                    }
                },
            }
        ],
    }
}


def test_a_limit_range_for_ephemeral_storage_rejects_no_sink(sink: Operated) -> None:
    limits = [{"type": "Container", "max": {"ephemeral-storage": "512Mi"}}]
    sink.kube.create(
        {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "disk"}, "spec": {"limits": limits}}
    )
    container = sink.started()["spec"]["containers"][0]
    assert container["resources"]["limits"]["ephemeral-storage"] == "512Mi"


def test_a_template_sets_spill_volume_grace_period_pull_policy_and_uid(sink: Operated) -> None:
    pod = sink.started(driver={"podTemplate": TEMPLATE})["spec"]
    assert pod["terminationGracePeriodSeconds"] == 90
    assert (pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsNonRoot"]) == (2000, True)
    assert pod["containers"][0]["imagePullPolicy"] == "Always"
    (spill,) = [each for each in pod["volumes"] if each["name"] == "tmp"]
    assert "ephemeral" in spill
    assert "emptyDir" not in spill


@pytest.mark.parametrize("levels", [300, 3_000])
def test_a_template_that_is_nested_too_deeply_is_an_invalid_spec_until_it_is_fixed(sink: Operated, levels: int) -> None:
    with deep_json():  # the test reads the sink, too
        deep = json.loads('{"a":' * levels + "{}" + "}" * levels)
        sink.apply(driver={"podTemplate": {"spec": {"x": deep}}})
        found = sink.wait(lambda found: condition(found, "InvalidSpec"), "InvalidSpec")
    message = "spec.driver.podTemplate.spec.x: nested more than 100 levels deep"
    assert condition(found, "InvalidSpec")["message"] == message
    sink.started()
