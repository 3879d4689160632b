"""The files of the chart: identical copies, documented values, existing metrics."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from s3sink_operator.metrics import REGISTRY
from s3sink_operator.status.status_metrics import FAMILIES, PREFIX
from tools import chart

ROOT = chart.ROOT
CHART = chart.CHART
DASHBOARD = CHART / "files" / "dashboard.json"
ALERTS = CHART / "files" / "alerts.yaml"
VALUES = (CHART / "values.yaml").read_text()
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
NAME = re.compile(r"\bs3sink_[a-z0-9_]+\b")
LABELS = {"s3sink_state"}  # a metric too


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def known_metrics() -> set[str]:
    """Those of the job, as docs/metrics.md names them, and the operator's, as Prometheus sees them."""
    named = set(NAME.findall((ROOT / "docs" / "metrics.md").read_text()))
    found = {name for name in named if not name.startswith(("s3sink_operator_", "s3sink_status_"))}
    found |= {PREFIX + name for name in FAMILIES}
    found |= {f"{name}{suffix}" for name in found if name.endswith("_seconds") for suffix in ("_sum", "_count")}
    endings = {"counter": ["_total"], "gauge": [""], "info": ["_info"], "histogram": ["_bucket", "_sum", "_count"]}
    for family in REGISTRY.collect():
        found |= {family.name + ending for ending in endings[family.type]}
    return found


@pytest.mark.parametrize("path", chart.outputs(), ids=lambda path: path.name)
def test_a_generated_file_is_up_to_date(path: Path) -> None:
    assert path.read_text() == chart.outputs()[path], "run `make chart`"


def test_the_crd_of_the_chart_is_identical_and_has_the_keep_policy() -> None:
    assert (CHART / "files" / "crd.yaml").read_bytes() == chart.CRD.read_bytes()
    # The very line that crds.keep=false takes out.
    assert "  annotations: {helm.sh/resource-policy: keep}\n" in chart.CRD.read_text()


def test_every_value_is_described() -> None:
    assert chart.undocumented(VALUES) == []


def test_a_description_belongs_to_the_next_key_and_may_have_several_lines() -> None:
    text = "# no description\na:\n  # -- First.\n  # Second.\n  b: 1\nc: {}\n"
    assert list(chart.documented(text)) == [chart.Value("a.b", 1, "First. Second.")]
    assert chart.undocumented(text) == ["c"]


def test_the_schema_is_valid_and_accepts_the_defaults_and_both_sets_of_values() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    for values in (CHART / "values.yaml", *(CHART / "ci").iterdir()):
        jsonschema.Draft7Validator(SCHEMA).validate(load(values))


def properties(schema: dict[str, Any]) -> dict[str, Any]:
    """Every path that the schema names, each mapping's keys below it."""
    found = {}
    for key, inner in schema.get("properties", {}).items():
        target = SCHEMA["definitions"][inner["$ref"].rpartition("/")[2]] if "$ref" in inner else inner
        found[key] = properties(target) if "properties" in target else None
    return found


def test_the_schema_names_the_same_values_as_the_defaults() -> None:
    def same(named: dict[str, Any], given: dict[str, Any], path: str) -> None:
        optional = {"global", "pullPolicy", "to"} if path != "image" else set()
        assert {*given} <= {*named}, path
        assert {*named} - {*given} <= optional, path
        for key, inner in named.items():
            if inner is not None and isinstance(given.get(key), dict):
                same(inner, given[key], f"{path}.{key}".strip("."))

    same(properties(SCHEMA), yaml.safe_load(VALUES), "")


