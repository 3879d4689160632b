"""The objects that a sink is turned into."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
import yaml

from s3sink_operator import names, objects
from s3sink_operator.objects import PodShape
from s3sink_operator.types import Json
from sink_job.api.allocation import Allocation
from sink_job.api.parser import load_sink, parse_sink
from sink_job.api.quantities import GI
from sink_job.api.spec import Sink
from tests.operator.fake_cluster import SETTINGS, SPEC, document

OWNER = {"apiVersion": "s3sink.io/v1alpha1", "kind": "S3Sink", "name": "flights", "uid": "u", "controller": True}
SHAPE = PodShape(attempt=3, memory=2 * GI, spec_hash="abc", source_hash="def", generation=2)
SECRETS = {
    "kafka": SPEC["kafka"] | {"propertySecrets": [{"name": "sasl.jaas.config", "secret": "login", "key": "jaas"}]},
    "s3": {
        "bucket": "archive",
        "endpoint": "https://minio:9000",
        "credentials": {"secret": "keys"},
        "caSecret": {"secret": "ca", "key": "ca.crt"},
    },
}
AVRO = {
    "converter": "Avro",
    "registry": {
        "url": ["https://registry:8081"],
        "credentials": {"secret": "registry-login"},
        "caSecret": {"secret": "registry-ca", "key": "ca.crt"},
        "clientSecret": {"secret": "registry-client"},
    },
}


def sink(**spec: Any) -> Sink:
    return parse_sink(document(**spec))


def driver(**spec: Any) -> Json:
    return objects.driver_pod(sink(**spec), OWNER, SETTINGS, SHAPE)


def container(pod: Json) -> Json:
    return dict(next(each for each in pod["spec"]["containers"] if each["name"] == "s3sink"))


def config(**spec: Any) -> dict[str, str]:
    return dict(objects.config_map(sink(**spec), OWNER, SETTINGS, attempt=3, memory=2 * GI)["data"])


# -- what the job reads ------------------------------------------------------------------------------------------------


def test_the_job_reads_the_sink_as_it_was_written_without_what_is_the_operators_business() -> None:
    asked = document(
        state="Stopped",
        restartNonce="x",
        deletionPolicy="Publish",
        offsets={"reset": {"nonce": "n", "to": "Earliest"}},
        driver={"podTemplate": {"spec": {"hostname": "secret"}}},
        **SECRETS,
    )
    text = objects.config_map(parse_sink(asked), OWNER, SETTINGS, attempt=1, memory=GI)["data"]["sink.yaml"]
    read = load_sink(text)
    assert read.reason_not_to_run() is None
    assert (read.name, read.namespace, read.spec.s3) == ("flights", "data", parse_sink(asked).spec.s3)
    assert read.spec.kafka == parse_sink(asked).spec.kafka
    assert read.object_settings() == parse_sink(asked).object_settings()
    assert "secret" not in text.replace("secret: ", "").replace("caSecret", "").replace("propertySecrets", "")


def test_two_ways_to_write_the_same_settings_are_one() -> None:
    one, other = (
        sink(rotation={"flushSize": 9, "maxOpenTime": written}, rounds=rounds)
        for written, rounds in (("60m", {"maxDelay": "10s"}), ("1h", {}))
    )
    assert objects.spec_hash(one, SETTINGS) == objects.spec_hash(other, SETTINGS)
    assert objects.job_manifest(one) == objects.job_manifest(other)


def test_the_operators_default_image_is_part_of_what_a_driver_is_started_with() -> None:
    newer = replace(SETTINGS, image="newer:2")
    assert objects.spec_hash(sink(), SETTINGS) != objects.spec_hash(sink(), newer)
    assert objects.spec_hash(sink(image="own:1"), SETTINGS) == objects.spec_hash(sink(image="own:1"), newer)


# -- the driver pod ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["Local", "Cluster"])
def test_the_pods_fit_the_restricted_security_profile(mode: str) -> None:
    desired = sink(executor={"mode": mode})
    template = objects.executor_template(desired, SETTINGS, attempt=1)
    assert "resizePolicy" not in template["spec"]["containers"][0], "Spark 4.2 would repeat its items"
    operation = objects.operation_pod(desired, OWNER, SETTINGS, SHAPE, "Publish")
    for pod in (objects.driver_pod(desired, OWNER, SETTINGS, SHAPE), operation, template):
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        assert pod["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod["spec"])
        for each in pod["spec"]["containers"]:
            security = each["securityContext"]
            assert security["allowPrivilegeEscalation"] is False
            assert security["readOnlyRootFilesystem"] is True
            assert security["capabilities"] == {"drop": ["ALL"]}
        allowed = {"configMap", "emptyDir", "secret", "projected"}
        assert all(allowed & set(volume) for volume in pod["spec"]["volumes"])


def test_the_driver_pod_runs_the_sink_and_has_no_restart_policy() -> None:
    pod = driver()
    assert pod["metadata"]["name"] == "flights-s3sink-driver"
    assert pod["metadata"]["ownerReferences"] == [OWNER]
    assert pod["metadata"]["labels"][names.ATTEMPT_LABEL] == "3"
    annotations = pod["metadata"]["annotations"]
    assert annotations.pop(names.REPORT_TOKEN_ANNOTATION)
    assert annotations == {
        names.SPEC_HASH_ANNOTATION: "abc",
        names.SOURCE_HASH_ANNOTATION: "def",
        names.GENERATION_ANNOTATION: "2",
    }
    assert pod["spec"]["restartPolicy"] == "Never"
    assert pod["spec"]["automountServiceAccountToken"] is False
    main = container(pod)
    assert "command" not in main, "the image's entry point reaps orphans"
    assert main["args"] == (
        [
            "s3sink",
            "run",
            "/etc/s3sink/sink.yaml",
            "--log",
            "json",
            "--memory",
            "2147483648",
            "--cores",
            "1",
            "--http",
            "0.0.0.0:8042",
        ]
    )
    assert main["resources"]["limits"]["memory"] == main["resources"]["requests"]["memory"] == "2Gi"
    assert {key: set(found) for key, found in main["resources"].items()} == {
        "requests": {"cpu", "memory"},
        "limits": {"memory"},
    }, "a LimitRange for ephemeral storage accepts it"
    assert {"name": "tmp", "emptyDir": {"sizeLimit": "20Gi"}} in pod["spec"]["volumes"]
    assert main["livenessProbe"]["httpGet"] == main["startupProbe"]["httpGet"] == {"path": "/healthz", "port": "report"}
    ready = main["readinessProbe"]
    assert ready["httpGet"] == {"path": "/readyz?wait=55", "port": "report"}
    assert ready["timeoutSeconds"] > 55, "the wait ends before the probe fails"
    assert main["resizePolicy"] == [{"resourceName": "memory", "restartPolicy": "NotRequired"}]
    mounts = {each["mountPath"]: each for each in main["volumeMounts"]}
    assert mounts.keys() == {"/etc/s3sink/sink.yaml", "/tmp", "/etc/s3sink/allocation"}
    assert "subPath" not in mounts["/etc/s3sink/allocation"], "the kubelet would not update it"


def test_every_secret_is_mounted_in_a_folder_of_its_own() -> None:
    main = container(driver(**SECRETS))
    folders = [each["mountPath"] for each in main["volumeMounts"] if "secrets" in each["mountPath"]]
    assert folders == [f"/etc/s3sink/secrets/{name}" for name in ("ca", "keys", "login")]
    environment = {each["name"]: each.get("value") for each in main["env"]}
    assert environment["S3SINK_SECRETS_DIR"] == "/etc/s3sink/secrets"
    assert environment["S3SINK_CLUSTER"] == "c1"
    assert "S3SINK_SECRETS_DIR" not in str(driver()["spec"]), "a folder that is not there would be rejected"


def mounted(pod: Json) -> tuple[set[str], set[str]]:
    """The Secrets among a pod's volumes, and the names of the folders that they are mounted in."""
    secrets = {each["secret"]["secretName"] for each in pod["spec"]["volumes"] if "secret" in each}
    paths = [each["mountPath"] for each in container(pod)["volumeMounts"]]
    return secrets, {path.rpartition("/")[2] for path in paths if path.startswith("/etc/s3sink/secrets/")}


