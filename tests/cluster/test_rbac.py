"""The operator under the rights that the chart gives it, and what becomes of it without each of them.

Its token is a real ServiceAccount's, and the API server's RBAC decides. A right that nothing misses is not in the
table, and what the table does not have, the chart must not give.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest
import yaml

from devtools.kube.build import helm_program
from devtools.kube.client import Json, Kube
from devtools.kube.control_plane import Cluster
from devtools.kube.fake_kubelet import Harness
from devtools.operator_process import Operator
from devtools.processes import wait_until
from sink_job.api.report import MemoryReport
from tests.support.operator_fixture import CHILD, DRIVER, SINK, Operated, condition, report
from tools.chart import CHART

pytestmark = pytest.mark.cluster

RBAC = "rbac.authorization.k8s.io/v1"
RBAC_GROUP, COORDINATION, S3 = "rbac.authorization.k8s.io", "coordination.k8s.io", "s3sink.io"
ACCOUNT = "operator"
LEASE = "s3sink-operator"
MUCH = MemoryReport(
    slots=1, open_objects=400, max_open_objects=400, part_size=25 << 20, buffered_bytes=1 << 30, spilled_bytes=2 << 30
)
"""What a sink reports that has not memory enough."""


@dataclass(frozen=True)
class Right:
    """One verb on one resource; `name`: of this object alone."""

    group: str
    resource: str
    verb: str
    name: str | None = None

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"


def rights_of(rules: list[Json]) -> list[Right]:
    """Each single right of rules."""
    return [
        Right(group, resource, verb, name)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [None])
    ]


def rule_of(right: Right) -> Json:
    """A rule that gives this right alone."""
    names = {} if right.name is None else {"resourceNames": [right.name]}
    return {"apiGroups": [right.group], "resources": [right.resource], "verbs": [right.verb], **names}


class Place:
    """A namespace with an operator whose rights are said here."""

    def __init__(self, cluster: Cluster, operated: Operated, folder: Path, given: list[Right]) -> None:
        self.operated = operated
        self.kube = operated.kube
        self.namespace = str(operated.kube.namespace)
        self._cluster = cluster
        self._folder = folder
        self._given = given
        self._operators: list[Operator] = []
        self.kube.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}})
        (driver,) = chart_roles("driver")
        self._names = {driver["metadata"]["name"]: f"driver-{self.namespace}"}
        self.kube.apply(
            {
                "apiVersion": RBAC,
                "kind": "ClusterRole",
                "metadata": {"name": f"driver-{self.namespace}"},
                "rules": driver["rules"],
            }
        )

    def without(self, *taken: Right) -> None:
        """All that the chart gives but this."""
        rules = [rule_of(self._here(right)) for right in self._given if right not in taken]
        meta = {"name": f"operator-{self.namespace}"}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", **meta}
        subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": self.namespace}
        self.kube.apply({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": meta, "rules": rules})
        self.kube.apply(
            {"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": meta, "roleRef": role, "subjects": [subject]}
        )
        for right in self._given:
            wait_until(
                lambda right=right: self._may(right) is (right not in taken),  # type: ignore[misc]
                f"{right} is {'taken' if right in taken else 'given'}",
                seconds=60,
            )

    def begin(self, *flags: str) -> Operator:
        kubeconfig = self._cluster.kubeconfig(self._cluster.service_account(self.namespace, ACCOUNT))
        flags = ("--driver-cluster-role", f"driver-{self.namespace}", *flags)
        self._operators.append(Operator(self._folder, kubeconfig, self.namespace, *flags, forked=True))
        return self._operators[-1]

    def end(self) -> None:
        for each in self._operators:
            each.kill()
        for kind, name in (("ClusterRoleBinding", "operator"), ("ClusterRole", "operator"), ("ClusterRole", "driver")):
            if self.kube.find(kind, f"{name}-{self.namespace}"):
                self.kube.delete(kind, f"{name}-{self.namespace}")

    def _here(self, right: Right) -> Right:
        """On the driver's role of this place, where it is on that."""
        return replace(right, name=self._names.get(right.name, right.name)) if right.name else right

    def _may(self, right: Right) -> bool:
        right = self._here(right)
        resource, _, subresource = right.resource.partition("/")
        attributes = {
            "namespace": self.namespace,
            "verb": right.verb,
            "group": right.group,
            "resource": resource,
            "subresource": subresource,
            "name": right.name or "",
        }
        user = {"user": f"system:serviceaccount:{self.namespace}:{ACCOUNT}", "resourceAttributes": attributes}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {}, "spec": user}
        return bool(self.kube.create(review)["status"]["allowed"])