OPEN_RULES: list[dict[str, Any]] = [{}, {"ports": []}, {"to": []}, {"to": [{}]}, {"to": [], "ports": []}]
"""Egress rules that allow all."""


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"replica": 1}, id="a misspelt value"),
        pytest.param({"image": {"digest": "sha256:abc"}}, id="a digest that is too short"),
        pytest.param({"image": {"repository": "registry.example.com/it:latest"}}, id="a tag in the repository"),
        pytest.param({"operator": {"resync": "5"}}, id="a duration without unit"),
        pytest.param({"operator": {"namespaceMemory": "1h"}}, id="a duration instead of a size"),
        pytest.param({"operator": {"port": 80}}, id="a port that needs root"),
        pytest.param({"watch": {"namespaces": "orders"}}, id="a text in place of a list"),
        pytest.param({"operator": {"reportBy": "Http"}}, id="an unknown way to read reports"),
        pytest.param({"fullnameOverride": "a.b_c"}, id="a name that no object can have"),
        pytest.param({"nameOverride": "S3Sink"}, id="a name in capitals"),
        pytest.param({"priorityClassName": "Foo_Bar"}, id="a class that cannot be"),
        pytest.param({"sinkDefaults": {"executor": {"mode": "Local"}}}, id="a default that only the CRD has"),
        pytest.param({"sinkDefaults": {"executor": {"cores": "2"}}}, id="a text in place of a number"),
        pytest.param({"sinkDefaults": {"s3": {"partSize": "5Mi"}}}, id="a default that would change objects"),
        *(
            pytest.param({"sinkDefaults": {"executor": {"memory": {"min": least}}}}, id=f"a minimum of {least}")
            for least in ("16Gi", "9G", "10000Mi", "1Ti", 16 << 30)
        ),
        *(
            pytest.param({value: {label: "x"}}, id=f"{value} with {label}")
            for value in ("podLabels", "commonLabels")
            for label in ("app.kubernetes.io/name", "app.kubernetes.io/component", "helm.sh/chart")
        ),
        pytest.param({"serviceMonitor": {"labels": {"app.kubernetes.io/instance": "x"}}}, id="a label of the chart"),
        pytest.param({"commonLabels": {"rbac.authorization.k8s.io/aggregate-to-edit": "x"}}, id="aggregation of roles"),
        pytest.param({"prometheusRule": {"alertLabels": {"severity": "x"}}}, id="a severity for all alerts"),
        pytest.param({"podAnnotations": {"s3sink.io/config-hash": "x"}}, id="an annotation of the chart"),
        *(
            pytest.param({"networkPolicy": {"sinks": {section: rule}}}, id=f"{section} with the empty rule {rule}")
            for section in ("kafka", "s3")
            for rule in OPEN_RULES
        ),
        pytest.param({"networkPolicy": {"sinks": {"extraEgress": [{}]}}}, id="an empty egress rule of sinks"),
        pytest.param({"networkPolicy": {"operator": {"extraEgress": [{}]}}}, id="an empty egress rule of the operator"),
        pytest.param({"networkPolicy": {"metricsFrom": [{}]}}, id="an empty peer"),
    ],
)
def test_the_schema_rejects(wrong: dict[str, Any]) -> None:
    # A registry's port is no tag: only what follows the last slash counts.
    assert not jsonschema.Draft7Validator(SCHEMA).is_valid(wrong)


def test_the_error_for_a_field_without_a_default_names_it() -> None:
    (error,) = jsonschema.Draft7Validator(SCHEMA).iter_errors({"sinkDefaults": {"executor": {"mode": "Local"}}})
    assert [*error.absolute_path] == ["sinkDefaults", "executor"]
    assert "'mode'" in error.message


@pytest.mark.parametrize(
    "memory",
    [{"min": "8Gi"}, {"min": "512Mi"}, {"min": 1 << 30}, {"min": "16Gi", "max": "32Gi"}, {"max": "1Gi"}],
    ids=str,
)
def test_the_schema_accepts_default_memory_in_order(memory: dict[str, Any]) -> None:
    jsonschema.Draft7Validator(SCHEMA).validate({"sinkDefaults": {"executor": {"memory": memory}}})


def test_an_egress_rule_may_have_all_ports_of_some_peers() -> None:
    rule = {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "ports": []}
    jsonschema.Draft7Validator(SCHEMA).validate({"networkPolicy": {"sinks": {"kafka": rule}}})


def test_labels_of_the_user_are_accepted() -> None:
    labels = {"team": "lake", "app.kubernetes.io/owner": "lake"}
    jsonschema.Draft7Validator(SCHEMA).validate({"podLabels": labels, "commonLabels": labels})


