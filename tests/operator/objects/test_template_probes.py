"""The pods by which the API server checks the pod templates of a spec."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from s3sink_operator.objects.template_probes import TemplateProbe, template_probes
from s3sink_operator.types import Json, owner_reference
from sink_job.api.parser import parse_sink
from sink_job.api.spec import Sink
from tests.operator.fake_cluster import SETTINGS, document

OWNER = owner_reference(document())
DRIVER, EXECUTOR = "spec.driver.podTemplate", "spec.executor.podTemplate"


def sink(**template: Any) -> Sink:
    """A sink in Cluster mode whose executors have this pod template."""
    return parse_sink(document(executor={"mode": "Cluster", "podTemplate": template}))


def probes(parsed: Sink) -> list[TemplateProbe]:
    return template_probes(parsed, OWNER, SETTINGS)


def test_a_sink_without_templates_has_no_probes() -> None:
    assert probes(parse_sink(document())) == []


def test_the_pod_of_a_driver_with_a_template_is_checked_with_the_sink_as_its_owner() -> None:
    parsed = parse_sink(document(driver={"podTemplate": {"spec": {"nodeSelector": {"disk": "ssd"}}}}))
    made = probes(parsed)[1].pod
    assert made["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert made["metadata"]["ownerReferences"] == [OWNER]


def test_the_pod_of_an_executor_is_checked_without_an_owner_since_its_driver_may_not_exist() -> None:
    parsed = sink(spec={})
    assert "ownerReferences" not in probes(parsed)[1].pod["metadata"]


def test_the_template_reaches_the_api_server_as_it_is_written() -> None:
    parsed = sink(metadata={"lables": {"a": "b"}, "name": "mine"}, specc={}, spec={"nodeselector": {}})
    written = probes(parsed)[0].pod
    assert written["metadata"] == {
        "lables": {"a": "b"},
        "generateName": "flights-s3sink-check-",
        "namespace": "data",
    }
    assert written["specc"] == {}
    assert written["spec"]["nodeselector"] == {}


@pytest.mark.parametrize(
    ("mode", "fields"), [("Local", [DRIVER, DRIVER]), ("Cluster", [DRIVER, DRIVER, EXECUTOR, EXECUTOR])]
)
def test_each_template_is_checked_as_written_and_as_part_of_its_pod(mode: str, fields: list[str]) -> None:
    """In Local mode there are no executors, so their template is not checked."""
    template = {"podTemplate": {"spec": {"nodeSelector": {"a": "b"}}}}
    found = probes(parse_sink(document(driver=template, executor={"mode": mode, **template})))
    assert [each.field for each in found] == fields
    assert [each.strict for each in found] == [True, False] * (len(fields) // 2)
    for each in found:
        assert each.pod["spec"]["nodeSelector"] == {"a": "b"}


def test_a_probe_never_has_the_name_of_an_existing_pod_nor_a_service_account_that_may_not_exist() -> None:
    parsed = parse_sink(document(driver={"podTemplate": {"metadata": {"name": "mine"}, "spec": {}}}))
    for each in probes(parsed):
        metadata = each.pod["metadata"]
        assert "name" not in metadata
        assert (metadata["generateName"], metadata["namespace"]) == ("flights-s3sink-check-", "data")
        assert "serviceAccountName" not in each.pod["spec"]


@pytest.mark.parametrize("spec", [{}, {"containers": []}, {"containers": None}])
def test_a_template_without_containers_is_checked_with_one(spec: Json) -> None:
    """A pod without a container is invalid for that alone."""
    written = probes(sink(spec=spec))[0].pod
    assert written["spec"]["containers"] == [{"name": "s3sink", "image": SETTINGS.image}]


def test_the_container_of_the_checked_executor_has_the_image_of_the_spec() -> None:
    """Spark sets it later."""
    executor = {"mode": "Cluster", "podTemplate": {"spec": {"containers": [{"name": "sidecar", "image": "a"}]}}}
    made = probes(parse_sink(document(executor=executor, image="own:2")))[1].pod
    images = {each["name"]: each.get("image") for each in made["spec"]["containers"]}
    assert images == {"s3sink": "own:2", "sidecar": "a"}
    assert made["spec"]["restartPolicy"] == "Never"


@pytest.mark.parametrize(
    "template",
    [
        {"spec": {"containers": ["text"]}},
        {"spec": {"containers": [None]}},
        {"spec": {"containers": "text"}},
        {"spec": {"containers": [{"name": ["s3sink"]}]}},
        {"spec": {"volumes": ["text"]}},
        {"spec": "text"},
        {"metadata": "text"},
        {"metadata": {"labels": ["a"]}},
    ],
    ids=str,
)
@pytest.mark.parametrize("process", ["driver", "executor"])
def test_a_value_of_a_wrong_type_is_left_to_the_api_server(process: str, template: Json) -> None:
    """The CustomResourceDefinition of an earlier version accepts it."""
    sections: dict[str, Any] = {"driver": {}, "executor": {"mode": "Cluster"}}
    sections[process] |= {"podTemplate": copy.deepcopy(template)}
    written = probes(parse_sink(document(**sections)))[0].pod
    for name, value in template.items():
        assert written[name] == value or name == "spec" or isinstance(value, dict)


def test_the_template_of_the_sink_is_not_changed() -> None:
    parsed = sink(metadata={"name": "mine"}, spec={"serviceAccountName": "a", "containers": [{"name": "s3sink"}]})
    before = copy.deepcopy(parsed.spec.executor.pod_template)
    probes(parsed)
    assert parsed.spec.executor.pod_template == before
