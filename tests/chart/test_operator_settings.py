"""What the chart gives the operator and its drivers beside images and permissions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from s3sink_operator.config.operator_config import read_config
from tests.chart.test_templates import container, matches
from tests.support.chart import EVERYTHING, MINIMAL, Rendered

pytestmark = pytest.mark.cluster

Template = Callable[..., Rendered]


def test_several_replicas_are_spread_over_zones_and_nodes_where_that_is_possible(template: Template) -> None:
    def spread(*sets: str) -> Any:
        made = template(MINIMAL, *sets).one("Deployment")["spec"]["template"]
        found = made["spec"].get("topologySpreadConstraints", [])
        assert all(matches(each["labelSelector"], made["metadata"]["labels"]) for each in found)
        return [(each["topologyKey"], each["whenUnsatisfiable"]) for each in found]

    assert spread() == []
    assert spread("replicaCount=2") == [
        ("topology.kubernetes.io/zone", "ScheduleAnyway"),
        ("kubernetes.io/hostname", "ScheduleAnyway"),
    ]


def test_own_spread_constraints_replace_those_of_the_chart(template: Template) -> None:
    own = "topologySpreadConstraints[0].topologyKey=rack"
    made = template(MINIMAL, "replicaCount=2", own).one("Deployment")["spec"]["template"]["spec"]
    assert made["topologySpreadConstraints"] == [{"topologyKey": "rack"}]


def test_the_role_of_drivers_outlives_the_release_unless_it_shall_not(template: Template) -> None:
    role = template().one("ClusterRole", "s3sink-driver")
    assert role["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    given_up = template(MINIMAL, "driverClusterRole.keep=false").one("ClusterRole", "s3sink-driver")
    assert "annotations" not in given_up["metadata"]


def test_the_operator_requests_the_memory_of_a_thousand_sinks(template: Template) -> None:
    assert container(template())["resources"]["requests"]["memory"] == "320Mi"


def config(made: Rendered) -> Any:
    return yaml.safe_load(made.one("ConfigMap", "s3sink-operator-config")["data"]["config.yaml"])


def test_the_operator_reads_the_defaults_of_sinks_and_only_those_that_are_set(template: Template) -> None:
    made = template(EVERYTHING)
    values = yaml.safe_load(EVERYTHING.read_text())["sinkDefaults"]
    assert config(made) == {"sinkDefaults": values}
    found = read_config(made.one("ConfigMap", "s3sink-operator-config")["data"]["config.yaml"]).sink_defaults
    assert found.document() == values
    pod = made.one("Deployment")["spec"]["template"]["spec"]
    (volume,) = [each for each in pod["volumes"] if each["name"] == "config"]
    assert volume["configMap"]["name"] == "s3sink-operator-config"
    (mount,) = [each for each in container(made)["volumeMounts"] if each["name"] == "config"]
    assert f"--config={mount['mountPath']}/config.yaml" in container(made)["args"]


def test_other_defaults_of_sinks_restart_the_operator(template: Template) -> None:
    def annotations(*sets: str) -> Any:
        return template(MINIMAL, *sets).one("Deployment")["spec"]["template"]["metadata"]["annotations"]

    ssd = annotations("sinkDefaults.nodeSelector.disk=ssd")
    assert ssd != annotations("sinkDefaults.nodeSelector.disk=nvme")


def test_without_defaults_of_sinks_the_operator_has_no_configuration(template: Template) -> None:
    made = template()
    assert not made.of("ConfigMap")
    assert not [word for word in container(made)["args"] if word.startswith("--config")]
    assert [each["name"] for each in container(made)["volumeMounts"]] == ["tmp"]
