"""The CRD on a real API server: what it takes, what it rejects and in which words, what it fills in, how it scales."""

from __future__ import annotations

import functools
import operator
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml

from devtools.kube.build import control_plane_programs
from devtools.kube.client import ApiError, Json, Kube
from devtools.kube.control_plane import Cluster
from s3sink_operator import crd
from s3sink_operator.config.sink_defaults import DEFAULTED_FIELDS
from sink_job.api.parser import parse_sink
from sink_job.api.rules import unsupported
from tests.operator.crd.rejected_manifests import CHANGED, REJECTED
from tests.support.sinks import causes, place_for_sinks, tried
from tests.unit.api.manifests import HOURLY, TIME, document

pytestmark = pytest.mark.cluster

UNSUPPORTED = [
    (".".join(map(str, path)), value.value)
    for path, supported in unsupported.CHOICES.items()
    if len(supported) > 1
    for value in type(next(iter(supported)))
    if value not in supported
]
"""Enum fields and their values that this version does not implement."""

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
COMPLETE: Json = {
    "observedGeneration": 1,
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "reason": "Running",
            "message": "The sink runs.",
            "lastTransitionTime": "2025-11-03T10:00:00Z",
            "observedGeneration": 1,
        }
    ],
    "desiredState": "Running",
    "desiredStateSource": "spec.state",
    "progress": {
        "phase": "Running",
        "partitions": {"assigned": 12, "active": 3},
        "lag": {"records": 180, "seconds": 4},
        "topics": [{"topic": "flights", "partitions": 12, "lag": 180}],
        "mostLagging": [{"topic": "flights", "partition": 3, "committed": 20, "end": 100, "lag": 80}],
    },
    "memory": {"current": "2Gi", "recommended": "2Gi", "inputs": {"slots": 2, "openObjects": 90}},
    "scaling": {
        "desired": 3,
        "bounds": "1 to 8, 16 active topic-partitions each",
        "lowSinceTime": "2025-11-03T10:00:00Z",
        "lowMost": 1,
        "lastChange": {"time": "2025-11-03T09:00:00Z", "from": 1, "to": 3, "reason": "grow: 3 executors required"},
    },
    "attempts": [{"number": 1, "startTime": "2025-11-03T10:00:00Z"}],
    "retry": {"failures": 0},
    "replicas": 2,
    "selector": "s3sink.io/sink=flights",
}
"""A status with a value in every section."""

RIGHT: list[Any] = [
    pytest.param([], id="as little as there can be"),
    pytest.param([HOURLY, {"spec.partitioner.duration": "60m"}], id="an hour written as minutes"),
    pytest.param(
        [{"spec.partitioner": {"type": "Daily", "timezone": "UTC", "duration": "1d"}}], id="a day for daily paths"
    ),
    pytest.param(
        [
            HOURLY,
            {
                "spec.s3.directoryDelimiter": "-",
                "spec.partitioner.pathFormat": "'year'=YYYY-'month'=MM-'day'=dd-'hour'=HH",
            },
        ],
        id="the path that a type has anyway, by another delimiter",
    ),
    pytest.param([TIME, {"spec.rotation.interval": "1d12h"}], id="days and hours"),
    pytest.param([HOURLY, {"spec.rotation.scheduleInterval": "23h60m"}], id="a schedule of just a day"),
    pytest.param([{"spec.s3.partSize": 5242880}], id="the smallest part as a number"),
    pytest.param([{"spec.s3.partSize": "2Gi", "spec.rotation.maxBytes": "19.5Ti"}], id="the largest part"),
    pytest.param([{"spec.s3.partSize": "5Mi", "spec.rotation.maxBytes": "50000Mi"}], id="exactly 10000 parts"),
    pytest.param([{"spec.s3.partSize": "5.5Mi", "spec.rotation.maxBytes": "1Gi"}], id="a size with a fraction"),
    pytest.param([{"spec.s3.endpoint": "http://127.0.0.1:9000"}], id="a store on this machine without TLS"),
    pytest.param([{"spec.s3.endpoint": "http://[::1]:9000"}], id="a store on this machine by IPv6"),
    pytest.param([{"spec.s3.endpoint": "http://a:1", "spec.s3.insecure": True}], id="an insecure store without TLS"),
    pytest.param([{"spec.kafka.bootstrapServers": "a:9092, [::1]:9093"}], id="several brokers"),
    pytest.param([{"spec.rotation.interval": None}], id="a field left empty"),
    pytest.param([{"spec.s3.topicsDir": ""}], id="no folder"),
    pytest.param([{"spec.sparkConf": {"spark.executor.extraJavaOptions": "-Xss1m"}}], id="a property of Spark"),
    pytest.param([{"spec.kafka.properties": {"client.id": "a"}}], id="a property of Kafka"),
    pytest.param(
        [{"spec.driver.podTemplate": {"spec": {"containers": [{"name": "a", "env": [{"name": "b"}]}]}}}],
        id="anything in a pod template",
    ),
    pytest.param(
        [
            {
                "spec.offsets.reset": {
                    "nonce": "1",
                    "to": "Offsets",
                    "partitions": [{"topic": "a", "partition": 0, "offset": 7}],
                }
            }
        ],
        id="a reset to offsets",
    ),
    pytest.param([{"metadata.name": "a" * 40}], id="a name of 40 characters"),
]


