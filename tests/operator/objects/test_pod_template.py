"""What a pod template changes of the defaults of the operator."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from s3sink_operator import objects
from s3sink_operator.objects import PodShape
from s3sink_operator.types import Json
from sink_job.api.parser import parse_sink
from sink_job.api.units.quantities import GI
from tests.operator.fake_cluster import SETTINGS, document

OWNER = {"apiVersion": "s3sink.io/v1alpha1", "kind": "S3Sink", "name": "flights", "uid": "u", "controller": True}
SHAPE = PodShape(attempt=3, memory=2 * GI, spec_hash="abc")
CLAIM = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "50Gi"}}}}
SPILL_VOLUMES: list[Json] = [
    {"emptyDir": {"sizeLimit": "5Gi"}},
    {"emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
    {"ephemeral": {"volumeClaimTemplate": CLAIM}},
]


def driver(spec: Json) -> Json:
    sink = parse_sink(document(driver={"podTemplate": {"spec": spec}}))
    return dict(objects.driver_pod(sink, OWNER, SETTINGS, SHAPE)["spec"])


def operation(spec: Json) -> Json:
    sink = parse_sink(document(driver={"podTemplate": {"spec": spec}}))
    return dict(objects.operation_pod(sink, OWNER, SETTINGS, SHAPE, "Publish")["spec"])


def executor_files(spec: Json) -> Any:
    executor = {"mode": "Cluster", "podTemplate": {"spec": spec}}
    sink = parse_sink(document(executor=executor))
    return objects.config_map(sink, OWNER, SETTINGS, attempt=3, memory=2 * GI)["data"]


def executor(spec: Json) -> Json:
    return dict(yaml.safe_load(executor_files(spec)["executor.yaml"])["spec"])


def own(**fields: Any) -> Json:
    """A template of the container `s3sink`."""
    return {"containers": [{"name": "s3sink", **fields}]}


@pytest.mark.parametrize("volume", SPILL_VOLUMES, ids=str)
def test_the_volume_for_spilled_data_is_that_of_the_template(volume: Json) -> None:
    for made, name in ((driver, "tmp"), (operation, "tmp"), (executor, "spark-local-dir-tmp")):
        spec = made({"volumes": [{"name": name, **volume}]})
        assert [each for each in spec["volumes"] if each["name"] == name] == [{"name": name, **volume}]
        assert {"name": name, "mountPath": "/tmp"} in spec["containers"][0]["volumeMounts"]


def test_the_grace_period_is_that_of_the_template() -> None:
    assert driver({})["terminationGracePeriodSeconds"] == 60
    assert driver({"terminationGracePeriodSeconds": 300})["terminationGracePeriodSeconds"] == 300
    assert executor({"terminationGracePeriodSeconds": 5})["terminationGracePeriodSeconds"] == 5


def test_uids_are_those_of_the_template_and_the_rest_of_the_restricted_profile_is_kept() -> None:
    for made in (driver, operation, executor):
        context = made({"securityContext": {"runAsUser": 2000, "fsGroup": 3000}})["securityContext"]
        assert context == {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
            "runAsUser": 2000,
            "runAsGroup": 10001,
            "fsGroup": 3000,
        }


def test_the_security_context_of_the_container_is_merged_with_that_of_the_template() -> None:
    context = driver(own(securityContext={"runAsUser": 2000}))["containers"][0]["securityContext"]
    assert context["runAsUser"] == 2000
    assert context["readOnlyRootFilesystem"] is True


def test_the_image_pull_policy_is_that_of_the_template() -> None:
    assert driver(own(imagePullPolicy="Always"))["containers"][0]["imagePullPolicy"] == "Always"
    assert driver({})["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert "image.pullPolicy=Always" in executor_files(own(imagePullPolicy="Always"))["spark.properties"]
    assert "image.pullPolicy=IfNotPresent" in executor_files({})["spark.properties"]


RESOURCES = {
    "requests": {"cpu": "200m", "memory": "1Mi", "ephemeral-storage": "2Gi"},
    "limits": {"cpu": "1500m", "memory": "1Mi", "ephemeral-storage": "4Gi", "example.com/gpu": "1"},
}


def test_resources_of_the_template_apply_except_for_memory() -> None:
    assert driver(own(resources=RESOURCES))["containers"][0]["resources"] == {
        "requests": {"cpu": "200m", "memory": "2Gi", "ephemeral-storage": "2Gi"},
        "limits": {"cpu": "1500m", "memory": "2Gi", "ephemeral-storage": "4Gi", "example.com/gpu": "1"},
    }


def test_resources_of_the_template_of_executors_leave_cpu_request_and_memory_to_spark() -> None:
    (container,) = executor(own(resources=RESOURCES))["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "200m", "ephemeral-storage": "2Gi"},
        "limits": {"cpu": "1500m", "ephemeral-storage": "4Gi", "example.com/gpu": "1"},
    }
    assert "resources" not in executor({})["containers"][0]


def test_a_cpu_limit_without_a_request_is_the_request_too() -> None:
    resources = {"limits": {"cpu": "500m"}}
    assert driver(own(resources=resources))["containers"][0]["resources"]["requests"]["cpu"] == "500m"
    assert "request.cores=500m" in executor_files(own(resources=resources))["spark.properties"]
