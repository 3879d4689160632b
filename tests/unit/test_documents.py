"""Checks of the documentation against the code: every finding, exit code and connector key has a row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from sink_job.api import errors
from sink_job.api.field_errors import connector_key, dotted, every_field
from sink_job.api.parser import load_sink
from sink_job.api.spec import Spec
from sink_job.cli.simulate import simulate
from sink_job.verify.results import FindingType

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
SAMPLE = ROOT / "examples" / "flights-records.jsonl"


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def rows(name: str) -> Iterator[list[str]]:
    """The cells of each row of the page's tables."""
    for line in text(name).splitlines():
        if line.startswith("|"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def test_the_sample_for_scaling_by_lag_uses_metrics_of_the_driver_and_the_kind_of_the_sink() -> None:
    made = yaml.safe_load(text("examples/kubernetes/scale-by-lag.yaml"))
    target = made["spec"]["scaleTargetRef"]
    assert (target["apiVersion"], target["kind"]) == ("s3sink.io/v1alpha1", "S3Sink")
    documented = {row[0].strip("`") for row in rows("docs/metrics.md")}
    (trigger,) = made["spec"]["triggers"]
    assert set(re.findall(r"s3sink_\w+", trigger["metadata"]["query"])) <= documented


def anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize(
    "file", [*sorted((ROOT / ".github").rglob("*.y*ml")), ROOT / ".pre-commit-config.yaml"], ids=lambda file: file.name
)
def test_the_settings_of_the_repository_are_valid_yaml(file: Path) -> None:
    assert yaml.safe_load(file.read_text(encoding="utf-8"))


def test_every_alert_has_the_anchor_of_a_heading_about_failures_as_its_runbook() -> None:
    alerts = re.findall(r"- alert: (\w+)\n(?: +runbook: (.*)\n)?", text("charts/s3sink-operator/files/alerts.yaml"))
    headings = re.findall(r"(?m)^#+ (.+)$", text("docs/failure-modes.md"))
    anchors = {anchor(heading) for heading in headings}
    assert len(alerts) > 10
    assert [(name, runbook) for name, runbook in alerts if runbook not in anchors] == []


def test_every_failure_has_its_sign_and_what_shows_it() -> None:
    failures = re.findall(r"(?ms)^### ([^\n]+)\n(.*?)(?=^##|\Z)", text("docs/failure-modes.md"))
    described = {heading: re.findall(r"(?m)^- \*([^*]+)\*: \S", content) for heading, content in failures}
    in_runs = ["Seen", "Effect on data", "What to do", "Shown by"]
    in_cluster = ["Seen", "Action of the operator", "Shown by"]
    assert [heading for heading, rows in described.items() if rows not in ([], in_runs, in_cluster)] == []


@pytest.mark.parametrize("wrong", FindingType)
def test_every_finding_of_verify_has_a_row_with_its_exit_code_and_action(wrong: FindingType) -> None:
    found = [row for row in rows("docs/failure-modes.md") if row[0] == f"`{wrong}`"]
    assert [(row[1], bool(row[2] and row[3])) for row in found] == [(str(wrong.exit_code), True)]


def test_every_connector_key_has_a_row_with_its_field_in_the_migration_guide() -> None:
    documented = {(row[0].replace("`", ""), row[1].split("`")[1]) for row in rows("docs/migrating.md") if "`" in row[1]}
    expected = {
        (connector_key(field), dotted(path[1:])) for path, field in every_field(Spec, ("spec",)) if connector_key(field)
    }
    assert expected <= documented


def test_every_exit_code_has_a_row_in_the_command_line_page() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.SinkError)]
    assert {str(kind.exit_code) for kind in kinds} <= {row[0] for row in rows("docs/cli.md")}


def test_the_sample_of_simulate_closes_an_object_and_leaves_one_open() -> None:
    sink = load_sink(text("examples/flights.yaml"))
    _, last = simulate(sink, SAMPLE.read_bytes().splitlines(), name=SAMPLE.name)
    assert [len(each.offsets or ()) for each in last.closed] == [2]
    assert [list(each.path) for each in last.open] == [["year=2013", "month=02"]]
    assert last.errors == []


def test_the_command_line_page_contains_the_sample_of_simulate() -> None:
    assert SAMPLE.read_text(encoding="utf-8") in text("docs/cli.md")


def test_the_manifest_of_the_readme_is_valid() -> None:
    blocks = re.findall(r"(?s)```yaml\n(.*?)```", text("README.md"))
    assert [load_sink(block).name for block in blocks] == ["flights"]


def test_the_make_targets_of_the_quick_starts_exist() -> None:
    named = {name for page in ("README.md", "docs/demo.md") for name in re.findall(r"\bmake ([a-z-]+)", text(page))}
    assert {"demo", "demo-up", "demo-down", "demo-cluster"} <= named
    assert named <= set(re.findall(r"(?m)^([a-z-]+):.* ## ", text("Makefile")))


def test_the_index_of_the_examples_links_every_manifest() -> None:
    linked = set(re.findall(r"\]\(([^)\s]+)\)", text("examples/README.md")))
    folders = {link.rpartition("/")[0] for link in linked if link.endswith("/README.md")}
    manifests = {path.relative_to(ROOT / "examples") for path in (ROOT / "examples").rglob("*.yaml")}
    assert [str(path) for path in manifests if str(path) not in linked and str(path.parent) not in folders] == []


def test_the_readme_names_the_command_of_the_main_job_and_that_of_the_tests_before_its_first_heading() -> None:
    top = text("README.md").partition("\n## ")[0]
    assert {"demo", "test", "test-fast"} <= set(re.findall(r"`make ([a-z-]+)`", top))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_have_a_target(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if target.startswith(("http:", "https:")):
            continue
        path, _, part = target.partition("#")
        other = (page.parent / path) if path else page
        if not other.exists():
            broken.append(target)
        elif part:
            headings = re.findall(r"(?m)^#+ (.+)$", other.read_text(encoding="utf-8"))
            if part not in {anchor(heading) for heading in headings}:
                broken.append(target)
    assert broken == []
