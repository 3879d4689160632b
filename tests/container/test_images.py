"""The content of the built images: files, owners, and the absence of other files. The tests read the archives layer
by layer and so find files that an upper layer hides.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from devtools import image_builders, images
from devtools.images import Image

pytestmark = pytest.mark.e2e

HOME = "opt/s3sink"
USER = 10001
MB = 1_000_000
SMALL_FILE = 64 * 1024
TARGETS = pytest.mark.parametrize("target", ["operator", "job"])


@dataclass
class Layer:
    """The members of one layer by path, and the texts of the project's small files."""

    size: int
    members: dict[str, tarfile.TarInfo] = field(default_factory=dict)
    texts: dict[str, bytes] = field(default_factory=dict)


@dataclass
class Content:
    """An image's settings and its layers, the base's first."""

    config: dict[str, Any]
    layers: list[Layer]

    @property
    def members(self) -> dict[str, tarfile.TarInfo]:
        """All files, each in the version of its topmost layer."""
        found: dict[str, tarfile.TarInfo] = {}
        for layer in self.layers:
            found |= layer.members
        return found

    @property
    def own(self) -> dict[str, tarfile.TarInfo]:
        """The files below the project's folder."""
        return {path: member for path, member in self.members.items() if path.startswith(f"{HOME}/")}

    def package(self, name: str) -> list[str]:
        """The files of a Python package of the image."""
        folder = f"/site-packages/{name}/"
        return [path for path in self.own if folder in path]


@pytest.fixture(scope="module")
def content() -> Callable[[str], Content]:
    """The content of a target's image. Skips if images cannot be built."""
    if reason := image_builders.reason_against():
        pytest.skip(reason)
    built = dict(zip(images.TARGETS, images.built(*images.TARGETS), strict=True))
    return cache(lambda target: _read(built[target]))


@TARGETS
def test_an_image_runs_as_a_numeric_user_and_its_entry_point_is_a_process(
    content: Callable[[str], Content], target: str
) -> None:
    config = content(target).config["config"]
    assert config["User"] == f"{USER}:{USER}"
    assert (
        config["Entrypoint"]
        == {"operator": ["s3sink"], "job": ["tini", "-s", "--", "python", "/opt/s3sink/entrypoint.py"]}[target]
    )


@TARGETS
def test_installed_files_belong_to_root_and_are_readable_but_not_writable(
    content: Callable[[str], Content], target: str
) -> None:
    wrong = [
        path
        for path, member in content(target).own.items()
        if not member.issym()
        and (
            member.uid != 0
            or member.mode & 0o022
            or not member.mode & 0o004
            or (member.isdir() and not member.mode & 0o001)
        )
    ]
    assert wrong[:10] == []


@TARGETS
def test_no_build_tools_are_installed(content: Callable[[str], Content], target: str) -> None:
    assert [name for name in ("pip", "setuptools", "wheel", "pytest") if content(target).package(name)] == []
    assert not any(path.startswith(("src/", "dist/", "build/", "baked/")) for path in content(target).members)


@TARGETS
def test_no_layer_contains_the_path_of_the_build_host(content: Callable[[str], Content], target: str) -> None:
    found = content(target)
    hosts = [each.encode() for each in image_builders.hosts_of_this_machine()]
    leaking = [
        path for layer in found.layers for path, text in layer.texts.items() if any(host in text for host in hosts)
    ]
    assert leaking == []
    assert not any(host.decode() in json.dumps(found.config) for host in hosts)
    # A mount of the build leaves at most its empty mount point.
    mounted = [path for path in found.members if path.startswith("run/s3sink-build/")]
    assert mounted == []


@TARGETS
def test_modules_are_compiled_at_build_time(content: Callable[[str], Content], target: str) -> None:
    own = content(target).own
    modules = {path for path in own if path.endswith(".py") and "/sink_job/" in path}
    compiled = {path for path in own if path.endswith(".cpython-311.pyc") and "/sink_job/" in path}
    assert modules
    assert len(modules) == len(compiled)


def test_the_operator_image_is_small_and_contains_neither_spark_nor_java(content: Callable[[str], Content]) -> None:
    found = content("operator")
    assert not found.package("pyspark")
    assert not any(path.endswith((".jar", "/bin/java")) for path in found.members)
    base, *own = found.layers
    assert sum(layer.size for layer in own) < 180 * MB
    assert base.size < 180 * MB


def test_the_job_image_contains_kafkas_client_and_the_cds_archive(content: Callable[[str], Content]) -> None:
    found = content("job")
    names = {Path(path).name for path in found.package("pyspark") if path.endswith(".jar")}
    assert any(name.startswith("kafka-clients") for name in names)
    assert [path for path in found.own if path.endswith(".jsa")]
    assert not found.package("kopf")


def test_a_code_change_changes_a_layer_of_a_few_megabytes(content: Callable[[str], Content]) -> None:
    for target in images.TARGETS:
        with_code = [layer for layer in content(target).layers if any("/sink_job/" in path for path in layer.members)]
        assert len(with_code) == 1
        assert with_code[0].size < 20 * MB


def _read(image: Image) -> Content:
    with tarfile.open(image.archive) as archive:
        (manifest,) = json.loads(_bytes(archive, "manifest.json"))
        config = json.loads(_bytes(archive, manifest["Config"]))
        return Content(config, [_layer(archive, name) for name in manifest["Layers"]])


def _layer(archive: tarfile.TarFile, name: str) -> Layer:
    info = archive.getmember(name)
    while info.issym():
        info = archive.getmember(str(Path(info.name).parent / info.linkname))
    found = Layer(info.size)
    with tarfile.open(fileobj=archive.extractfile(info)) as layer:
        for member in _members(layer):
            path = member.name.removeprefix("./").rstrip("/")
            found.members[path] = member
            if member.isreg() and member.size < SMALL_FILE and not path.endswith((".pyc", ".class")):
                found.texts[path] = _content(layer, member)
    return found


def _members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    while (member := archive.next()) is not None:
        yield member


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    assert file
    return file.read()


def _bytes(archive: tarfile.TarFile, name: str) -> bytes:
    return _content(archive, archive.getmember(name))
