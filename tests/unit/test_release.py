"""The steps of a release that need no registry, and the workflow that calls them. Nothing is published here."""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from sink_job.api.parser import parse_sink
from tools import release

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yaml").read_text(encoding="utf-8"))
JOBS = WORKFLOW["jobs"]
VERSION = release.versions()["pyproject.toml"]
FILES = ("pyproject.toml", "Dockerfile", "charts", "docs/images/icon.svg")
DIGESTS = {"s3sink-operator": f"sha256:{'a' * 64}", "s3sink-job": f"sha256:{'b' * 64}"}
KINDS = ["added", "changed", "deprecated", "removed", "fixed", "security"]
CHANGELOG = f"""# Changelog
## Unreleased
### Added
- Not released.

## {VERSION} - 2025-12-01
### Changed
- An entry of
  two lines with a [link](docs/helm.md).
### Fixed
- Another entry.

## 0.0.1
### Added
- An older entry.
"""
KREW: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": "krew.googlecontainertools.github.com/v1alpha2"},
        "kind": {"const": "Plugin"},
        "metadata": {"type": "object", "properties": {"name": {"pattern": "^[a-z0-9][a-z0-9-]*$"}}},
        "spec": {
            "type": "object",
            "additionalProperties": False,
            "required": ["version", "shortDescription", "platforms"],
            "properties": {
                "version": {"pattern": r"^v\d+\.\d+\.\d+"},
                "homepage": {"pattern": "^https://"},
                "shortDescription": {"type": "string", "maxLength": 50, "pattern": r"[^.]$"},
                "description": {"type": "string"},
                "platforms": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "additionalProperties": False,
                        "required": ["uri", "sha256", "bin", "selector"],
                        "properties": {
                            "uri": {"pattern": r"^https://.*\.tar\.gz$"},
                            "sha256": {"pattern": "^[0-9a-f]{64}$"},
                            "bin": {"type": "string"},
                            "selector": {
                                "type": "object",
                                "properties": {
                                    "matchLabels": {
                                        "required": ["os", "arch"],
                                        "properties": {
                                            "os": {"enum": ["linux", "darwin", "windows"]},
                                            "arch": {"enum": ["amd64", "arm64", "arm", "386"]},
                                        },
                                    }
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}
"""The fields of a manifest that krew v0.4 knows, and its index's limit for short descriptions."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files of a release, with a changelog that has this version."""
    root = tmp_path / "checkout"
    for name in FILES:
        source, copy = ROOT / name, root / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, copy) if source.is_dir() else shutil.copy(source, copy)
    (root / "CHANGELOG.md").write_text(CHANGELOG, encoding="utf-8")
    return root


@pytest.fixture
def published(checkout: Path, tmp_path: Path) -> Path:
    """The chart as it would be published."""
    return release.chart(
        tmp_path / "out", repository="acme/s3sink", registry="ghcr.io/acme", digests=DIGESTS, root=checkout
    )


def hub_annotations(published: Path) -> dict[str, Any]:
    """The annotations of the published chart, each parsed as YAML."""
    about = yaml.safe_load((published / "Chart.yaml").read_text(encoding="utf-8"))
    return {name.removeprefix("artifacthub.io/"): yaml.safe_load(text) for name, text in about["annotations"].items()}


def test_all_files_have_the_same_version() -> None:
    assert set(release.versions().values()) == {VERSION}


def test_a_tag_of_the_version_passes_the_check(checkout: Path) -> None:
    assert release.check(f"v{VERSION}", checkout) == VERSION


@pytest.mark.parametrize(
    ("tag", "error"),
    [
        pytest.param("0.1.0", "not a version such as v0.1.0", id="without a v"),
        pytest.param("v9.9.9", f"pyproject.toml has {VERSION}", id="another version"),
    ],
)
def test_another_tag_is_rejected_with_the_reason(checkout: Path, tag: str, error: str) -> None:
    with pytest.raises(release.ReleaseError, match=re.escape(error)):
        release.check(tag, checkout)


def test_a_version_without_a_section_in_the_changelog_is_rejected(checkout: Path) -> None:
    (checkout / "CHANGELOG.md").write_text("## Unreleased\n### Added\n- All.\n", encoding="utf-8")
    with pytest.raises(release.ReleaseError, match=r"CHANGELOG\.md has no entries"):
        release.check(f"v{VERSION}", checkout)


def test_the_changes_of_a_version_are_those_of_its_section() -> None:
    assert list(release.changes(CHANGELOG, VERSION)) == [
        ("changed", "An entry of two lines with a link."),
        ("fixed", "Another entry."),
    ]


def test_the_entries_of_the_changelog_can_be_published() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("## Unreleased", "## 7.7.7")
    found = list(release.changes(text, "7.7.7"))
    assert found
    assert all(kind in KINDS and entry.endswith(".") for kind, entry in found)


def test_the_published_chart_installs_the_images_of_the_release_by_digest(published: Path) -> None:
    values = yaml.safe_load((published / "values.yaml").read_text(encoding="utf-8"))
    for section, name in (("image", "s3sink-operator"), ("jobImage", "s3sink-job")):
        assert values[section]["repository"] == f"ghcr.io/acme/{name}"
        assert values[section]["digest"] == DIGESTS[name]


def test_only_the_images_differ_between_the_values_of_the_published_chart_and_those_of_the_repository(
    published: Path,
) -> None:
    ours = yaml.safe_load((ROOT / release.CHART / "values.yaml").read_text(encoding="utf-8"))
    theirs = yaml.safe_load((published / "values.yaml").read_text(encoding="utf-8"))
    assert {name for name in ours if ours[name] != theirs[name]} == {"image", "jobImage"}


def test_artifact_hub_gets_the_images_and_the_changes(published: Path) -> None:
    found = hub_annotations(published)
    assert [each["image"] for each in found["images"]] == [
        f"ghcr.io/acme/{name}@{digest}" for name, digest in DIGESTS.items()
    ]
    assert [each["kind"] for each in found["changes"]] == ["changed", "fixed"]
    assert found["category"] == "streaming-messaging"


def test_artifact_hub_gets_the_kind_and_a_valid_example(published: Path) -> None:
    (crd,) = hub_annotations(published)["crds"]
    (example,) = hub_annotations(published)["crdsExamples"]
    definition = yaml.safe_load((ROOT / "crds" / f"{crd['name']}.yaml").read_text(encoding="utf-8"))
    assert (crd["kind"], crd["version"]) == (definition["spec"]["names"]["kind"], "v1alpha1")
    assert parse_sink(example).name == "flights"


def test_links_of_the_published_chart_lead_to_files_of_the_version(published: Path) -> None:
    about = yaml.safe_load((published / "Chart.yaml").read_text(encoding="utf-8"))
    assert about["icon"] == f"https://raw.githubusercontent.com/acme/s3sink/v{VERSION}/{release.ICON}"
    assert (ROOT / release.ICON).is_file()
    links = re.findall(r"\]\(([^)]+)\)", (published / "README.md").read_text(encoding="utf-8"))
    start = f"https://github.com/acme/s3sink/blob/v{VERSION}/"
    assert links
    assert all((ROOT / link.removeprefix(start)).exists() for link in links if link.startswith(start))
    assert not [link for link in links if link.startswith("..")]


def test_a_values_file_without_a_place_for_an_image_is_an_error(checkout: Path, tmp_path: Path) -> None:
    values = checkout / release.CHART / "values.yaml"
    values.write_text(values.read_text(encoding="utf-8").replace('digest: ""', "digest: null"), encoding="utf-8")
    with pytest.raises(release.ReleaseError, match=r"image\.digest is not an empty text"):
        release.chart(tmp_path / "out", repository="a/b", registry="r", digests=DIGESTS, root=checkout)


@pytest.fixture
def archives(tmp_path: Path) -> Path:
    for name in release.PLATFORMS:
        (tmp_path / f"kubectl-s3sink_v0.1.0_{name}.tar.gz").write_bytes(name.encode())
    return tmp_path


def test_the_manifest_for_krew_has_the_fields_that_krew_knows(archives: Path) -> None:
    jsonschema.validate(release.krew(archives, repository="acme/s3sink", version="0.1.0"), KREW)


def test_the_manifest_for_krew_has_the_checksum_of_each_archive(archives: Path) -> None:
    platforms = release.krew(archives, repository="acme/s3sink", version="0.1.0")["spec"]["platforms"]
    assert [each["sha256"] for each in platforms] == [
        hashlib.sha256(name.encode()).hexdigest() for name in release.PLATFORMS
    ]
    assert [Path(each["uri"]).name for each in platforms] == [
        f"kubectl-s3sink_v0.1.0_{name}.tar.gz" for name in release.PLATFORMS
    ]


def test_a_platform_without_an_archive_is_an_error(archives: Path) -> None:
    (archives / "kubectl-s3sink_v0.1.0_darwin_arm64.tar.gz").unlink()
    with pytest.raises(release.ReleaseError, match="build the plug-in on darwin_arm64"):
        release.krew(archives, repository="acme/s3sink", version="0.1.0")


def test_the_workflow_starts_with_a_tag_and_nothing_else() -> None:
    assert WORKFLOW[True] == {"push": {"tags": ["v*"]}}  # YAML 1.1 reads the key `on` as true


def test_every_job_waits_for_the_check() -> None:
    for name, job in JOBS.items():
        assert name == "check" or "check" in [job["needs"]] or "check" in job["needs"]


def test_a_job_gets_the_permissions_that_its_steps_use() -> None:
    assert WORKFLOW["permissions"] == {"contents": "read"}
    for job in JOBS.values():
        commands = "\n".join(str(step.get("run", step.get("uses"))) for step in job["steps"])
        granted = job.get("permissions", WORKFLOW["permissions"])
        assert ("id-token" in granted) == ("cosign sign" in commands)
        assert ("packages" in granted) == ("ghcr.io" in str(job["steps"]))
        assert (granted["contents"] == "write") == ("gh release" in commands)


def test_a_command_gets_texts_of_the_event_as_variables_only() -> None:
    """An expression in a command would run what a tag or a branch is named."""
    commands = [str(step["run"]) for job in JOBS.values() for step in job["steps"] if "run" in step]
    assert not [command for command in commands if re.search(r"\$\{\{ *(github|needs|steps|inputs)\b", command)]


def test_the_workflow_builds_each_target_of_the_dockerfile_with_its_labels() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    matrix = JOBS["image"]["strategy"]["matrix"]
    assert all(f" AS {target}\n" in text for target in matrix["target"])
    (build,) = [step["with"] for step in JOBS["image"]["steps"] if "build-push-action" in step.get("uses", "")]
    arguments = [line.partition("=")[0] for line in build["build-args"].splitlines()]
    assert all(f"ARG {name}=" in text for name in arguments)
    assert (build["sbom"], build["provenance"]) == (True, "mode=max")
    assert {each["platform"] for each in matrix["machine"]} == {"linux/amd64", "linux/arm64"}


def test_there_is_a_machine_for_each_platform_of_the_plugin() -> None:
    assert len(JOBS["plugin"]["strategy"]["matrix"]["runner"]) == len(release.PLATFORMS)
