"""Who mounts the schema of values, and the Secrets of the schema registry."""

from __future__ import annotations

from s3sink_operator import objects
from s3sink_operator.types import Json
from tests.operator.fake_cluster import SETTINGS
from tests.operator.objects.manifests import AVRO, OWNER, SECRETS, SHAPE, container, driver, sink


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