def test_driver_and_operation_mount_the_config_map_with_the_schema_of_values() -> None:
    asked: Json = {"format": {"converter": "Avro", "schema": {"configMap": "flights-schema", "key": "a.avsc"}}}
    folder = "/etc/s3sink/config-maps"
    for pod in (driver(**asked), objects.operation_pod(sink(**asked), OWNER, SETTINGS, SHAPE, "Publish")):
        volumes = [each for each in pod["spec"]["volumes"] if each["name"] == "schema"]
        assert volumes == [{"name": "schema", "configMap": {"name": "flights-schema"}}]
        main = container(pod)
        mounts = [each["mountPath"] for each in main["volumeMounts"] if each["name"] == "schema"]
        assert mounts == [f"{folder}/flights-schema"]
        assert {"name": "S3SINK_CONFIG_MAPS_DIR", "value": folder} in main["env"]
    executor = objects.executor_template(sink(**asked, executor={"mode": "Cluster"}), SETTINGS, attempt=1)
    assert "flights-schema" not in str(executor)


def test_only_the_driver_mounts_the_secrets_of_the_schema_registry() -> None:
    asked = {**SECRETS, "format": AVRO, "executor": {"mode": "Cluster"}}
    every = {"ca", "keys", "login", "registry-ca", "registry-client", "registry-login"}
    assert mounted(driver(**asked)) == (every, every)
    executor = objects.executor_template(sink(**asked), SETTINGS, attempt=1)
    assert mounted(executor) == ({"ca", "keys", "login"},) * 2


