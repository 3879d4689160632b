"""The properties of Spark in Cluster mode, and the pod template of executors."""

from __future__ import annotations

import yaml

from s3sink_operator import names, objects
from sink_job.api.parser import parse_sink
from sink_job.api.units.quantities import GI
from tests.operator.fake_cluster import SETTINGS, SPEC, document
from tests.operator.objects.manifests import AVRO, SECRETS, config, container, driver, sink
from tests.operator.objects.test_pods import TEMPLATE, asking


def test_the_properties_of_executors_do_not_name_the_secrets_of_the_schema_registry() -> None:
    data = config(**{**SECRETS, "format": AVRO, "executor": {"mode": "Cluster"}})
    assert "registry-" in data["sink.yaml"]
    assert not [name for name, text in data.items() if name != "sink.yaml" and "registry-" in text]


def test_the_secrets_of_a_kafka_login_are_mounted_in_the_driver_and_not_in_executors() -> None:
    login = {"credentials": {"secret": "kafka-login"}, "caSecret": {"secret": "kafka-ca", "key": "ca.crt"}}
    kafka = SPEC["kafka"] | {"login": {"type": "Scram512", **login}}
    asked = {"kafka": kafka, "executor": {"mode": "Cluster"}}
    folders = {each["mountPath"] for each in container(driver(**asked))["volumeMounts"]}
    assert {"/etc/s3sink/secrets/kafka-login", "/etc/s3sink/secrets/kafka-ca"} <= folders
    assert not [name for name, text in config(**asked).items() if name != "sink.yaml" and "kafka-" in text]


def test_sparks_properties_are_those_of_client_mode_in_a_pod() -> None:
    desired = sink(executor={"mode": "Cluster", "instances": 4, "cores": 2}, sparkConf={"spark.foo": "1"})
    made = objects.spark_properties(desired, SETTINGS, attempt=12, memory=3 * GI)
    assert made["spark.master"] == "k8s://https://kubernetes.default.svc"
    assert made["spark.submit.deployMode"] == "client"
    assert made["spark.kubernetes.driver.pod.name"] == "flights-s3sink-driver"
    assert made["spark.executor.instances"] == "4"
    assert made["spark.app.id"] == made["spark.kubernetes.executor.podNamePrefix"] == "flights-12"
    assert (made["spark.executor.memory"], made["spark.executor.memoryOverhead"]) == ("512m", "2560m")
    assert made["spark.authenticate"] == made["spark.network.crypto.enabled"] == "true"
    assert made["spark.kubernetes.authenticate.oauthTokenFile"].endswith("/token")
    assert made["spark.foo"] == "1"
    assert all(made[key].isdigit() for key in ("spark.driver.port", "spark.driver.blockManager.port"))


def test_names_of_executors_leave_room_for_the_suffix_of_spark() -> None:
    made = document(name="f" * 40, executor={"mode": "Cluster"})
    for attempt in (1, 999_999, 123_456_789):
        properties = objects.spark_properties(parse_sink(made), SETTINGS, attempt=attempt, memory=GI)
        assert len(properties["spark.kubernetes.executor.podNamePrefix"]) <= 47


def test_the_executors_template_carries_the_users_and_no_owner() -> None:
    template = yaml.safe_load(config(executor={"mode": "Cluster", "podTemplate": TEMPLATE})["executor.yaml"])
    assert template["metadata"]["labels"][names.COMPONENT_LABEL] == "executor"
    assert template["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert "ownerReferences" not in template["metadata"]


def test_properties_are_written_so_that_java_reads_them_back() -> None:
    from s3sink_operator.objects.spark_properties import properties_file

    text = properties_file({"a": " x", "b": "c:\\d", "e": "f\ng"})
    assert text == "a=\\ x\nb=c:\\\\d\ne=f\\ng\n"


def test_executors_request_the_cpu_of_their_template() -> None:
    executor = {"mode": "Cluster", "podTemplate": asking("200m")}
    assert "spark.kubernetes.executor.request.cores=200m" in config(executor=executor)["spark.properties"]