def test_a_registry_may_have_a_port() -> None:
    jsonschema.Draft7Validator(SCHEMA).validate({"image": {"repository": "registry.example.com:5000/s3sink-operator"}})


def test_no_value_takes_a_secret() -> None:
    words = re.compile(r"password|secret(?!s\b)|token|accesskey|credential", re.IGNORECASE)
    assert [it.path for it in chart.documented(VALUES) if words.search(it.path)] == []


def test_the_dashboard_shows_metrics_that_exist_each_panel_once() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    assert queries
    assert {name for query in queries for name in NAME.findall(query)} <= known_metrics()
    ids = [panel["id"] for panel in dashboard["panels"]]
    titles = [panel["title"] for panel in dashboard["panels"]]
    assert len({*ids}) == len(ids)
    assert len({*titles}) == len(titles)


def test_the_panels_of_the_dashboard_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells


def test_alerts_use_existing_metrics() -> None:
    named = set(NAME.findall("\n".join(re.findall(r"expr:(?:.|\n)*?(?=\n    (?:for|severity):)", ALERTS.read_text()))))
    assert named
    assert named <= known_metrics()


@pytest.mark.parametrize(
    "path", ["docs/helm.md", "docs/argocd.md", "docs/kubectl.md", "docs/metrics.md", "charts/s3sink-operator/README.md"]
)
def test_a_page_points_to_files_that_are_there(path: str) -> None:
    page = ROOT / path
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


NEEDS = {
    "abort_multipart_upload": "s3:AbortMultipartUpload",
    "complete_multipart_upload": "s3:PutObject",
    "create_multipart_upload": "s3:PutObject",
    "delete_objects": "s3:DeleteObject",
    "get_bucket_lifecycle_configuration": "s3:GetLifecycleConfiguration",
    "get_bucket_versioning": "s3:GetBucketVersioning",
    "get_object": "s3:GetObject",
    "get_object_lock_configuration": "s3:GetBucketObjectLockConfiguration",
    "get_object_tagging": "s3:GetObjectTagging",
    "head_object": "s3:GetObject",
    "list_multipart_uploads": "s3:ListBucketMultipartUploads",
    "list_object_versions": "s3:ListBucketVersions",
    "list_objects_v2": "s3:ListBucket",
    "list_parts": "s3:ListMultipartUploadParts",
    "put_object": "s3:PutObject",
    "put_object_tagging": "s3:PutObjectTagging",
    "upload_part": "s3:PutObject",
}
"""The right that S3 asks for with each call, by its Service Authorization Reference."""

ONLY_WITH_TAGS = {"s3:GetObjectTagging", "s3:PutObjectTagging"}
"""Rights that the page names below the sample."""


def iam_statements() -> list[dict[str, Any]]:
    text = (ROOT / "docs" / "helm.md").read_text()
    found: list[dict[str, Any]] = json.loads(re.findall(r"```json\n(.*?)```", text, re.DOTALL)[0])["Statement"]
    return found


def test_the_sample_of_an_iam_policy_allows_what_the_job_calls_and_no_more() -> None:
    sources = "\n".join(path.read_text() for path in (ROOT / "sink_job" / "s3").glob("*.py"))
    calls = set(re.findall(r"_transport\.(?:call|once|persist)\(\s*\"(\w+)\"", sources))
    assert calls == NEEDS.keys()
    allowed = [action for each in iam_statements() for action in each["Action"]]
    of_versions = {"s3:GetObjectVersion"} if 'params["VersionId"]' in sources else set()
    assert sorted(allowed) == sorted(({NEEDS[call] for call in calls} | of_versions) - ONLY_WITH_TAGS)
    page = (ROOT / "docs" / "helm.md").read_text()
    assert all(f"`{action}`" in page for action in ONLY_WITH_TAGS)


def test_the_sample_of_an_iam_policy_names_no_more_than_one_bucket() -> None:
    assert {resource for each in iam_statements() for resource in each["Resource"]} == {
        "arn:aws:s3:::BUCKET",
        "arn:aws:s3:::BUCKET/TOPICS_DIR/*",
    }
