"""The driver pod and the operation pod."""

from __future__ import annotations

from dataclasses import replace

import pytest

from s3sink_operator import names, objects
from s3sink_operator.objects.pods import executor_secret_names, secret_names
from s3sink_operator.types import Json
from sink_job.api.units.quantities import GI
from tests.operator.fake_cluster import SETTINGS
from tests.operator.objects.manifests import OWNER, SECRETS, SHAPE, config, container, driver, sink
from tests.unit.api.manifests import accepted


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


def test_only_a_driver_that_creates_executors_gets_a_token() -> None:
    for mode, expected in (("Local", False), ("Cluster", True)):
        assert driver(executor={"mode": mode})["spec"]["automountServiceAccountToken"] is expected
        operation = objects.operation_pod(sink(executor={"mode": mode}), OWNER, SETTINGS, SHAPE, "Publish")
        assert operation["spec"]["automountServiceAccountToken"] is False


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


@pytest.mark.parametrize("template", [None, {}, {"spec": {"containers": "none"}}, asking(None)])
def test_a_driver_requests_one_cpu_by_default(template: Json | None) -> None:
    given: Json = {} if template is None else {"podTemplate": template}
    assert container(driver(driver=given))["resources"]["requests"]["cpu"] == "1"


def test_keys_of_customers_are_mounted_in_drivers_and_executors() -> None:
    keys = {"customerKey": {"secret": "s3-key", "key": "a"}, "previousKeys": [{"secret": "s3-old-key", "key": "a"}]}
    found = accepted({"spec.s3.encryption": {"type": "Customer", **keys}})
    for secrets in (executor_secret_names(found), secret_names(found)):
        assert {"s3-key", "s3-old-key"} <= set(secrets)


def test_the_login_of_a_proxy_is_mounted_in_drivers_and_executors() -> None:
    section = {"url": "http://proxy:3128", "credentials": {"secret": "proxy-login"}}
    found = accepted({"spec.s3.proxy": section})
    assert "proxy-login" in executor_secret_names(found)
    assert "proxy-login" in secret_names(found)


def test_the_keys_of_the_ledgers_bucket_are_mounted_in_drivers_and_executors() -> None:
    found = accepted({"spec.s3.ledger": {"bucket": "ledgers", "credentials": {"secret": "ledger-keys"}}})
    assert "ledger-keys" in executor_secret_names(found)
    assert "ledger-keys" in secret_names(found)


def test_the_login_of_a_catalog_is_mounted_in_the_driver_alone() -> None:
    secrets = {"credentials": {"secret": "catalog-login"}, "caSecret": {"secret": "catalog-ca", "key": "ca.crt"}}
    catalog = {"type": "Rest", "uri": "https://catalog.example.com", **secrets}
    table = {"name": "lake.{topic}", "catalog": catalog}
    found = accepted({"spec.format": {"converter": "ConnectJson", "output": "Parquet"}, "spec.tables": [table]})
    assert {"catalog-login", "catalog-ca"} <= set(secret_names(found))
    assert not {"catalog-login", "catalog-ca"} & set(executor_secret_names(found))
