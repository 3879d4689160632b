"""What helm makes of the chart: the operator as its page says, with the rights it needs and no more."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from s3sink_operator import command_line, names, objects
from s3sink_operator.names import Component
from s3sink_operator.types import Settings
from sink_job.api.parser import parse_sink
from tests.support.chart import EVERYTHING, MINIMAL, PROMETHEUS, Helm, Json, Rendered
from tools.chart import CHART, CRD, ROOT

pytestmark = pytest.mark.cluster

Template = Callable[..., Rendered]
RULE = tuple[str, str, str, str]
OPERATOR = {
    ("s3sink.io", "s3sinks", "", "get list watch patch"),
    ("s3sink.io", "s3sinks/status", "", "patch"),
    ("", "configmaps", "", "get list watch create patch"),
    ("", "serviceaccounts", "", "get list watch create patch"),
    ("rbac.authorization.k8s.io", "rolebindings", "", "get list watch create patch delete"),
    ("rbac.authorization.k8s.io", "clusterroles", "s3sink-driver", "bind"),
    ("", "pods", "", "get list watch create delete"),
    ("", "pods/resize", "", "patch"),
    ("", "events", "", "list create"),
}
CLUSTER = {("", "nodes", "", "list watch"), ("", "namespaces", "kube-system", "get")}
PROXY = {("", "pods/proxy", "", "get")}
LEASE = {
    ("coordination.k8s.io", "leases", "", "create"),
    ("coordination.k8s.io", "leases", "s3sink-operator", "get update"),
}
DRIVER = {
    ("", "pods", "", "get list watch create delete deletecollection"),
}


def rules(role: Json) -> set[RULE]:
    """A role's rules, one for each resource: group, resource, name, verbs."""
    return {
        (group, resource, name, " ".join(rule["verbs"]))
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
    }


def container(objects: Rendered) -> Json:
    found: Json = objects.one("Deployment")["spec"]["template"]["spec"]["containers"][0]
    return found


def pods(objects: Rendered) -> Iterator[Json]:
    yield objects.one("Deployment")["spec"]["template"]["spec"]
    yield objects.one("Pod")["spec"]


def matches(selector: Json, labels: dict[str, str]) -> bool:
    return set(selector["matchLabels"].items()) <= set(labels.items())


@pytest.mark.parametrize("values", sorted((CHART / "ci").glob("*.yaml")), ids=lambda path: path.stem)
def test_helm_lint_finds_nothing(helm: Helm, values: Any) -> None:
    done = helm("lint", "--strict", CHART, "--values", values)
    if values == EVERYTHING:  # lint knows no cluster, so the Prometheus operator is absent
        off = ["serviceMonitor", "podMonitor", "prometheusRule"]
        flags = [word for name in off for word in ("--set", f"{name}.enabled=false")]
        done = helm("lint", "--strict", CHART, "--values", values, *flags)
    assert done.returncode == 0, done.stdout + done.stderr


def test_unknown_values_are_rejected(helm: Helm) -> None:
    done = helm("template", "s3sink", CHART, "--values", MINIMAL, "--set", "replica=2")
    assert done.returncode != 0
    assert "replica" in done.stderr


@pytest.mark.parametrize("image", ["image", "jobImage"])
def test_a_missing_image_is_reported_with_the_one_to_build(helm: Helm, image: str) -> None:
    done = helm("template", "s3sink", CHART, "--values", MINIMAL, "--set", f"{image}.repository=")
    assert f"{image}.repository is required" in done.stderr


def test_the_operator_is_started_with_flags_that_it_knows(template: Template) -> None:
    parser = argparse.ArgumentParser()
    command_line.add_arguments(parser)
    command, *words = container(template(EVERYTHING))["args"]
    assert command == "operator"
    flags = parser.parse_args(words)
    assert flags.namespace == ["orders", "payments"]
    assert flags.selector == "team=lake"
    assert flags.image == "registry.example.com/s3sink-job:1.2.3"
    assert flags.cluster_id == "production"
    assert (flags.lease_namespace, flags.lease_name) == ("ops", "s3sink-operator")
    assert (flags.report_by, flags.log, flags.resync) == ("Proxy", "text", "1m")
    assert flags.image_pull_policy == "Always"
    assert flags.namespace_memory == "128Mi"


OPENSHIFT = (*PROMETHEUS, "--api-versions", "security.openshift.io/v1")