@pytest.fixture(scope="module")
def sinks(control_plane: Cluster) -> Iterator[Kube]:
    with place_for_sinks(control_plane) as kube:
        yield kube


@pytest.fixture
def sink(sinks: Kube, unique_name: str) -> Json:
    """An S3Sink that is there, with a name of its own."""
    return sinks.create(document({"metadata.name": unique_name[-40:].strip("-")}))


def test_the_definition_is_established_and_its_rules_are_cheap_enough(sinks: Kube) -> None:
    status = sinks.get("CustomResourceDefinition", "s3sinks.s3sink.io")["status"]
    conditions = {each["type"]: each["status"] for each in status["conditions"]}
    assert conditions["Established"] == conditions["NamesAccepted"] == "True"
    assert conditions.get("NonStructuralSchema", "False") == "False"


def test_the_server_keeps_the_definition_as_it_is_written(sinks: Kube) -> None:
    assert sinks.get("CustomResourceDefinition", "s3sinks.s3sink.io")["spec"] == crd.crd()["spec"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_accepted(sinks: Kube, example: Path) -> None:
    tried(sinks, yaml.safe_load(example.read_text(encoding="utf-8")))


@pytest.mark.parametrize("changes", RIGHT)
def test_what_the_parser_takes_the_server_takes(sinks: Kube, changes: list[dict[str, object]]) -> None:
    tried(sinks, document(*changes))


@pytest.mark.parametrize(("manifest", "said"), REJECTED)
def test_a_rule_rejects_with_its_message(sinks: Kube, manifest: Json, said: str) -> None:
    with pytest.raises(ApiError) as rejected:
        tried(sinks, manifest)
    assert rejected.value.status == 422
    assert any(said in cause for cause in causes(rejected.value)), causes(rejected.value)
    assert not [cause for cause in causes(rejected.value) if "evaluating rule" in cause]


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("Off", 'spec.executor.memory.mode: Unsupported value: "Off": supported values: "Disabled"'),
        (yaml.safe_load("Off"), "spec.executor.memory.mode in body must be of type string"),
    ],
)
def test_the_previous_memory_mode_is_rejected_by_its_field(sinks: Kube, mode: object, said: str) -> None:
    with pytest.raises(ApiError) as rejected:
        tried(sinks, document({"spec.executor.memory.mode": mode}))
    assert any(said in f"{cause['field']}: {cause['message']}" for cause in rejected.value.answer["details"]["causes"])


def test_a_rejection_names_the_field_in_error(sinks: Kube) -> None:
    with pytest.raises(ApiError) as rejected:
        tried(sinks, document({"spec.partitioner": {"type": "Time", "timezone": "UTC", "pathFormat": "HH"}}))
    fields = {cause["field"] for cause in rejected.value.answer["details"]["causes"]}
    assert fields == {"spec.partitioner.duration"}


