"""Checks of the text of the Dockerfile; test_images builds the images."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from devtools.image_builders import stages_beside
from tools import locks

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "Dockerfile").read_text()
LINES = [line for line in TEXT.replace("\\\n", " ").splitlines() if line.strip() and not line.startswith("#")]


def stage(name: str) -> list[str]:
    """The instructions of a stage, without its FROM."""
    starts = [at for at, line in enumerate(LINES) if line.startswith("FROM ")]
    for at, end in zip(starts, [*starts[1:], len(LINES)], strict=True):
        if LINES[at].endswith(f" AS {name}"):
            return LINES[at + 1 : end]
    raise AssertionError(f"no stage {name}")


def names_of(instruction: str, lines: list[str]) -> list[str]:
    return [line.removeprefix(instruction + " ") for line in lines if line.startswith(instruction + " ")]


@pytest.mark.parametrize("target", ["operator", "job"])
def test_an_image_runs_as_a_numeric_non_root_user(target: str) -> None:
    lines = stage(target)
    (user,) = names_of("USER", lines)
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    # No later instruction runs as root.
    assert not any(line.startswith(("RUN ", "COPY ")) for line in lines[lines.index(f"USER {user}") :])


@pytest.mark.parametrize("target", ["operator", "job"])
def test_an_image_has_labels_that_describe_it(target: str) -> None:
    labels = " ".join(names_of("LABEL", stage(target)))
    for label in (
        "title",
        "description",
        "licenses",
        "version",
        "revision",
        "source",
        "documentation",
        "vendor",
        "base.name",
    ):
        assert f"org.opencontainers.image.{label}=" in labels


def test_the_files_that_the_packages_metadata_names_are_there_when_the_wheel_is_built() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = stage("code")
    wheel = next(at for at, line in enumerate(lines) if "pip wheel" in line)
    before = " ".join(lines[: wheel + 1]).partition("pip wheel")[0]
    assert {project["readme"], *project["license-files"]} <= set(before.split())


@pytest.mark.parametrize("target", ["operator", "job"])
def test_an_entry_point_is_a_list_that_passes_signals_to_the_process(target: str) -> None:
    for instruction in ("ENTRYPOINT", "CMD"):
        (words,) = names_of(instruction, stage(target))
        assert words.startswith("[")


def test_every_stage_is_based_on_the_builders_base_or_another_stage() -> None:
    stages = [match.groups() for line in LINES if (match := re.fullmatch(r"FROM (\S+) AS (\S+)", line))]
    assert len(stages) == len([line for line in LINES if line.startswith("FROM ")])
    known = {"${BASE_IMAGE}"}
    for base, name in stages:
        assert base in known
        known.add(name)


def test_the_base_has_a_tag_and_is_not_the_latest() -> None:
    (base,) = [line for line in LINES if line.startswith("ARG BASE_IMAGE=")]
    assert re.fullmatch(r"ARG BASE_IMAGE=\S+:\d\S*", base)
    assert "latest" not in TEXT


def test_nothing_is_piped_into_a_shell_or_added_from_a_url() -> None:
    assert not re.search(r"curl|wget|\|\s*(ba)?sh\b|^ADD ", TEXT, re.MULTILINE)


def test_no_package_is_installed_without_its_hash() -> None:
    installs = re.findall(r"pip (install|wheel) (.*?)(?=&&|$)", "\n".join(LINES), re.MULTILINE)
    assert installs
    for _, arguments in installs:
        offline = "--no-deps" in arguments and ("--no-index" in arguments or "--no-build-isolation" in arguments)
        assert "--require-hashes" in arguments or offline, arguments


@pytest.mark.parametrize("target", ["operator", "job"])
def test_an_image_contains_no_build_tools(target: str) -> None:
    assert any("pip uninstall --yes setuptools pip" in line for line in stage(f"{target}-packages"))


def test_copied_files_exist_and_are_not_ignored() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for line in LINES:
        if line.startswith("COPY ") and "--from=" not in line:
            for source in line.split()[1:-1]:
                assert (ROOT / source).exists(), source
                assert source.partition("/")[0] in allowed, source


@pytest.mark.parametrize("path", locks.outputs(), ids=lambda path: path.name)
def test_an_image_installs_the_pins_of_requirements_lock(path: Path) -> None:
    assert path.read_text() == locks.outputs()[path], "run `make lock`"


def test_the_operator_image_has_no_spark_or_s3_and_the_job_image_no_kubernetes_client() -> None:
    operator, job = (locks.pins((locks.FOLDER / f"{extra}.lock").read_text()) for extra in ("operator", "job"))
    assert {"kopf", "kubernetes", "pydantic"} <= {*operator}
    assert not {"pyspark", "boto3", "pyarrow"} & {*operator}
    assert {"pyspark", "boto3", "pyarrow", "pydantic"} <= {*job}
    assert not {"kopf", "kubernetes", "pytest"} & {*job}


@pytest.mark.parametrize(
    ("target", "stages"), [("operator", ["code", "operator-packages"]), ("job", ["code", "job-baked"])]
)
def test_the_build_cache_keeps_the_stages_that_a_target_copies_from(target: str, stages: list[str]) -> None:
    assert stages_beside(TEXT, target) == stages


def test_every_script_that_a_stage_runs_is_copied_into_it() -> None:
    scripts = re.findall(r"python3? /src/(\w+\.py)", " ".join(stage("job-baked")))
    assert scripts
    copied = " ".join(names_of("COPY", stage("job-baked")))
    assert all(f"container/{script} /src/" in copied for script in scripts)


def test_the_archive_stage_copies_every_package_that_the_archive_imports() -> None:
    command = (
        "import sys, sink_job.spark.class_data_sharing, sink_job.spark.engine, sink_job.spark.session;"
        "print(*sorted({name.split('.')[1] for name in sys.modules if name.startswith('sink_job.')}))"
    )
    imported = subprocess.run(
        [sys.executable, "-c", command], check=True, capture_output=True, text=True
    ).stdout.split()
    copied = " ".join(names_of("COPY", stage("job-baked")))
    assert {name for name in imported if f"sink_job/{name} /src/sink_job/{name}" not in copied} == set()


def test_every_python_command_of_the_dockerfile_imports_names_that_exist() -> None:
    commands = re.findall(r'python -c "([^"]+)"', TEXT)
    assert commands
    imports = [part for command in commands for part in command.split(";") if part.strip().startswith("from ")]
    subprocess.run([sys.executable, "-c", ";".join(imports)], check=True)