@pytest.mark.parametrize(
    ("openshift", "arguments", "leaves"),
    [
        ("Auto", PROMETHEUS, False),
        ("Auto", OPENSHIFT, True),
        ("Enabled", PROMETHEUS, True),
        ("Disabled", OPENSHIFT, False),
    ],
)
def test_uids_are_left_to_a_cluster_that_assigns_them(
    template: Template, openshift: str, arguments: tuple[str, ...], leaves: bool
) -> None:
    made = template(MINIMAL, f"openshift={openshift}", arguments=arguments)
    for pod in pods(made):
        assert ("runAsUser" not in pod["securityContext"]) is leaves
        assert ("fsGroup" not in pod["securityContext"]) is leaves
        assert pod["securityContext"]["runAsNonRoot"] is True
    parser = argparse.ArgumentParser()
    command_line.add_arguments(parser)
    assert parser.parse_args(container(made)["args"][1:]).run_as_user == ("Cluster" if leaves else "10001")


def test_the_defaults_leave_to_the_operator_what_is_empty(template: Template) -> None:
    words = container(template())["args"]
    assert not [word for word in words if word.startswith(("--namespace=", "--selector", "--cluster-id"))]


def test_an_image_is_named_by_digest_before_tag_before_the_charts_version(template: Template) -> None:
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    assert container(template())["image"] == f"registry.example.com/s3sink-operator:{version}"
    assert container(template(MINIMAL, "image.tag=1.2.3"))["image"].endswith(":1.2.3")
    assert container(template(MINIMAL, "image.tag=20261124"))["image"].endswith(":20261124")
    digest = f"sha256:{'a' * 64}"
    assert container(template(EVERYTHING))["image"] == f"registry.example.com/s3sink-operator@{digest}"


def test_a_new_operator_is_ready_before_the_old_one_ends(template: Template) -> None:
    spec = template().one("Deployment")["spec"]
    rolling = {"maxSurge": 1, "maxUnavailable": 0}
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "RollingUpdate", "rollingUpdate": rolling})


def test_the_admission_policies_follow_the_restrictions(template: Template) -> None:
    kind = "ValidatingAdmissionPolicy"
    assert [each["metadata"]["name"] for each in template().of(kind)] == [
        "ops-s3sink-operator-sinks",
        "ops-s3sink-operator-pods",
    ]
    for value in ("sinkRestrictions.enabled=false", "sinkRestrictions.admissionPolicy=false"):
        assert not template(MINIMAL, value).of(kind)
    assert not template(MINIMAL, arguments=(*PROMETHEUS, "--kube-version", "1.29.3")).of(kind)
    for binding in template(EVERYTHING).of(f"{kind}Binding"):
        (labels,) = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
        assert (labels["operator"], labels["values"]) == ("In", ["orders", "payments"])


def test_the_liveness_probe_reads_the_heartbeat(template: Template) -> None:
    found = container(template())
    assert {probe: found[probe]["httpGet"]["path"] for probe in found if probe.endswith("Probe")} == {
        "startupProbe": "/healthz",
        "livenessProbe": "/healthz",
        "readinessProbe": "/readyz",
    }


def test_every_pod_satisfies_the_restricted_profile_with_a_root_that_is_read_only(template: Template) -> None:
    for pod in pods(template(EVERYTHING)):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for each in pod["containers"]:
            assert each["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert each["resources"]["limits"]["memory"]


def test_the_operator_has_the_permissions_of_its_page(template: Template) -> None:
    made = template()
    assert rules(made.one("ClusterRole", "ops-s3sink-operator")) == OPERATOR | CLUSTER
    assert rules(made.one("Role", "s3sink-operator-lease", "ops")) == LEASE
    assert rules(made.one("ClusterRole", "s3sink-driver")) == DRIVER
    assert len(made.of("Role")) == 1


def test_with_namespaces_it_may_do_so_in_these_alone(template: Template) -> None:
    made = template(EVERYTHING)
    assert rules(made.one("ClusterRole", "ops-s3sink-operator")) == CLUSTER - {("", "namespaces", "kube-system", "get")}
    for namespace in ("orders", "payments"):
        assert rules(made.one("Role", "s3sink-operator", namespace)) == OPERATOR | PROXY
        binding = made.one("RoleBinding", "s3sink-operator", namespace)
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "s3sink-operator", "namespace": "ops"}]


def test_no_role_reads_secrets_or_takes_everything(template: Template) -> None:
    for values in (MINIMAL, EVERYTHING):
        made = template(values)
        every = {rule for role in made.of("Role") + made.of("ClusterRole") for rule in rules(role)}
        assert not {rule for rule in every if "*" in "".join(rule) or rule[1].startswith("secrets")}


