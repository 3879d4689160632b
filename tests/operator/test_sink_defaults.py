"""Defaults of the operator for all sinks: how they are merged, and what is reported of them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from s3sink_operator.kubectl import explain
from s3sink_operator.sink_defaults import NO_DEFAULTS, SinkDefaults, read_config
from s3sink_operator.types import Json
from tests.operator.fake_cluster import SETTINGS, SPEC, Cluster, actions, document, running

CLUSTER = {"executor": {"mode": "Cluster"}}


def defaults(**fields: Any) -> SinkDefaults:
    return SinkDefaults.model_validate(fields, by_alias=True, by_name=False)


def with_defaults(found: SinkDefaults, **spec: Any) -> Cluster:
    """A running sink under an operator with these defaults."""
    cluster = Cluster(sink=document(**spec), settings=replace(SETTINGS, sink_defaults=found))
    cluster.live()
    assert cluster.ready == ("True", "Running"), cluster.status
    cluster.log.clear()
    return cluster


def applied(cluster: Cluster) -> dict[str, str]:
    return {each["field"]: each["value"] for each in cluster.status.get("appliedDefaults", ())}


def driver_spec(cluster: Cluster) -> Json:
    assert cluster.driver
    return dict(cluster.driver["spec"])


# -- pods --------------------------------------------------------------------------------------------------------------


def test_defaults_of_pods_reach_the_driver() -> None:
    found = defaults(
        imagePullSecrets=[{"name": "registry"}],
        labels={"team": "lake"},
        annotations={"note": "a"},
        nodeSelector={"disk": "ssd"},
        tolerations=[{"key": "lake", "operator": "Exists"}],
        resources={"requests": {"cpu": "200m"}},
        spillVolume={"emptyDir": {"sizeLimit": "5Gi"}},
        podTemplate={"spec": {"priorityClassName": "high"}},
    )
    cluster = with_defaults(found)
    assert cluster.driver
    spec, meta = cluster.driver["spec"], cluster.driver["metadata"]
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    assert (meta["labels"]["team"], meta["annotations"]["note"]) == ("lake", "a")
    assert spec["nodeSelector"] == {"disk": "ssd"}
    assert spec["tolerations"] == [{"key": "lake", "operator": "Exists"}]
    assert spec["containers"][0]["resources"]["requests"]["cpu"] == "200m"
    assert {"name": "tmp", "emptyDir": {"sizeLimit": "5Gi"}} in spec["volumes"]
    assert spec["priorityClassName"] == "high"


def test_defaults_of_pods_reach_executors() -> None:
    found = defaults(nodeSelector={"disk": "ssd"}, spillVolume={"emptyDir": {"sizeLimit": "5Gi"}})
    cluster = with_defaults(found, **CLUSTER)
    template = cluster.things["ConfigMap", "flights-s3sink"]["data"]["executor.yaml"]
    assert "disk: ssd" in template
    assert "sizeLimit: 5Gi" in template


def test_what_a_sink_sets_wins_and_maps_are_merged_by_key() -> None:
    found = defaults(
        imagePullSecrets=[{"name": "registry"}],
        nodeSelector={"disk": "ssd", "zone": "a"},
        tolerations=[{"key": "lake", "operator": "Exists"}],
        resources={"requests": {"cpu": "200m"}, "limits": {"cpu": "1"}},
        spillVolume={"emptyDir": {"sizeLimit": "5Gi"}},
    )
    own = {
        "nodeSelector": {"zone": "b"},
        "tolerations": [],
        "containers": [{"name": "s3sink", "resources": {"requests": {"cpu": "2"}}}],
        "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory"}}],
    }
    cluster = with_defaults(found, driver={"podTemplate": {"spec": own}}, imagePullSecrets=[{"name": "mine"}])
    spec = driver_spec(cluster)
    assert spec["imagePullSecrets"] == [{"name": "mine"}]
    assert spec["nodeSelector"] == {"disk": "ssd", "zone": "b"}
    assert spec["tolerations"] == []
    assert spec["containers"][0]["resources"]["requests"]["cpu"] == "2"
    assert "cpu" not in spec["containers"][0]["resources"]["limits"], "a default limit may be below the own request"
    assert {"name": "tmp", "emptyDir": {"medium": "Memory"}} in spec["volumes"]
    assert applied(cluster) == {"spec.driver.podTemplate.spec.nodeSelector.disk": "ssd"}


def test_the_operator_still_wins_over_its_own_defaults_where_a_sink_depends_on_it() -> None:
    found = defaults(labels={"s3sink.io/sink": "other"}, podTemplate={"spec": {"restartPolicy": "Always"}})
    cluster = with_defaults(found)
    assert cluster.driver
    assert cluster.driver["metadata"]["labels"]["s3sink.io/sink"] == "flights"
    assert cluster.driver["spec"]["restartPolicy"] == "Never"


# -- S3 ----------------------------------------------------------------------------------------------------------------

MINIO = {
    "endpoint": "https://minio:9000",
    "pathStyle": True,
    "region": "eu-central-1",
    "credentials": {"secret": "login"},
    "caSecret": {"secret": "ca", "key": "ca.crt"},
}
WRITTEN = {"bucket": "archive", "pathStyle": False, "insecure": False}
"""As the API server stores it, with the defaults of the CustomResourceDefinition."""


def effective_s3(s3: Json, **spec: Any) -> Json:
    return dict(defaults(s3=MINIO).apply(SPEC | spec | {"s3": s3})["s3"])


def test_a_sink_without_an_endpoint_uses_the_default_connection() -> None:
    assert effective_s3(WRITTEN) == WRITTEN | MINIO


def test_a_sink_with_an_endpoint_uses_no_default_of_the_connection() -> None:
    own = WRITTEN | {"endpoint": "https://other:9000"}
    assert effective_s3(own) == own


def test_region_and_credentials_of_a_sink_win() -> None:
    own = WRITTEN | {"region": "us-east-1", "credentials": {"secret": "mine"}}
    assert effective_s3(own) == WRITTEN | MINIO | {"region": "us-east-1", "credentials": {"secret": "mine"}}


@pytest.mark.parametrize("account", [{"name": "lake-writer"}, {"annotations": {"role": "a"}}])
def test_a_sink_with_an_identity_of_its_own_uses_no_default_credentials(account: Json) -> None:
    assert "credentials" not in effective_s3(WRITTEN, serviceAccount=account)
    assert effective_s3(WRITTEN, serviceAccount={"annotations": {}})["credentials"] == {"secret": "login"}


def test_the_job_and_the_driver_pod_get_the_default_connection() -> None:
    cluster = with_defaults(defaults(s3=MINIO))
    config = cluster.things["ConfigMap", "flights-s3sink"]["data"]["sink.yaml"]
    assert "endpoint: https://minio:9000" in config
    secrets = [each["secret"]["secretName"] for each in driver_spec(cluster)["volumes"] if "secret" in each]
    assert secrets == ["ca", "login"]


def test_a_stopped_sink_stays_published_while_the_default_endpoint_is_the_same() -> None:
    cluster = with_defaults(defaults(s3=MINIO))
    cluster.edit(state="Stopped")
    cluster.live()
    assert cluster.status["publishedEndpoint"] == "https://minio:9000"
    cluster.log.clear()
    cluster.wait(60_000)
    cluster.live()
    assert not actions(cluster)


# -- what is reported --------------------------------------------------------------------------------------------------


def test_the_status_lists_what_applies_and_no_value_of_an_environment_variable() -> None:
    env = [{"name": "TOKEN", "value": "geheim"}]
    found = defaults(s3=MINIO, podTemplate={"spec": {"containers": [{"name": "s3sink", "env": env}]}})
    cluster = with_defaults(found)
    assert applied(cluster) == {
        "spec.s3.endpoint": "https://minio:9000",
        "spec.s3.pathStyle": "true",
        "spec.s3.caSecret": '{"secret":"ca","key":"ca.crt"}',
        "spec.s3.region": "eu-central-1",
        "spec.s3.credentials": '{"secret":"login"}',
        "spec.driver.podTemplate.spec.containers[s3sink].env[TOKEN]": "(not shown)",
    }
    assert "geheim" not in str(cluster.status)


def test_without_defaults_the_status_lists_none_and_nothing_changes() -> None:
    assert NO_DEFAULTS.apply(SPEC) is SPEC
    assert "appliedDefaults" not in running().status


def test_a_changed_default_restarts_the_driver() -> None:
    cluster = with_defaults(defaults(nodeSelector={"disk": "ssd"}))
    cluster.settings = replace(cluster.settings, sink_defaults=defaults(nodeSelector={"disk": "nvme"}))
    cluster.live()
    assert driver_spec(cluster)["nodeSelector"] == {"disk": "nvme"}
    assert applied(cluster) == {"spec.driver.podTemplate.spec.nodeSelector.disk": "nvme"}


def test_a_default_that_a_sink_overrides_restarts_nothing() -> None:
    own = {"podTemplate": {"spec": {"nodeSelector": {"disk": "ssd"}}}}
    cluster = with_defaults(defaults(nodeSelector={"disk": "ssd"}), driver=own)
    cluster.settings = replace(cluster.settings, sink_defaults=defaults(nodeSelector={"disk": "nvme"}))
    cluster.live()
    assert not actions(cluster)


def test_an_invalid_spec_names_the_defaults_that_apply() -> None:
    cluster = Cluster(settings=replace(SETTINGS, sink_defaults=defaults(s3={"endpoint": "http://minio:9000"})))
    cluster.settle()
    assert cluster.ready == ("False", "InvalidSpec")
    message = cluster.condition("Ready")["message"]
    assert "set spec.s3.insecure: true" in message
    assert "defaults of the operator apply to: spec.s3.endpoint" in message


def test_a_pod_template_that_makes_no_sense_is_left_to_the_parser() -> None:
    found = defaults(nodeSelector={"disk": "ssd"}, s3=MINIO)
    for wrong in ("x", 3, ["x"]):
        assert found.apply({"driver": wrong, "s3": wrong})["driver"] == wrong
        assert found.apply({"driver": {"podTemplate": wrong}})["driver"]["podTemplate"] == wrong
        found.applied({"driver": {"podTemplate": wrong}, "s3": wrong})
    assert found.apply(None) is None


def test_explain_shows_values_and_whether_the_sink_or_the_operator_sets_them() -> None:
    cluster = with_defaults(
        defaults(s3={"region": "eu-central-1"}, nodeSelector={"disk": "ssd"}),
        sparkConf={"spark.app.note": "https://user:geheim@host"},
    )
    rows = {each.field: (each.value, each.source) for each in explain.settings_of(cluster.sink)}
    assert rows["spec.s3.region"] == ("eu-central-1", "operator")
    assert rows["spec.driver.podTemplate.spec.nodeSelector.disk"] == ("ssd", "operator")
    assert rows["spec.s3.bucket"] == ("archive", "spec")
    assert rows["spec.kafka.topics"] == ('["flights"]', "spec")
    assert "spec.executor.cores" not in rows, "a default of this version"
    text = explain.explanation(cluster.sink)
    assert text.splitlines()[0].split() == ["FIELD", "VALUE", "SOURCE"]
    assert "geheim" not in text
    cluster.edit(rotation={"flushSize": 7})
    assert "may be outdated" in explain.explanation(cluster.sink)


# -- the configuration file --------------------------------------------------------------------------------------------


def test_an_empty_configuration_has_no_defaults() -> None:
    for text in ("", "sinkDefaults: {}", "sinkDefaults:\n"):
        assert read_config(text).is_empty


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sinkDefault: {}", "the only field is sinkDefaults"),
        ("sinkDefaults: {nodeselector: {}}", "sinkDefaults.nodeselector: Extra inputs are not permitted"),
        ("sinkDefaults: {s3: {bucket: a}}", "sinkDefaults.s3.bucket"),
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