@pytest.mark.parametrize("interval", ["600", "10 minutes", "", "1h30", "30m1h"])
def test_a_wrong_duration_is_rejected_in_words_and_with_one_error(sinks: Kube, interval: str) -> None:
    with pytest.raises(ApiError) as rejected:
        tried(sinks, document({"spec.rounds.maxDelay": interval}))
    (cause,) = rejected.value.answer["details"]["causes"]
    assert cause["field"] == "spec.rounds.maxDelay"
    assert "is not a duration: use a number with a unit (d, h, m, s, ms; largest first)" in cause["message"]


@pytest.mark.parametrize(("before", "patch", "said"), CHANGED)
def test_what_names_a_sink_cannot_be_changed(
    sinks: Kube, unique_name: str, before: dict[str, object], patch: Json, said: str
) -> None:
    made = sinks.create(document(before, {"metadata.name": unique_name[-40:].strip("-")}))
    with pytest.raises(ApiError) as rejected:
        sinks.patch("S3Sink", made["metadata"]["name"], patch)
    assert rejected.value.status == 422
    assert [cause for cause in causes(rejected.value) if said in cause]


def test_what_does_not_name_a_sink_can_be_changed(sinks: Kube, sink: Json) -> None:
    patch = {"spec": {"kafka": {"topics": ["flights", "delays"]}, "s3": {"partSize": "16Mi"}, "state": "Paused"}}
    changed = sinks.patch("S3Sink", sink["metadata"]["name"], patch)
    assert changed["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        pytest.param({"spec.kafka.topic": "a"}, "spec.kafka.topic", id="in a section"),
        pytest.param({"spec.zebra": 1}, "spec.zebra", id="in the spec"),
        pytest.param(
            {"spec.kafka.propertySecrets": [{"name": "a", "secret": "b", "key": "c", "optional": True}]},
            "spec.kafka.propertySecrets[0].optional",
            id="in an item of a list",
        ),
        pytest.param({"zebra": 1}, "zebra", id="beside the spec"),
    ],
)
def test_an_unknown_field_is_rejected_by_its_name(sinks: Kube, changes: dict[str, object], path: str) -> None:
    with pytest.raises(ApiError) as rejected:
        tried(sinks, document(changes))
    assert rejected.value.status == 400
    assert f'unknown field "{path}"' in rejected.value.message


@pytest.mark.parametrize("path", [".".join(map(str, path)) for path in unsupported.ABSENT])
def test_a_field_that_is_not_supported_is_rejected_by_its_name(sinks: Kube, path: str) -> None:
    with pytest.raises(ApiError) as rejected:
        tried(sinks, document({path: "Json"}))
    assert rejected.value.status == 400
    assert f'unknown field "{path}"' in rejected.value.message


@pytest.mark.parametrize(("path", "value"), UNSUPPORTED)
def test_a_value_that_is_not_supported_is_rejected_with_the_supported_ones(sinks: Kube, path: str, value: str) -> None:
    changes: dict[str, object] = {path: value}
    if path.startswith("spec.offsets"):
        changes = {"spec.offsets.reset": {"nonce": "1", "to": "Earliest", "onExisting": value}}
    with pytest.raises(ApiError) as rejected:
        tried(sinks, document(changes))
    assert f'{path}: Unsupported value: "{value}": supported values: ' in rejected.value.message


