"""The ServiceAccount of a sink, and its RoleBinding."""

from __future__ import annotations

from s3sink_operator import objects
from s3sink_operator.types import Json
from sink_job.api.units.quantities import GI
from tests.operator.fake_cluster import SETTINGS
from tests.operator.objects.manifests import OWNER, config, driver, sink


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


def test_an_account_of_the_users_own_is_what_all_pods_run_under() -> None:
    own: Json = {"serviceAccount": {"name": "lake-writer"}, "executor": {"mode": "Cluster"}}
    assert driver(**own)["spec"]["serviceAccountName"] == "lake-writer"
    assert objects.role_binding(sink(**own), OWNER, SETTINGS)["subjects"][0]["name"] == "lake-writer"
    properties = objects.spark_properties(sink(**own), SETTINGS, attempt=1, memory=GI)
    assert properties["spark.kubernetes.authenticate.executor.serviceAccountName"] == "lake-writer"