@cache
def chart_roles(component: str) -> list[Json]:
    """Roles and ClusterRoles of the chart, for the operator or for drivers."""
    values = ["--values", CHART / "ci" / "minimal.yaml", "--set", "operator.reportBy=Proxy"]
    command = [helm_program(), "template", "s3sink", CHART, *values]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True)
    documents = [each for each in yaml.safe_load_all(done.stdout) if each and "rules" in each]
    return [each for each in documents if each["metadata"]["labels"].get("app.kubernetes.io/component") == component]


@pytest.fixture(scope="module")
def given() -> list[Right]:
    """All that the chart gives the operator, asked through the API server's proxy too; once each."""
    return list(dict.fromkeys(right for role in chart_roles("operator") for right in rights_of(role["rules"])))


@pytest.fixture
def place(control_plane: Cluster, kube: Kube, harness: Harness, tmp_path: Path, given: list[Right]) -> Iterator[Place]:
    with harness.playing():
        made = Place(control_plane, Operated(kube, harness), tmp_path, given)
        yield made
        made.end()


Life = Callable[[Place], Operator]


def starts(place: Place) -> Operator:
    """A sink that is to start."""
    process = place.begin()
    place.operated.apply()
    return process


def starts_executors(place: Place) -> Operator:
    """A sink whose driver creates executors."""
    process = place.begin()
    place.operated.apply(executor={"mode": "Cluster"})
    return process


def gives_up_executors(place: Place) -> Operator:
    """A sink that changes to Local mode."""
    process = starts_executors(place)
    place.operated.kube.wait("RoleBinding", CHILD, bool)
    place.operated.apply()
    return process


def starts_unnamed(place: Place) -> Operator:
    """An operator without a cluster id."""
    return place.begin("--cluster-id", "")


def leads(place: Place) -> Operator:
    """One of several replicas."""
    return place.begin("--lease-namespace", place.namespace, "--lease-name", LEASE)


def publishes(place: Place) -> Operator:
    """A sink with something to do before it may go."""
    process = place.begin()
    place.operated.apply(deletionPolicy="Publish")
    return process


def restarts(place: Place) -> Operator:
    """A sink whose driver is to be another one."""
    process = place.begin()
    place.operated.started()
    place.operated.annotate(restart="1")
    return process


def grows(place: Place) -> Operator:
    """A sink that needs more memory than it has."""
    process = place.begin()
    place.operated.started()
    place.operated.harness.report(DRIVER, report(memory=MUCH))
    return process


def asks_by_proxy(place: Place) -> Operator:
    """An operator outside of the cluster."""
    process = place.begin("--report-by", "Proxy")
    place.operated.apply()
    return process


def waits(place: Place) -> Operator:
    """A driver whose volumes cannot be mounted."""
    harness = place.operated.harness
    harness.at_start(DRIVER, lambda pod: harness.waiting(pod, "ContainerCreating"))
    return starts(place)


@dataclass(frozen=True)
class Case:
    """What becomes of a life without a right: the condition `kind`, its reason and what it says, or the log's words."""

    right: Right
    life: Life
    says: str
    kind: str = "log"
    reason: str = ""

    def __str__(self) -> str:
        return str(self.right)


def _log(group: str, resource: str, verb: str, life: Life = starts, *, says: str = "", name: str | None = None) -> Case:
    return Case(Right(group, resource, verb, name), life, says or f'cannot {verb} resource "{resource}"')


