"""A second version of the CRD on a real API server: what docs/compatibility.md says of conversion and storage.

The definition is a copy under another kind and group, so other tests of the control plane never see it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest

from devtools.kube.client import ApiError, Json, Kube
from devtools.kube.control_plane import Cluster
from devtools.processes import wait_until
from s3sink_operator import crd
from tests.unit.api.manifests import document

pytestmark = pytest.mark.cluster

GROUP, KIND, PLURAL = "versions.s3sink.example", "VersionedSink", "versionedsinks"
NAME = f"{PLURAL}.{GROUP}"
STATUS: Json = {"observedGeneration": 1, "desiredState": "Running"}


def definition(*, stored: str) -> Json:
    """The CRD with v1alpha1 and a v1beta1 that has one field more."""
    made = copy.deepcopy(crd.crd())
    made["metadata"] = {"name": NAME}
    made["spec"]["group"] = GROUP
    made["spec"]["names"] = {"kind": KIND, "plural": PLURAL, "singular": KIND.lower()}
    alpha = made["spec"]["versions"][0]
    beta = copy.deepcopy(alpha) | {"name": "v1beta1"}
    beta["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["added"] = {"type": "string"}
    made["spec"]["versions"] = [each | {"storage": each["name"] == stored} for each in (beta, alpha)]
    return made


def manifest(version: str, name: str) -> Json:
    return document({"metadata.name": name[-40:].strip("-")}) | {"apiVersion": f"{GROUP}/{version}", "kind": KIND}


def serves_both(kube: Kube) -> bool:
    """Whether the API server's handlers know both versions. That follows the condition Established after a moment."""
    try:
        return all(kube.request("GET", f"/apis/{GROUP}/{version}") for version in ("v1alpha1", "v1beta1"))
    except ApiError as error:
        if error.status == 404:
            return False
        raise


def read(kube: Kube, version: str, name: str) -> Json:
    return kube.request("GET", f"/apis/{GROUP}/{version}/namespaces/{kube.namespace}/{PLURAL}/{name}")


@pytest.fixture
def sinks(control_plane: Cluster, kube: Kube) -> Iterator[Kube]:
    """The API server with both versions, v1alpha1 stored."""
    control_plane.install_crd(definition(stored="v1alpha1"))
    wait_until(lambda: serves_both(kube), "both versions served", seconds=60)
    yield kube
    kube.delete("CustomResourceDefinition", NAME)
    control_plane.wait_crd_gone(NAME)


def test_a_sink_of_one_version_is_served_in_the_other_with_its_status(sinks: Kube, unique_name: str) -> None:
    made = sinks.create(manifest("v1alpha1", unique_name))
    sinks.patch(KIND, made["metadata"]["name"], {"status": STATUS}, subresource="status")
    alpha, beta = (read(sinks, version, made["metadata"]["name"]) for version in ("v1alpha1", "v1beta1"))
    assert beta["apiVersion"] == f"{GROUP}/v1beta1"
    assert beta["spec"] == alpha["spec"] == made["spec"]
    assert beta["status"] == alpha["status"] == STATUS


def test_a_field_of_the_new_version_alone_is_lost_when_the_old_version_is_stored(sinks: Kube, unique_name: str) -> None:
    beta = manifest("v1beta1", unique_name)
    beta["spec"]["added"] = "text"
    made = sinks.create(beta)
    assert "added" not in read(sinks, "v1beta1", made["metadata"]["name"])["spec"]


def test_a_version_in_which_objects_may_be_stored_cannot_be_removed(control_plane: Cluster, sinks: Kube) -> None:
    control_plane.install_crd(definition(stored="v1beta1"))
    without = definition(stored="v1beta1")
    without["spec"]["versions"] = without["spec"]["versions"][:1]
    with pytest.raises(ApiError) as rejected:
        sinks.apply(without)
    assert 'status.storedVersions[0]: Invalid value: "v1alpha1"' in rejected.value.message


def test_the_old_version_can_be_removed_after_every_sink_is_stored_in_the_new_one(
    control_plane: Cluster, sinks: Kube, unique_name: str
) -> None:
    name = sinks.create(manifest("v1beta1", unique_name))["metadata"]["name"]
    stored_old = read(sinks, "v1beta1", name)["metadata"]["resourceVersion"]
    control_plane.install_crd(definition(stored="v1beta1"))
    # The API server's handlers follow the definition after a moment. A write that changes nothing is no write: a new
    # resourceVersion means that the sink is stored in another version.
    wait_until(
        lambda: sinks.replace(read(sinks, "v1beta1", name))["metadata"]["resourceVersion"] != stored_old,
        "the sink stored in v1beta1",
        seconds=60,
    )
    sinks.patch("CustomResourceDefinition", NAME, {"status": {"storedVersions": ["v1beta1"]}}, subresource="status")
    without = definition(stored="v1beta1")
    without["spec"]["versions"] = without["spec"]["versions"][:1]
    control_plane.install_crd(without)
    assert read(sinks, "v1beta1", name)["spec"]["s3"]["bucket"] == "archive"
