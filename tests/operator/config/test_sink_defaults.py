"""Defaults of the operator for all sinks: how they are merged, and what is reported of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from s3sink_operator.config.sink_defaults import DEFAULTED_FIELDS, NO_DEFAULTS, SinkDefaults
from s3sink_operator.crd import schema
from s3sink_operator.crd.schema import fields as schema_fields
from s3sink_operator.types import Json
from tests.operator.fake_cluster import SETTINGS, SPEC, Cluster, actions, document, running

CLUSTER = {"executor": {"mode": "Cluster"}}


def defaults(**fields: Any) -> SinkDefaults:
    return SinkDefaults.model_validate(fields, by_alias=True, by_name=False)


def with_defaults(found: SinkDefaults, **spec: Any) -> Cluster:
    """A running sink under an operator with these defaults."""
    cluster = Cluster(sink=document(**spec), settings=replace(SETTINGS, sink_defaults=found))
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running"), cluster.status
    cluster.log.clear()
    return cluster


def applied(cluster: Cluster) -> dict[str, str]:
    return {each["field"]: each["value"] for each in cluster.status.get("appliedDefaults", ())}


def driver_spec(cluster: Cluster) -> Json:
    assert cluster.driver
    return dict(cluster.driver["spec"])


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
    template = cluster.objects["ConfigMap", "flights-s3sink"]["data"]["executor.yaml"]
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


MINIO = {
    "endpoint": "https://minio:9000",
    "pathStyle": True,
    "region": "eu-central-1",
    "credentials": {"secret": "login"},
    "caSecret": {"secret": "ca", "key": "ca.crt"},
}

WRITTEN = {"bucket": "archive", "topicsDir": "topics", "partSize": "25Mi"}
"""As the API server stores it, with the defaults of the CustomResourceDefinition."""


def effective_s3(s3: Json, **spec: Any) -> Json:
    return dict(defaults(s3=MINIO).apply(SPEC | spec | {"s3": s3})["s3"])


def test_a_sink_without_an_endpoint_uses_the_default_connection() -> None:
    assert effective_s3(WRITTEN) == WRITTEN | MINIO


def test_a_sink_with_an_endpoint_uses_no_default_of_the_connection() -> None:
    own = WRITTEN | {"endpoint": "https://other:9000"}
    assert effective_s3(own) == own


@pytest.mark.parametrize("field", ["accelerate", "dualStack"])
def test_a_sink_with_an_endpoint_of_aws_uses_no_default_of_another_store(field: str) -> None:
    own = WRITTEN | {field: True}
    assert effective_s3(own) == own
    assert effective_s3(WRITTEN | {field: False}) == WRITTEN | {field: False} | MINIO


def test_a_sink_with_an_endpoint_of_aws_uses_the_defaults_of_aws() -> None:
    known = defaults(s3={"region": "eu-central-1", "pathStyle": True})
    given = WRITTEN | {"accelerate": True}
    assert known.apply(SPEC | {"s3": given})["s3"] == given | {"region": "eu-central-1"}


def test_region_and_credentials_of_a_sink_win() -> None:
    own = WRITTEN | {"region": "us-east-1", "credentials": {"secret": "mine"}}
    assert effective_s3(own) == WRITTEN | MINIO | {"region": "us-east-1", "credentials": {"secret": "mine"}}


def test_a_false_of_a_sink_wins_over_a_true_of_the_operator() -> None:
    own = WRITTEN | {"pathStyle": False}
    assert effective_s3(own)["pathStyle"] is False
    assert "spec.s3.pathStyle" not in {each.field for each in defaults(s3=MINIO).applied(SPEC | {"s3": own})}


@pytest.mark.parametrize("account", [{"name": "lake-writer"}, {"annotations": {"role": "a"}}])
def test_a_sink_with_an_identity_of_its_own_uses_no_default_credentials(account: Json) -> None:
    assert "credentials" not in effective_s3(WRITTEN, serviceAccount=account)
    assert effective_s3(WRITTEN, serviceAccount={"annotations": {}})["credentials"] == {"secret": "login"}


def test_the_job_and_the_driver_pod_get_the_default_connection() -> None:
    cluster = with_defaults(defaults(s3=MINIO))
    config = cluster.objects["ConfigMap", "flights-s3sink"]["data"]["sink.yaml"]
    assert "endpoint: https://minio:9000" in config
    secrets = [each["secret"]["secretName"] for each in driver_spec(cluster)["volumes"] if "secret" in each]
    assert secrets == ["ca", "login"]


def test_a_stopped_sink_stays_published_while_the_default_endpoint_is_the_same() -> None:
    cluster = with_defaults(defaults(s3=MINIO))
    cluster.edit(state="Stopped")
    cluster.converge_with_kubelet()
    assert cluster.status["publishedEndpoint"] == "https://minio:9000"
    cluster.log.clear()
    cluster.wait(60_000)
    cluster.converge_with_kubelet()
    assert not actions(cluster)


SIZES = {"executor": {"cores": 2, "memory": {"min": "1Gi", "max": "2Gi"}}, "driver": {"cores": 3}}


def test_default_cores_and_memory_reach_sinks_that_do_not_set_them() -> None:
    cluster = with_defaults(defaults(**SIZES), **CLUSTER)
    config = cluster.objects["ConfigMap", "flights-s3sink"]["data"]
    assert "spark.executor.cores=2" in config["spark.properties"]
    assert driver_spec(cluster)["containers"][0]["resources"]["requests"]["cpu"] == "3"
    assert applied(cluster) == {
        "spec.executor.cores": "2",
        "spec.executor.memory.min": "1Gi",
        "spec.executor.memory.max": "2Gi",
        "spec.driver.cores": "3",
    }


def test_cores_and_memory_of_a_sink_win_field_by_field() -> None:
    own = {"executor": {"cores": 1, "memory": {"max": "4Gi"}}, "driver": {"cores": 1}}
    spec = defaults(**SIZES).apply(SPEC | own)
    assert spec["executor"] == {"cores": 1, "memory": {"min": "1Gi", "max": "4Gi"}}
    assert spec["driver"] == {"cores": 1}


def test_a_default_maximum_below_the_minimum_of_a_sink_is_an_invalid_spec_that_names_the_default() -> None:
    sink = document(executor={"memory": {"min": "3Gi"}})
    cluster = Cluster(sink=sink, settings=replace(SETTINGS, sink_defaults=defaults(**SIZES)))
    cluster.converge()
    assert cluster.ready == ("False", "InvalidSpec")
    message = cluster.condition("Ready")["message"]
    assert "spec.executor.memory.min" in message
    assert "defaults of the operator apply to: spec.executor.cores, spec.executor.memory.max" in message


def test_a_changed_default_of_the_memory_restarts_no_driver() -> None:
    cluster = with_defaults(defaults(**SIZES), **CLUSTER)
    changed = {"executor": {"cores": 2, "memory": {"min": "1Gi", "max": "3Gi"}}, "driver": {"cores": 3}}
    cluster.settings = replace(cluster.settings, sink_defaults=defaults(**changed))
    cluster.converge_with_kubelet()
    assert not [each for each in actions(cluster) if "Pod" in str(each)]
    assert applied(cluster)["spec.executor.memory.max"] == "3Gi"


def test_the_crd_names_the_default_of_exactly_these_fields_in_their_descriptions_alone() -> None:
    found = dict(schema_fields(schema()))
    named = {path for path, field in found.items() if "or that of the operator" in field.get("description", "")}
    assert named == {".".join(("spec", *path)) for path in DEFAULTED_FIELDS}
    assert not [path for path in named if "default" in found[path]]


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
    cluster.converge_with_kubelet()
    assert driver_spec(cluster)["nodeSelector"] == {"disk": "nvme"}
    assert applied(cluster) == {"spec.driver.podTemplate.spec.nodeSelector.disk": "nvme"}


def test_a_default_that_a_sink_overrides_restarts_nothing() -> None:
    own = {"podTemplate": {"spec": {"nodeSelector": {"disk": "ssd"}}}}
    cluster = with_defaults(defaults(nodeSelector={"disk": "ssd"}), driver=own)
    cluster.settings = replace(cluster.settings, sink_defaults=defaults(nodeSelector={"disk": "nvme"}))
    cluster.converge_with_kubelet()
    assert not actions(cluster)


def test_an_invalid_spec_names_the_defaults_that_apply() -> None:
    cluster = Cluster(settings=replace(SETTINGS, sink_defaults=defaults(s3={"endpoint": "http://minio:9000"})))
    cluster.converge()
    assert cluster.ready == ("False", "InvalidSpec")
    message = cluster.condition("Ready")["message"]
    assert "set spec.s3.insecure: true" in message
    assert "defaults of the operator apply to: spec.s3.endpoint" in message


MINIO_WITHOUT_TLS: Json = {"endpoint": "http://minio:9000", "insecure": True, "pathStyle": True}


def invalid(own: Json) -> str:
    """The message about a sink with these fields of `s3`, for which the defaults set a store without TLS."""
    sink = document(s3=SPEC["s3"] | own)
    cluster = Cluster(sink=sink, settings=replace(SETTINGS, sink_defaults=defaults(s3=MINIO_WITHOUT_TLS)))
    cluster.converge()
    assert cluster.ready == ("False", "InvalidSpec")
    return str(cluster.condition("Ready")["message"])


def test_an_invalid_spec_names_stored_values_that_win_over_the_defaults_and_what_to_do() -> None:
    message = invalid({"insecure": False, "pathStyle": False})
    assert "set spec.s3.insecure: true" in message
    assert "remove spec.s3.pathStyle, spec.s3.insecure from the sink to use the defaults of the operator" in message


def test_an_invalid_spec_names_no_values_that_equal_the_defaults() -> None:
    message = invalid({"insecure": False, "pathStyle": True})
    assert "remove spec.s3.insecure from the sink" in message


def test_an_invalid_spec_names_no_values_beside_an_endpoint_of_the_sink() -> None:
    assert "remove" not in invalid({"insecure": False, "endpoint": "http://other:9000"})


def test_a_pod_template_that_makes_no_sense_is_left_to_the_parser() -> None:
    found = defaults(nodeSelector={"disk": "ssd"}, s3=MINIO)
    for wrong in ("x", 3, ["x"]):
        assert found.apply({"driver": wrong, "s3": wrong})["driver"] == wrong
        assert found.apply({"driver": {"podTemplate": wrong}})["driver"]["podTemplate"] == wrong
        found.applied({"driver": {"podTemplate": wrong}, "s3": wrong})
    assert found.apply(None) is None


def test_a_sink_without_signatures_gets_no_credentials() -> None:
    defaults = SinkDefaults.model_validate({"s3": {"credentials": {"secret": "keys"}, "region": "eu-central-1"}})
    assert defaults.apply({"s3": {"bucket": "a", "anonymous": True}})["s3"] == {
        "bucket": "a",
        "anonymous": True,
        "region": "eu-central-1",
    }