def test_a_spec_is_required(sinks: Kube) -> None:
    manifest = document()
    del manifest["spec"]
    with pytest.raises(ApiError) as rejected:
        tried(sinks, manifest)
    assert [error for error in rejected.value.answer["details"]["causes"] if error["field"] == "spec"]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"spec.kafka.topics": ["flights", "flights"]}, id="a topic"),
        pytest.param(
            {"spec.kafka.propertySecrets": [{"name": "a", "secret": "b", "key": key} for key in "cd"]},
            id="a property from a secret",
        ),
        pytest.param(
            {
                "spec.offsets.reset": {
                    "nonce": "1",
                    "to": "Offsets",
                    "partitions": [{"topic": "a", "partition": 0, "offset": offset} for offset in (1, 2)],
                }
            },
            id="a topic-partition",
        ),
        pytest.param(
            {"spec.errors.skip": [{"topic": "flights", "partition": 0, "offset": 42}] * 2},
            id="a record to skip",
        ),
    ],
)
def test_what_has_a_name_cannot_be_listed_twice(sinks: Kube, changes: dict[str, object]) -> None:
    with pytest.raises(ApiError) as rejected:
        tried(sinks, document(changes))
    assert "Duplicate value" in rejected.value.message


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"spec.rotation.interval": 600}, id="a duration without a unit"),
        pytest.param({"spec.s3.partSize": "25MB"}, id="a size in no unit of ours"),
        pytest.param({"spec.s3.partSize": True}, id="a size that is no number"),
        pytest.param({"spec.format.output": "json"}, id="a choice in small letters"),
        pytest.param({"spec.executor.instances": 0}, id="no executors"),
        pytest.param({"spec.s3.bucket": "Archive"}, id="a bucket that S3 would not take"),
        pytest.param({"spec.kafka.topics": []}, id="an empty list of topics"),
    ],
)
def test_a_field_is_validated_against_its_schema(sinks: Kube, changes: dict[str, object]) -> None:
    with pytest.raises(ApiError) as rejected:
        tried(sinks, document(changes))
    assert rejected.value.status == 422


@pytest.mark.parametrize("process", ["driver", "executor"])
@pytest.mark.parametrize(
    ("template", "path"),
    [
        pytest.param({"spec": [{"nodeSelector": {}}]}, "spec", id="a spec that is a list"),
        pytest.param({"metadata": {"labels": {"team": 7}}}, "metadata.labels.team", id="a label that is a number"),
        pytest.param({"spec": {"nodeSelector": {"ssd": True}}}, "spec.nodeSelector.ssd", id="a selector of a node"),
        pytest.param(
            {"spec": {"containers": [{"name": "s3sink", "env": [{"name": "PORT", "value": 8080}]}]}},
            "spec.containers[0].env[0].value",
            id="a variable that is a number",
        ),
        pytest.param(
            {"spec": {"containers": [{"env": []}]}}, "spec.containers[0].name", id="a container without a name"
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "s3sink", "volumeMounts": [{"name": "a"}]}]}},
            "spec.containers[0].volumeMounts[0].mountPath",
            id="a mount without a path",
        ),
        pytest.param({"spec": {"volumes": [{"emptyDir": {}}]}}, "spec.volumes[0].name", id="a volume without a name"),
        pytest.param(
            {"spec": {"terminationGracePeriodSeconds": "90"}},
            "spec.terminationGracePeriodSeconds",
            id="a time as a text",
        ),
    ],
)
def test_a_wrong_type_in_a_pod_template_is_rejected_by_its_field(
    sinks: Kube, process: str, template: Json, path: str
) -> None:
    field = f"spec.{process}.podTemplate"
    with pytest.raises(ApiError) as rejected:
        tried(sinks, document({field: template}))
    fields = {cause["field"] for cause in rejected.value.answer["details"]["causes"]}
    # Without a field: the CEL rules, which are not evaluated for a wrong type.
    assert fields - {"<nil>"} == {f"{field}.{path}"}


@pytest.mark.parametrize("process", ["driver", "executor"])
def test_what_a_pod_accepts_in_a_template_is_accepted_and_kept(sinks: Kube, process: str) -> None:
    container: Json = {
        "name": "s3sink",
        "env": [{"name": "A", "value": None}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "resources": {"requests": {"cpu": 0.5, "memory": 1}, "claims": [{"name": "gpu"}]},
        "ports": None,
        "newField": 1,
    }
    template: Json = {
        "metadata": {"labels": None, "annotations": {"a": "b"}, "finalizers": []},
        "spec": {
            "containers": [container],
            "initContainers": [{"name": "proxy", "image": "proxy:1", "restartPolicy": "Always"}],
            "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": 1}}],
            "tolerations": [{"operator": "Gt", "tolerationSeconds": None}],
            "nodeSelector": None,
            "newField": {"a": [1]},
        },
        "newField": [1],
    }
    kept = tried(sinks, document({f"spec.{process}.podTemplate": template}))["spec"][process]["podTemplate"]
    assert kept == template