def test_every_bound_role_and_service_account_is_created(template: Template) -> None:
    made = template(EVERYTHING)
    for binding in made.of("RoleBinding") + made.of("ClusterRoleBinding"):
        role = binding["roleRef"]
        assert made.of(role["kind"], role["name"], binding["metadata"].get("namespace"))
        assert [made.one("ServiceAccount", each["name"], each["namespace"]) for each in binding["subjects"]]


def test_the_role_of_drivers_is_the_one_that_the_operator_may_bind(template: Template) -> None:
    made = template(MINIMAL, "driverClusterRole.name=other")
    assert made.one("ClusterRole", "other")
    assert "--driver-cluster-role=other" in container(made)["args"]
    bind = {rule for rule in rules(made.one("ClusterRole", "ops-s3sink-operator")) if rule[3] == "bind"}
    assert bind == {("rbac.authorization.k8s.io", "clusterroles", "other", "bind")}


def test_the_crd_is_the_plain_one_and_is_kept(template: Template) -> None:
    found = template().one("CustomResourceDefinition")
    assert found == yaml.safe_load(CRD.read_text())
    assert found["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


def test_the_crd_can_be_given_up_or_left_out(template: Template) -> None:
    given_up = template(MINIMAL, "crds.keep=false").one("CustomResourceDefinition")
    assert "annotations" not in given_up["metadata"]
    assert given_up["spec"] == yaml.safe_load(CRD.read_text())["spec"]
    assert not template(MINIMAL, "crds.enabled=false").of("CustomResourceDefinition")


def test_the_strategy_of_the_operator_can_be_recreate(template: Template) -> None:
    made = template(MINIMAL, "strategy.type=Recreate")
    assert made.one("Deployment")["spec"]["strategy"] == {"type": "Recreate"}


def test_volumes_and_objects_can_be_added(template: Template) -> None:
    made = template(EVERYTHING)
    pod = made.one("Deployment")["spec"]["template"]["spec"]
    assert {"name": "company-ca", "configMap": {"name": "company-ca"}} in pod["volumes"]
    mount = {"name": "company-ca", "mountPath": "/etc/ssl/company", "readOnly": True}
    assert mount in pod["containers"][0]["volumeMounts"]
    assert made.one("ConfigMap", "s3sink-extra")["data"] == {"release": "s3sink"}
    assert made.one("ConfigMap", "s3sink-extra-text")


def test_a_disruption_budget_comes_with_the_second_replica(template: Template) -> None:
    assert not template().of("PodDisruptionBudget")
    made = template(MINIMAL, "replicaCount=2")
    budget, pod = made.one("PodDisruptionBudget")["spec"], made.one("Deployment")["spec"]["template"]
    assert (budget["minAvailable"], budget["unhealthyPodEvictionPolicy"]) == (1, "AlwaysAllow")
    assert matches(budget["selector"], pod["metadata"]["labels"])


def test_what_selects_the_operator_selects_its_pod_and_no_sinks(template: Template) -> None:
    made = template(EVERYTHING, "podLabels.team=lake")
    labels = made.one("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert labels["team"] == "lake"
    selectors = [
        made.one("Deployment")["spec"]["selector"],
        {"matchLabels": made.one("Service")["spec"]["selector"]},
        made.one("NetworkPolicy", "s3sink-operator")["spec"]["podSelector"],
    ]
    sink = names.pod_labels("flights", Component.DRIVER, 1)
    assert all(matches(each, labels) and not matches(each, sink) for each in selectors)
    assert matches(made.one("ServiceMonitor")["spec"]["selector"], made.one("Service")["metadata"]["labels"])


def test_the_network_policy_of_sinks_covers_their_pods_in_each_namespace(template: Template) -> None:
    made = template(EVERYTHING)
    for namespace in ("orders", "payments"):
        selector = made.one("NetworkPolicy", namespace=namespace)["spec"]["podSelector"]
        for component in (Component.DRIVER, Component.EXECUTOR, Component.OPERATION):
            assert matches(selector, names.pod_labels("flights", component, 1))
    assert len(template(MINIMAL, "networkPolicy.sinks.enabled=true").of("NetworkPolicy", namespace="ops")) == 2
    assert [each["metadata"]["name"] for each in template().of("NetworkPolicy")] == ["s3sink-operator"]


def test_drivers_and_executors_reach_each_other_kafka_s3_dns_and_the_api_server(template: Template) -> None:
    spec = template(EVERYTHING).one("NetworkPolicy", namespace="orders")["spec"]
    ports = {port["port"] for rule in spec["egress"] for port in rule.get("ports", ())}
    assert ports == {53, 443, 6443, 9092, 9093, 80}
    among = {"podSelector": spec["podSelector"]}
    assert {"from": [among]} in spec["ingress"]
    assert {"to": [among]} in spec["egress"]


def test_the_report_of_a_driver_may_be_read_by_the_operator_and_by_prometheus(template: Template) -> None:
    made = template(EVERYTHING)
    (report,) = [rule for rule in made.one("NetworkPolicy", namespace="orders")["spec"]["ingress"] if rule.get("ports")]
    assert [port["port"] for port in report["ports"]] == [Settings(image="", cluster_id="").report_port]
    prometheus, operator = report["from"]
    assert prometheus["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "monitoring"}
    labels = made.one("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert matches(operator["podSelector"], labels)
    assert operator["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "ops"}
    (out,) = [rule for rule in template().one("NetworkPolicy")["spec"]["egress"] if "to" in rule]
    assert matches(out["to"][0]["podSelector"], names.pod_labels("flights", Component.DRIVER, 1))


def test_the_pod_monitor_reads_the_port_that_drivers_have(template: Template) -> None:
    spec = template(EVERYTHING).one("PodMonitor")["spec"]
    manifest = yaml.safe_load((ROOT / "examples" / "minimal.yaml").read_text())
    manifest["metadata"]["namespace"] = "orders"
    shape = objects.PodShape(attempt=1, memory=1 << 30, spec_hash="")
    owner = {"name": "minimal", "uid": "1"}
    driver = objects.driver_pod(parse_sink(manifest), owner, Settings(image="it", cluster_id="c"), shape)
    assert matches(spec["selector"], driver["metadata"]["labels"])
    endpoint, partitions = spec["podMetricsEndpoints"]
    assert partitions == endpoint | {"path": "/metrics/partitions"}
    assert endpoint["port"] in {port["name"] for port in driver["spec"]["containers"][0]["ports"]}
    label = endpoint["relabelings"][0]["sourceLabels"][0].removeprefix("__meta_kubernetes_pod_label_")
    assert label == names.SINK_LABEL.replace(".", "_").replace("/", "_")
    token = endpoint["relabelings"][-1]
    assert token["targetLabel"] == "__param_token"
    annotation = token["sourceLabels"][0].removeprefix("__meta_kubernetes_pod_annotation_")
    assert annotation == re.sub("[^a-z0-9]", "_", names.REPORT_TOKEN_ANNOTATION)
    assert spec["namespaceSelector"] == {"matchNames": ["orders", "payments"]}


def test_the_series_of_topic_partitions_can_be_switched_off(template: Template) -> None:
    made = template(EVERYTHING, "podMonitor.partitionSeries=false")
    assert [each["path"] for each in made.one("PodMonitor")["spec"]["podMetricsEndpoints"]] == ["/metrics"]


def test_the_namespace_of_a_sink_is_not_replaced_by_that_of_the_operator(template: Template) -> None:
    (endpoint,) = template(EVERYTHING).one("ServiceMonitor")["spec"]["endpoints"]
    assert endpoint["honorLabels"] is True


@pytest.mark.parametrize("what", ["serviceMonitor", "podMonitor", "prometheusRule"])
def test_a_missing_prometheus_operator_is_reported(helm: Helm, what: str) -> None:
    done = helm("template", "s3sink", CHART, "--values", MINIMAL, "--set", f"{what}.enabled=true")
    assert f"{what}.enabled needs the Prometheus operator" in done.stderr


def test_alerts_carry_the_thresholds_and_leave_templates_to_prometheus(template: Template) -> None:
    made = template(EVERYTHING, "prometheusRule.lagRecords=5000000", "prometheusRule.alertLabels.team=lake")
    (group,) = made.one("PrometheusRule")["spec"]["groups"]
    alerts = {alert["alert"]: alert for alert in group["rules"]}
    assert "> 5000000 and" in alerts["S3SinkLagGrowing"]["expr"]
    assert alerts["S3SinkDataLoss"]["labels"] == {"severity": "critical", "team": "lake"}
    summary = alerts["S3SinkDataLoss"]["annotations"]["summary"]
    assert summary.startswith("{{ $labels.namespace }}/{{ $labels.sink }} ")
    assert 'namespace="ops"' in alerts["S3SinkOperatorDown"]["expr"]
    assert not [alert for alert in alerts.values() if "{{" in alert["expr"] or "\n" in alert["expr"].strip()]


def test_alerts_about_the_operator_need_its_metrics(template: Template) -> None:
    made = template(MINIMAL, "prometheusRule.enabled=true", "podMonitor.enabled=true")
    names_of = {alert["alert"] for alert in made.one("PrometheusRule")["spec"]["groups"][0]["rules"]}
    assert "S3SinkDataLoss" in names_of
    assert "S3SinkOperatorDown" not in names_of


def test_the_dashboard_is_unchanged_and_has_the_label_of_grafana(template: Template) -> None:
    found = template(EVERYTHING).one("ConfigMap", "s3sink-operator-dashboard")
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert found["data"]["s3sink.json"] == (CHART / "files" / "dashboard.json").read_text().strip()


def test_what_is_optional_is_off(template: Template) -> None:
    kinds = {each["kind"] for each in template()}
    assert not kinds & {"ServiceMonitor", "PodMonitor", "PrometheusRule", "ConfigMap", "Secret"}


def test_every_object_has_the_common_labels_and_its_namespace(template: Template) -> None:
    policy = "ValidatingAdmissionPolicy"
    in_cluster = {"ClusterRole", "ClusterRoleBinding", policy, f"{policy}Binding"}
    extra = {"s3sink-extra", "s3sink-extra-text"}  # the objects of users
    for each in template(EVERYTHING):
        metadata = each["metadata"]
        if each["kind"] == "CustomResourceDefinition" or metadata["name"] in extra:
            continue
        assert metadata["labels"]["app.kubernetes.io/instance"] == "s3sink", metadata["name"]
        assert metadata["labels"]["team"] == "lake", metadata["name"]
        assert ("namespace" in metadata) == (each["kind"] not in in_cluster), metadata["name"]


def test_names_fit_whatever_the_release_is_called(template: Template) -> None:
    made = template(MINIMAL, f"fullnameOverride={'x' * 80}", "grafanaDashboard.enabled=true")
    assert all(len(each["metadata"]["name"]) <= 63 for each in made)


def test_helm_test_reaches_the_operator_by_its_service(template: Template) -> None:
    made = template()
    pod, service = made.one("Pod"), made.one("Service")
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    address = f"http://{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"
    assert address in pod["spec"]["containers"][0]["args"][0]
    compile(pod["spec"]["containers"][0]["args"][0], "test", "exec")


def keys(node: yaml.Node | None) -> Iterator[tuple[str, list[str]]]:
    """The keys of each mapping of a document, with duplicates, and the first of them."""
    if isinstance(node, yaml.MappingNode):
        found = [str(key.value) for key, _ in node.value]
        yield found[0] if found else "", found
    inner = [each for pair in node.value for each in pair] if isinstance(node, yaml.MappingNode) else []
    for each in inner or (node.value if isinstance(node, yaml.SequenceNode) else ()):
        yield from keys(each)


def test_a_label_of_all_objects_and_of_a_monitor_is_rendered_once_and_that_of_the_monitor_wins(helm: Helm) -> None:
    objects = ("serviceMonitor", "podMonitor", "prometheusRule", "grafanaDashboard")
    sets = ["commonLabels.release=common", *(f"{each}.labels.release=own" for each in objects)]
    flags = [word for each in sets for word in ("--set", each)]
    done = helm("template", "s3sink", CHART, "--values", EVERYTHING, *flags, *PROMETHEUS)
    assert done.returncode == 0, done.stderr
    for document in yaml.compose_all(done.stdout, yaml.SafeLoader):
        for first, found in keys(document):
            assert len(found) == len(set(found)), f"{first}: {found}"
    made = [each for each in yaml.safe_load_all(done.stdout) if each]
    kinds = ("ServiceMonitor", "PodMonitor", "PrometheusRule")
    assert [each["metadata"]["labels"]["release"] for each in made if each["kind"] in kinds] == ["own"] * 3


@pytest.mark.parametrize("section", ["kafka", "s3"])
@pytest.mark.parametrize("value", ["null", "ports=null"])
def test_an_egress_rule_that_would_allow_all_is_rejected(helm: Helm, section: str, value: str) -> None:
    path = f"networkPolicy.sinks.{section}"
    setting = f"{path}=null" if value == "null" else f"{path}.{value}"
    flags = ("--set", "networkPolicy.sinks.enabled=true", "--set", setting)
    done = helm("template", "s3sink", CHART, "--values", MINIMAL, *flags)
    assert done.returncode != 0
    assert path in done.stderr.replace("/", ".")