def _reported(
    group: str,
    resource: str,
    verb: str,
    life: Life = starts,
    *,
    kind: str = "Ready",
    name: str | None = None,
    says: str = "",
) -> Case:
    right = Right(group, resource, verb, name)
    return Case(right, life, says or f'cannot {verb} resource "{resource}"', kind, "OperatorPermissionDenied")


CASES = [
    *(_log(S3, "s3sinks", verb) for verb in ("get", "list", "watch")),
    _reported(S3, "s3sinks", "patch", publishes, kind="WriteRejected"),
    _log(S3, "s3sinks/status", "patch"),
    *(_log("", kind, verb) for kind in ("configmaps", "serviceaccounts") for verb in ("get", "list", "watch")),
    *(_reported("", kind, verb) for kind in ("configmaps", "serviceaccounts") for verb in ("create", "patch")),
    *(_log(RBAC_GROUP, "rolebindings", verb) for verb in ("get", "list", "watch")),
    *(_reported(RBAC_GROUP, "rolebindings", verb, starts_executors) for verb in ("create", "patch")),
    _reported(RBAC_GROUP, "rolebindings", "delete", gives_up_executors, kind="WriteRejected"),
    _reported(
        RBAC_GROUP,
        "clusterroles",
        "bind",
        starts_executors,
        name="s3sink-driver",
        says="attempting to grant RBAC permissions",
    ),
    *(_log("", "pods", verb) for verb in ("get", "list", "watch")),
    _reported("", "pods", "create"),
    _reported("", "pods", "delete", restarts, kind="WriteRejected"),
    _reported("", "pods/resize", "patch", grows, kind="WriteRejected"),
    Case(
        Right("", "pods/proxy", "get"), asks_by_proxy, 'cannot get resource "pods/proxy"', "Ready", "ReportUnreachable"
    ),
    _log("", "events", "create"),
    _log("", "events", "list", waits),
    *(_log("", "nodes", verb, says="no permission to watch nodes") for verb in ("list", "watch")),
    _log("", "namespaces", "get", starts_unnamed, says="set --cluster-id", name="kube-system"),
    *(_log(COORDINATION, "leases", verb, leads, name=LEASE) for verb in ("get", "update")),
    _log(COORDINATION, "leases", "create", leads),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_missing_permission_of_the_operator_is_named(place: Place, case: Case) -> None:
    place.without(case.right)
    process = case.life(place)
    if case.kind == "log":
        wait_until(lambda: any(case.says in each for each in process.troubles()), f"log: {case.says}", seconds=60)
        return

    def is_reported(sink: Json) -> bool:
        said = condition(sink, case.kind)
        return said.get("reason") == case.reason and case.says in said["message"]

    place.operated.wait(is_reported, case.says)


def test_the_chart_grants_the_required_permissions_only(given: list[Right]) -> None:
    assert {case.right for case in CASES} == set(given)


def test_the_permissions_of_the_chart_suffice_for_the_whole_life_of_a_sink(place: Place) -> None:
    place.without()
    process, operated = leads(place), place.operated
    before = operated.started(deletionPolicy="Publish")
    operated.apply(deletionPolicy="Publish", rotation={"flushSize": 200})
    operated.next_driver(before)
    operated.wait_ready()
    operated.harness.report(DRIVER, report(memory=MUCH))
    operated.wait(lambda sink: "lastChange" in sink["status"]["memory"], "more memory")
    operated.apply(deletionPolicy="Publish", rotation={"flushSize": 200}, state="Stopped")
    operated.wait_reason("Stopped")
    operated.apply(deletionPolicy="Publish", executor={"mode": "Cluster"})
    operated.kube.wait("RoleBinding", CHILD, bool)
    operated.started(deletionPolicy="Publish")
    operated.kube.wait_gone("RoleBinding", CHILD)
    operated.kube.delete("S3Sink", SINK)
    operated.wait_gone()
    assert process.running()
    assert not process.troubles()
