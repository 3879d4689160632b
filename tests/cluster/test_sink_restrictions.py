"""Restrictions of sinks on a real API server: the chart's admission policies reject what the operator rejects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from devtools.kube.client import Access, ApiError, Json, Kube
from devtools.kube.control_plane import Cluster
from devtools.processes import wait_until
from s3sink_operator.config.sink_restrictions import SinkRestrictions
from s3sink_operator.reasons import Reason
from sink_job.api.units.quantities import MANIFEST
from tests.support.chart import MINIMAL, Helm, helm_in
from tests.support.operator_fixture import Operated, StartOperator, condition
from tests.support.restricted_sinks import ALLOWED, EXTENDED, EXTENDED_CASES, REJECTED, Case
from tools.chart import CHART

pytestmark = pytest.mark.cluster
ACCOUNT = "flights-s3sink"
KINDS = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
SPEC: Json = {
    "kafka": {"bootstrapServers": "kafka:9092", "topics": ["flights"]},
    "rotation": {"flushSize": 100},
    "s3": {"bucket": "archive", "region": "eu-central-1"},
}
SECURE: Json = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def sink(name: str = "flights", **spec: Any) -> Json:
    return {"apiVersion": "s3sink.io/v1alpha1", "kind": "S3Sink", "metadata": {"name": name}, "spec": SPEC | spec}


def is_rejected(kube: Kube, manifest: Json) -> str:
    """The message of an admission policy, or of the schema of the definition, against a dry run; empty if it is
    accepted."""
    try:
        kube.create(manifest, dry_run=True)
    except ApiError as error:
        if "ValidatingAdmissionPolicy" not in str(error) and "422 Invalid" not in str(error):
            raise
        return str(error)
    return ""


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    return helm_in(tmp_path_factory.mktemp("helm"))


@dataclass(frozen=True)
class Restricted:
    """A namespace with the policies of a release; as its administrator and as the driver of a sink see it."""

    kube: Kube
    driver: Kube


@pytest.fixture(scope="module")
def namespaces(
    control_plane: Cluster, helm: Helm, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Restricted]]:
    """Two namespaces: with the default restrictions, and with those that allow more."""
    kube = control_plane.client()
    made: list[tuple[str, str]] = []
    found = []
    for name, restrictions in (("restricted-sinks", {}), ("extended-sinks", EXTENDED)):
        kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        kube.within(name).create(sink("older", image="evil:1"))
        file = tmp_path_factory.mktemp(name) / "values.yaml"
        file.write_text(yaml.safe_dump({"watch": {"namespaces": [name]}, "sinkRestrictions": restrictions}))
        for policy in policies(helm, name, file):
            kube.create(policy)
            made.append((policy["kind"], policy["metadata"]["name"]))
        found.append(
            Restricted(kube.within(name), control_plane.client(driver_access(control_plane, name)).within(name))
        )
    for each in found:  # the API server takes up a policy some time after it is created
        wait_until(partial(are_enforced, each), "the admission policies", seconds=60)
    yield found
    for kind, name in made:
        kube.delete(kind, name)
    for each in found:
        kube.delete("Namespace", str(each.kube.namespace))


@pytest.fixture
def restricted(namespaces: list[Restricted]) -> Restricted:
    return namespaces[0]


@pytest.fixture
def extended(namespaces: list[Restricted]) -> Restricted:
    return namespaces[1]


def are_enforced(restricted: Restricted) -> bool:
    return bool(
        is_rejected(restricted.kube, sink(image="evil:1")) and is_rejected(restricted.driver, executor(hostPID=True))
    )


def policies(helm: Helm, namespace: str, values: Path) -> list[Json]:
    done = helm("template", "s3sink", CHART, "--namespace", namespace, "--values", MINIMAL, "--values", values)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each and each["kind"] in KINDS]


def driver_access(control_plane: Cluster, namespace: str) -> Access:
    """The account of a driver, with the permissions of the ClusterRole of drivers for pods."""
    kube = control_plane.client().within(namespace)
    rbac = "rbac.authorization.k8s.io"
    kube.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}})
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}]
    kube.apply({"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": {"name": ACCOUNT}, "rules": rules})
    kube.apply(
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": ACCOUNT},
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": ACCOUNT},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
        }
    )
    return control_plane.service_account(namespace, ACCOUNT)


def executor(**fields: Any) -> Json:
    spec = {
        "serviceAccountName": ACCOUNT,
        "automountServiceAccountToken": False,
        "containers": [{"name": "s3sink", "image": "job:1", "securityContext": SECURE}],
        "volumes": [{"name": "a", "emptyDir": {}}],
        **fields,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "flights-exec-1"}, "spec": spec}


def container(**context: Any) -> Json:
    """An executor whose container has this security context."""
    return executor(containers=[{"name": "s3sink", "image": "job:1", "securityContext": SECURE | context}])


@pytest.mark.parametrize("case", [*ALLOWED, *REJECTED], ids=lambda case: case.id)
def test_the_policy_rejects_what_the_operator_rejects(restricted: Restricted, case: Case) -> None:
    assert bool(is_rejected(restricted.kube, sink(**case.spec))) is bool(SinkRestrictions().errors(case.spec))


@pytest.mark.parametrize("case", EXTENDED_CASES, ids=lambda case: case.id)
def test_the_policy_allows_what_the_values_allow(extended: Restricted, case: Case) -> None:
    restrictions = SinkRestrictions.model_validate(EXTENDED, context=MANIFEST)
    assert bool(is_rejected(extended.kube, sink(**case.spec))) is bool(restrictions.errors(case.spec))


def test_the_message_names_the_fields_and_who_can_allow_them(restricted: Restricted) -> None:
    spec: Json = {
        "driver": {"podTemplate": {"spec": {"hostPID": True, "volumes": [{"name": "a", "hostPath": {"path": "/"}}]}}}
    }
    message = is_rejected(restricted.kube, sink(**spec))
    assert "spec.driver.podTemplate: not allowed: spec.hostPID, spec.volumes.hostPath. Remove the fields" in message


def test_a_sink_that_is_older_than_the_restrictions_can_be_annotated_and_deleted_but_not_edited(
    restricted: Restricted,
) -> None:
    kube = restricted.kube
    kube.patch("S3Sink", "older", {"metadata": {"annotations": {"a": "b"}, "finalizers": ["example.com/a"]}})
    kube.patch("S3Sink", "older", {"metadata": {"finalizers": []}})
    with pytest.raises(ApiError, match=r"spec\.image is not one of the allowed images"):
        kube.patch("S3Sink", "older", {"spec": {"rotation": {"flushSize": 7}}})
    kube.delete("S3Sink", "older")


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(executor(serviceAccountName="default"), id="under another service account"),
        pytest.param(executor(hostNetwork=True), id="in the network of the host"),
        pytest.param(executor(hostPID=True), id="with the processes of the host"),
        pytest.param(executor(volumes=[{"name": "a", "hostPath": {"path": "/"}}]), id="with a path of the host"),
        pytest.param(executor(nodeName="control-plane"), id="on a node of its choice"),
        pytest.param(executor(containers=[{"name": "a", "image": "b"}]), id="without a security context"),
        pytest.param(executor(initContainers=[{"name": "a", "image": "b"}]), id="with an init container without one"),
        pytest.param(container(privileged=True, allowPrivilegeEscalation=True), id="privileged"),
        pytest.param(container(allowPrivilegeEscalation=None), id="that gains privileges"),
        pytest.param(container(capabilities={"add": ["SYS_ADMIN"]}), id="with a capability"),
        pytest.param(container(runAsNonRoot=False), id="as root"),
    ],
)
def test_a_driver_creates_no_pod(restricted: Restricted, pod: Json) -> None:
    assert is_rejected(restricted.driver, pod)


def test_a_driver_creates_executors(restricted: Restricted) -> None:
    assert is_rejected(restricted.driver, executor()) == ""


def test_a_driver_creates_pods_with_what_the_values_allow(extended: Restricted) -> None:
    assert is_rejected(extended.driver, executor(volumes=[{"name": "a", "hostPath": {"path": "/"}}])) == ""
    assert is_rejected(extended.driver, executor(hostPID=True))


def test_other_accounts_create_any_pod(restricted: Restricted) -> None:
    assert is_rejected(restricted.kube, executor(hostPID=True)) == ""


def test_the_operator_starts_no_driver_for_a_restricted_sink_and_one_when_it_is_allowed(
    start: StartOperator, alone: Operated, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("sinkRestrictions: {podTemplateFields: [spec.hostname]}")
    start("--config", str(config))
    alone.apply(driver={"podTemplate": {"spec": {"hostPID": True}}})
    found = alone.wait(lambda found: condition(found, Reason.SINK_RESTRICTED), Reason.SINK_RESTRICTED)
    message = condition(found, "Stalled")["message"]
    assert message.startswith("spec.driver.podTemplate.spec.hostPID is not allowed with this value, only false.")
    assert not alone.kube.items("Pod")
    alone.apply(driver={"podTemplate": {"spec": {"hostname": "allowed"}}})
    alone.wait_ready()