def test_kubectl_explain_shows_how_to_write_a_size(control_plane: Cluster) -> None:
    """kubectl itself has no type for it but Object (ADR 22)."""
    kubectl = control_plane_programs().kubectl
    if kubectl is None:
        pytest.skip("the given control plane has no kubectl")
    command = [str(kubectl), "--kubeconfig", str(control_plane.kubeconfig()), "explain", "s3sinks.spec.executor.memory"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "Quantity such as 64Mi, or bytes. Maximum memory of an executor" in " ".join(done.stdout.split())


@pytest.mark.parametrize("size", ["64Mi", 67108864, "67108864"])
def test_a_size_is_accepted_as_a_quantity_and_as_bytes_also_by_server_side_apply(sinks: Kube, size: str | int) -> None:
    made = document({"spec.s3.partSize": size})
    made["metadata"]["namespace"] = sinks.namespace
    assert sinks.apply(made)["spec"]["s3"]["partSize"] == size
    made["spec"]["s3"]["partSize"] = "32Mi"
    assert sinks.apply(made)["spec"]["s3"]["partSize"] == "32Mi"
    sinks.delete("S3Sink", made["metadata"]["name"])


def test_defaults_are_filled_in(sinks: Kube) -> None:
    spec = tried(sinks, document())["spec"]
    assert spec["s3"]["topicsDir"] == "topics"
    assert spec["s3"]["partSize"] == "25Mi"
    assert spec["rounds"] == {"minBytes": "8Mi", "maxDelay": "10s", "maxBytes": "512Mi"}
    scaling = {"mode": "Fixed", "minInstances": 1, "maxInstances": 8, "partitionsPerTask": 8}
    assert spec["executor"] == {"mode": "Cluster", "instances": 1, "memory": {}, "scaling": scaling}
    assert spec["state"] == "Running"
    assert "interval" not in spec["rotation"]


def test_fields_that_the_operator_can_default_are_not_filled_in(sinks: Kube) -> None:
    spec = tried(sinks, document())["spec"]
    for path in DEFAULTED_FIELDS:
        section = functools.reduce(operator.getitem, path[:-1], spec)
        assert path[-1] not in section, path


def test_what_is_filled_in_means_what_was_written(sinks: Kube) -> None:
    written = document(HOURLY)
    made = tried(sinks, written)
    made["metadata"] = written["metadata"]
    made.pop("status", None)
    assert parse_sink(made) == parse_sink(written)


def test_nothing_is_filled_into_items_of_lists(sinks: Kube) -> None:
    secret = {"name": "ssl.key.password", "secret": "a", "key": "b"}
    reset = {"nonce": "1", "to": "Offsets", "partitions": [{"topic": "a", "partition": 0, "offset": 7}]}
    changes = {
        "spec.kafka.propertySecrets": [secret],
        "spec.imagePullSecrets": [{"name": "login"}],
        "spec.offsets.reset": reset,
    }
    spec = tried(sinks, document(changes))["spec"]
    assert spec["kafka"]["propertySecrets"] == [secret]
    assert spec["imagePullSecrets"] == [{"name": "login"}]
    assert spec["offsets"]["reset"]["partitions"] == reset["partitions"]


def test_scaling_changes_the_number_of_executors(sinks: Kube, sink: Json) -> None:
    name = sink["metadata"]["name"]
    scale = sinks.patch("S3Sink", name, {"spec": {"replicas": 3}}, subresource="scale")
    assert scale["spec"]["replicas"] == 3
    assert sinks.get("S3Sink", name)["spec"]["executor"]["instances"] == 3


def test_a_number_that_follows_activity_cannot_be_scaled_by_hand(sinks: Kube) -> None:
    """kubectl scale and autoscalers get the message of the rule."""
    made = sinks.create(document({"spec.executor": {"scaling": {"mode": "Auto"}}}) | {"metadata": {"name": "auto"}})
    with pytest.raises(ApiError) as rejected:
        sinks.patch("S3Sink", made["metadata"]["name"], {"spec": {"replicas": 3}}, subresource="scale")
    assert rejected.value.status == 422
    assert "spec.executor.instances has no effect with scaling.mode: Auto: remove it" in str(rejected.value)


def test_scaling_to_zero_is_rejected(sinks: Kube, sink: Json) -> None:
    with pytest.raises(ApiError) as rejected:
        sinks.patch("S3Sink", sink["metadata"]["name"], {"spec": {"replicas": 0}}, subresource="scale")
    assert rejected.value.status == 422
    assert "should be greater than or equal to 1" in rejected.value.message


def test_an_autoscaler_sees_the_executors_that_are_there(sinks: Kube, sink: Json) -> None:
    name = sink["metadata"]["name"]
    sinks.patch("S3Sink", name, {"status": COMPLETE}, subresource="status")
    assert sinks.get("S3Sink", name, subresource="scale")["status"] == {"replicas": 2, "selector": COMPLETE["selector"]}


def test_a_status_is_kept_as_it_is_written(sinks: Kube, sink: Json) -> None:
    name = sink["metadata"]["name"]
    sinks.patch("S3Sink", name, {"status": COMPLETE}, subresource="status")
    assert sinks.get("S3Sink", name)["status"] == COMPLETE


def test_a_status_does_not_change_the_generation_nor_an_edit_the_status(sinks: Kube, sink: Json) -> None:
    name = sink["metadata"]["name"]
    sinks.patch("S3Sink", name, {"status": COMPLETE}, subresource="status")
    edited = sinks.patch("S3Sink", name, {"spec": {"state": "Stopped"}, "status": {"replicas": 9}})
    assert edited["metadata"]["generation"] == 2
    assert edited["status"] == COMPLETE


def test_there_is_one_condition_of_each_type(sinks: Kube, sink: Json) -> None:
    twice = COMPLETE | {"conditions": COMPLETE["conditions"] * 2}
    with pytest.raises(ApiError) as rejected:
        sinks.patch("S3Sink", sink["metadata"]["name"], {"status": twice}, subresource="status")
    assert "Duplicate value" in rejected.value.message


def test_the_columns_of_kubectl_get_are_filled(sinks: Kube, sink: Json) -> None:
    name = sink["metadata"]["name"]
    sinks.patch("S3Sink", name, {"status": COMPLETE}, subresource="status")
    table = as_table(sinks, name)
    titles = [column["name"] for column in table["columnDefinitions"]]
    cells = dict(zip(titles, table["rows"][0]["cells"], strict=True))
    assert titles == ["Name", "Ready", "State", "Partitions", "Lag", "Memory", "Age", "Reason", "Updated"]
    assert {title: cells[title] for title in titles if title not in ("Age", "Updated")} == {
        "Name": name,
        "Ready": "True",
        "State": "Running",
        "Partitions": 12,
        "Lag": 180,
        "Memory": "2Gi",
        "Reason": "Running",
    }


def as_table(sinks: Kube, name: str) -> Json:
    """What kubectl asks for to print a line."""
    path = f"/apis/s3sink.io/v1alpha1/namespaces/{sinks.namespace}/s3sinks/{name}"
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    access = sinks.access
    login: dict[str, Any] = {"ca_certs": str(access.authority)} if access.authority else {}
    if access.certificate:
        login |= {"cert_file": str(access.certificate.certificate), "key_file": str(access.certificate.key)}
    http = urllib3.PoolManager(**login)
    headers = {"Accept": accept} | ({"Authorization": f"Bearer {access.token}"} if access.token else {})
    table: Json = http.request("GET", sinks.access.server + path, headers=headers).json()
    return table


def test_the_short_name_and_the_category_are_served(sinks: Kube) -> None:
    resources = sinks.request("GET", "/apis/s3sink.io/v1alpha1")["resources"]
    found = {each["name"]: each for each in resources}
    assert set(found) == {"s3sinks", "s3sinks/status", "s3sinks/scale"}
    assert found["s3sinks"]["shortNames"] == ["s3s"]
    assert found["s3sinks"]["categories"] == ["sinks"]
    assert found["s3sinks"]["singularName"] == "s3sink"


def test_applying_a_sink_twice_changes_nothing(sinks: Kube, unique_name: str) -> None:
    manifest = document(HOURLY, {"metadata.name": unique_name[-40:].strip("-")})
    first, second = (sinks.apply(manifest) for _ in range(2))
    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]