def test_the_properties_of_executors_do_not_name_the_secrets_of_the_schema_registry() -> None:
    data = config(**{**SECRETS, "format": AVRO, "executor": {"mode": "Cluster"}})
    assert "registry-" in data["sink.yaml"]
    assert not [name for name, text in data.items() if name != "sink.yaml" and "registry-" in text]


def test_each_driver_gets_a_token_for_its_report_that_its_pod_alone_has() -> None:
    def token(uid: str = "u", attempt: int = 3, salt: str = "s") -> str:
        shape, settings = replace(SHAPE, attempt=attempt), replace(SETTINGS, report_salt=salt)
        pod = objects.driver_pod(sink(), OWNER | {"uid": uid}, settings, shape)
        (variable,) = [each for each in container(pod)["env"] if each["name"] == "S3SINK_REPORT_TOKEN"]
        field = variable["valueFrom"]["fieldRef"]["fieldPath"]
        assert field == f"metadata.annotations['{names.REPORT_TOKEN_ANNOTATION}']"
        return str(pod["metadata"]["annotations"][names.REPORT_TOKEN_ANNOTATION])

    assert token() == token()
    assert len({token(), token(uid="v"), token(attempt=4), token(salt="t")}) == 4
    assert len(token()) == 32


def test_the_salt_of_the_tokens_is_never_printed() -> None:
    assert "geheim" not in repr(replace(SETTINGS, report_salt="geheim"))


def test_image_and_pull_secrets_of_the_spec_come_before_the_operators() -> None:
    pod = driver(image="own:1", imagePullSecrets=[{"name": "login"}])
    assert container(pod)["image"] == "own:1"
    assert pod["spec"]["imagePullSecrets"] == [{"name": "login"}]
    assert container(driver())["image"] == SETTINGS.image


TEMPLATE: Json = {
    "metadata": {"labels": {"team": "a", names.SINK_LABEL: "stolen"}, "annotations": {"note": "b"}, "name": "mine"},
    "spec": {
        "nodeSelector": {"disk": "ssd"},
        "restartPolicy": "Always",
        "containers": [
            {
                "name": "s3sink",
                "image": "stolen",
                "env": [{"name": "HTTP_PROXY", "value": "p"}, {"name": "S3SINK_CLUSTER", "value": "stolen"}],
                "volumeMounts": [{"name": "extra", "mountPath": "/extra"}],
            },
            {"name": "proxy", "image": "envoy"},
        ],
        "volumes": [{"name": "extra", "emptyDir": {}}],
    },
}


