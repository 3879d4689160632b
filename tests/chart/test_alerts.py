"""The alerts of the chart in Prometheus' own rule engine: promtool checks the rules and runs the tests of alerts/."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.support.chart import EVERYTHING, Json, Rendered

pytestmark = pytest.mark.cluster
TESTS = sorted((Path(__file__).parent / "alerts").glob("*.yaml"))
FIRES = re.compile(r'alertname="(\w+)", alertstate="firing"')

METRIC = re.compile(r"\bs3sink_\w+(?=[{ )[]|$)|\bup(?={)")


@pytest.fixture(scope="module")
def group(template: Callable[..., Rendered]) -> Json:
    """The group of rules that the chart renders."""
    (found,) = template(EVERYTHING, "serviceMonitor.enabled=true").one("PrometheusRule")["spec"]["groups"]
    return dict(found)


@pytest.fixture(scope="module")
def rules(group: Json, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rules as Prometheus reads them from a file."""
    path = tmp_path_factory.mktemp("alerts") / "rules.yaml"
    bare = [rule | {"labels": {"severity": rule["labels"]["severity"]}} for rule in group["rules"]]
    path.write_text(yaml.safe_dump({"groups": [group | {"rules": bare}]}))
    return path


def test_each_alert_links_its_heading_about_failures_if_the_chart_has_the_url(
    template: Callable[..., Rendered],
) -> None:
    url = "https://docs.example.com/failure-modes/"
    values = ("serviceMonitor.enabled=true", f"prometheusRule.runbookUrl={url}")
    (group,) = template(EVERYTHING, *values).one("PrometheusRule")["spec"]["groups"]
    links = [rule["annotations"]["runbook_url"] for rule in group["rules"]]
    assert [link for link in links if not re.fullmatch(re.escape(url) + r"#[a-z0-9-]+", link)] == []


def run(promtool: Path, *arguments: str | Path) -> str:
    """The output of promtool, which must find nothing."""
    command = [str(promtool), *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_promtool_finds_nothing_wrong_in_the_alerts(promtool: Path, rules: Path, group: Json) -> None:
    assert f"{len(group['rules'])} rules found" in run(promtool, "check", "rules", "--lint=all", "--lint-fatal", rules)


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_the_alerts_fire_when_they_should_and_at_no_other_time(promtool: Path, rules: Path, path: Path) -> None:
    (rules.parent / path.name).write_text(path.read_text())
    run(promtool, "test", "rules", rules.parent / path.name)


def test_each_alert_has_a_test_in_which_it_fires(group: Json) -> None:
    fired = {name for path in TESTS for name in FIRES.findall(path.read_text())}
    assert fired == {rule["alert"] for rule in group["rules"]}


def test_each_alert_has_a_test_in_which_its_series_exist_and_it_does_not_fire(group: Json) -> None:
    silent = set()
    for case in (case for path in TESTS for case in yaml.safe_load(path.read_text())["tests"]):
        metrics = {metric for each in case["input_series"] for metric in METRIC.findall(each["series"])}
        for moment in case["promql_expr_test"]:
            fired = {name for sample in moment["exp_samples"] for name in FIRES.findall(sample["labels"])}
            silent |= {rule["alert"] for rule in group["rules"] if set(METRIC.findall(rule["expr"])) <= metrics} - fired
    assert silent == {rule["alert"] for rule in group["rules"]}