def test_a_pod_template_adds_and_never_takes_what_the_sink_depends_on() -> None:
    pod = driver(driver={"podTemplate": TEMPLATE})
    assert pod["metadata"]["labels"] | {"team": "a", names.SINK_LABEL: "flights"} == pod["metadata"]["labels"]
    assert pod["metadata"]["annotations"]["note"] == "b"
    assert (pod["metadata"]["name"], pod["spec"]["restartPolicy"]) == ("flights-s3sink-driver", "Never")
    assert pod["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert [each["name"] for each in pod["spec"]["containers"]] == ["s3sink", "proxy"]
    main = container(pod)
    assert main["image"] == SETTINGS.image
    environment = {each["name"]: each.get("value") for each in main["env"]}
    assert (environment["HTTP_PROXY"], environment["S3SINK_CLUSTER"]) == ("p", "c1")
    assert "/extra" in [each["mountPath"] for each in main["volumeMounts"]]
    assert "extra" in [each["name"] for each in pod["spec"]["volumes"]]


def test_a_volume_or_a_variable_of_a_pod_template_with_a_name_of_ours_gives_way_as_a_whole() -> None:
    """Two sources merged into one would be rejected, each time."""
    theirs = {
        "volumes": [{"name": "config", "persistentVolumeClaim": {"claimName": "big"}}],
        "containers": [
            {"name": "s3sink", "env": [{"name": "S3SINK_CLUSTER", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]}
        ],
    }
    pod = driver(driver={"podTemplate": {"spec": theirs}})
    assert next(each for each in pod["spec"]["volumes"] if each["name"] == "config").keys() == {"name", "configMap"}
    variables = {each["name"]: each for each in container(pod)["env"]}
    assert variables["S3SINK_CLUSTER"].keys() == {"name", "value"}


@pytest.mark.parametrize(
    "template",
    [
        {"metadata": "x", "spec": []},
        {"metadata": {"labels": 3}, "spec": {"containers": "x", "volumes": [1, {"name": ["y"]}]}},
        {"spec": {"containers": [{"name": "s3sink", "env": "none", "volumeMounts": {}}]}},
    ],
)
def test_a_pod_template_that_makes_no_sense_leaves_a_pod_that_the_api_server_can_judge(template: Json) -> None:
    pod = driver(driver={"podTemplate": template})
    assert container(pod)["image"] == SETTINGS.image
    assert pod["metadata"]["labels"][names.SINK_LABEL] == "flights"


# -- executors of their own --------------------------------------------------------------------------------------------


def test_with_executors_the_driver_gets_sparks_properties_and_a_token() -> None:
    pod = objects.driver_pod(
        sink(executor={"mode": "Cluster"}), OWNER, SETTINGS, replace(SHAPE, executor_memory=3 * GI)
    )
    assert container(pod)["args"][-2:] == ["--spark-properties", "/etc/s3sink/spark.properties"]
    assert pod["spec"]["automountServiceAccountToken"] is True
    assert objects.sized_memory(pod) == 3 * GI
    mounts = {each["mountPath"] for each in container(pod)["volumeMounts"]}
    assert {"/etc/s3sink/sink.yaml", "/etc/s3sink/spark.properties", "/etc/s3sink/executor.yaml"} <= mounts
    own = {"sink.yaml", "allocation.json"}
    assert {*own, "spark.properties", "executor.yaml"} == set(config(executor={"mode": "Cluster"}))
    assert set(config()) == own


def test_number_and_memory_of_executors_are_no_settings_of_the_driver() -> None:
    few = sink(executor={"mode": "Cluster"})
    many = sink(executor={"mode": "Cluster", "instances": 4, "memory": {"max": "2Gi"}})
    assert objects.spec_hash(few, SETTINGS) == objects.spec_hash(many, SETTINGS)
    made = objects.config_map(many, OWNER, SETTINGS, attempt=1, memory=3 * GI)["data"]["allocation.json"]
    assert Allocation.parse(made) == Allocation(executors=4, memory=3 * GI, bounds="Auto, 512Mi to 2Gi")


def test_a_sink_in_local_mode_is_allocated_one_container() -> None:
    assert Allocation.parse(config(executor={"mode": "Local", "instances": 4})["allocation.json"]) == Allocation(
        executors=1, memory=2 * GI, bounds="Auto, 512Mi to 8Gi"
    )


def test_only_a_driver_that_creates_executors_gets_a_token() -> None:
    for mode, expected in (("Local", False), ("Cluster", True)):
        assert driver(executor={"mode": mode})["spec"]["automountServiceAccountToken"] is expected
        operation = objects.operation_pod(sink(executor={"mode": mode}), OWNER, SETTINGS, SHAPE, "Publish")
        assert operation["spec"]["automountServiceAccountToken"] is False


def test_sparks_properties_are_those_of_client_mode_in_a_pod() -> None:
    desired = sink(executor={"mode": "Cluster", "instances": 4, "cores": 2}, sparkConf={"spark.foo": "1"})
    made = objects.spark_properties(desired, SETTINGS, attempt=12, memory=3 * GI)
    assert made["spark.master"] == "k8s://https://kubernetes.default.svc"
    assert made["spark.submit.deployMode"] == "client"
    assert made["spark.kubernetes.driver.pod.name"] == "flights-s3sink-driver"
    assert made["spark.executor.instances"] == "4"
    assert made["spark.app.id"] == made["spark.kubernetes.executor.podNamePrefix"] == "flights-12"
    assert (made["spark.executor.memory"], made["spark.executor.memoryOverhead"]) == ("640m", "2432m")
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


# -- the rest ----------------------------------------------------------------------------------------------------------


def test_the_account_is_bound_to_the_charts_role_for_drivers() -> None:
    binding = objects.role_binding(sink(), OWNER, SETTINGS)
    assert binding["roleRef"]["name"] == SETTINGS.driver_cluster_role
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "flights-s3sink", "namespace": "data"}]
    assert objects.service_account(sink(), OWNER)["metadata"]["name"] == "flights-s3sink"


def test_the_account_carries_the_annotations_that_the_cloud_reads() -> None:
    role = {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/lake"}
    made = objects.service_account(sink(serviceAccount={"annotations": role}), OWNER)
    assert role.items() <= made["metadata"]["annotations"].items()
    assert "serviceAccount" not in config(serviceAccount={"annotations": role})["sink.yaml"]


def test_an_annotation_that_the_spec_has_no_more_is_a_difference_and_one_of_others_is_none() -> None:
    plain = objects.service_account(sink(), OWNER)
    desired = objects.service_account(sink(serviceAccount={"annotations": {"role": "a"}}), OWNER)
    both = objects.service_account(sink(serviceAccount={"annotations": {"role": "a", "more": "b"}}), OWNER)
    theirs = copy.deepcopy(desired)
    theirs["metadata"]["annotations"]["theirs"] = "stays"
    assert not objects.differs(theirs, desired)
    assert objects.differs(plain, desired)
    assert objects.differs(both, desired)
    assert objects.differs(desired, plain)


def test_an_account_of_the_users_own_is_what_all_pods_run_under() -> None:
    own: Json = {"serviceAccount": {"name": "lake-writer"}, "executor": {"mode": "Cluster"}}
    assert driver(**own)["spec"]["serviceAccountName"] == "lake-writer"
    assert objects.role_binding(sink(**own), OWNER, SETTINGS)["subjects"][0]["name"] == "lake-writer"
    properties = objects.spark_properties(sink(**own), SETTINGS, attempt=1, memory=GI)
    assert properties["spark.kubernetes.authenticate.executor.serviceAccountName"] == "lake-writer"


def test_a_cluster_that_assigns_uids_is_left_to_it() -> None:
    """OpenShift rejects a uid outside of its namespace's range."""
    settings = replace(SETTINGS, run_as_user=None)
    made = sink(executor={"mode": "Cluster"})
    pods = [
        objects.driver_pod(made, OWNER, settings, SHAPE),
        objects.operation_pod(made, OWNER, settings, SHAPE, "Publish"),
        objects.executor_template(made, settings, attempt=1),
    ]
    for pod in pods:
        assert pod["spec"]["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def test_what_others_add_is_no_difference_and_what_they_change_is() -> None:
    desired = objects.role_binding(sink(), OWNER, SETTINGS)
    seen = copy.deepcopy(desired)
    seen["metadata"] |= {"uid": "1", "resourceVersion": "7"}
    seen["metadata"]["labels"]["team"] = "a"
    seen["metadata"]["ownerReferences"].insert(0, {"uid": "other"})
    assert not objects.differs(seen, desired)
    seen["subjects"].append({"kind": "User", "name": "eve"})
    assert objects.differs(seen, desired)
    assert objects.differs(None, desired)


def test_properties_are_written_so_that_java_reads_them_back() -> None:
    from s3sink_operator.objects.spark_properties import properties_file

    text = properties_file({"a": " x", "b": "c:\\d", "e": "f\ng"})
    assert text == "a=\\ x\nb=c:\\\\d\ne=f\\ng\n"


# -- CPUs --------------------------------------------------------------------------------------------------------------


def asking(cpu: object) -> Json:
    """A pod template whose container asks for so much CPU."""
    return {"spec": {"containers": [{"name": "s3sink", "resources": {"requests": {"cpu": cpu, "memory": "1Mi"}}}]}}


@pytest.mark.parametrize("cpu", ["100m", 2])
def test_a_driver_requests_the_cpu_of_its_template_and_its_sized_memory(cpu: object) -> None:
    found = container(driver(driver={"podTemplate": asking(cpu)}))["resources"]
    assert (found["requests"]["cpu"], found["requests"]["memory"]) == (str(cpu), "2Gi")


def test_an_operation_pod_requests_no_more_cpu_than_the_driver() -> None:
    pod = objects.operation_pod(sink(driver={"podTemplate": asking("100m")}), OWNER, SETTINGS, SHAPE, "Publish")
    assert container(pod)["resources"]["requests"]["cpu"] == "100m"


def test_executors_request_the_cpu_of_their_template() -> None:
    executor = {"mode": "Cluster", "podTemplate": asking("200m")}
    assert "spark.kubernetes.executor.request.cores=200m" in config(executor=executor)["spark.properties"]


@pytest.mark.parametrize("template", [None, {}, {"spec": {"containers": "none"}}, asking(None)])
def test_a_driver_requests_one_cpu_by_default(template: Json | None) -> None:
    given: Json = {} if template is None else {"podTemplate": template}
    assert container(driver(driver=given))["resources"]["requests"]["cpu"] == "1"
